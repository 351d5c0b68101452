// SPDX-License-Identifier: Apache-2.0

package requeue_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/internal/requeue"
)

func TestRequeue(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Requeue")
}

var _ = DescribeTable("The sooner of two waits",
	func(a, b, sooner time.Duration) {
		Expect(requeue.Sooner(a, b)).To(Equal(sooner))
		Expect(requeue.Sooner(b, a)).To(Equal(sooner))
	},
	Entry("is the shorter one", time.Second, time.Minute, time.Second),
	Entry("is the only one", time.Duration(0), time.Minute, time.Minute),
	Entry("is the only one that has not passed", -time.Second, time.Minute, time.Minute),
	Entry("is none if there is none", time.Duration(0), time.Duration(0), time.Duration(0)),
	Entry("is none if both have passed", -time.Second, -time.Minute, time.Duration(0)),
)
