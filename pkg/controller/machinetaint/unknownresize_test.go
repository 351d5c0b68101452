// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/test/fixture"
)

var _ = Describe("A write of a MachineSet whose outcome is unknown, and that has no effect,", func() {
	It("holds up a smaller excess for two minutes, and no longer, though nothing else happens", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			set, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Get(context.Background(), "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			set.Spec.Replicas++
			ended, err := a.taint.Guards().Shrink(set)
			Expect(err).NotTo(HaveOccurred())
			ended(nil, errLost)
			a.patch(`{"spec":{"excessReplicas":0}}`)
			time.Sleep(time.Minute)
			Expect(a.applied()).To(Equal("1"), "the MachineSet may ask for one machine more")
			time.Sleep(2 * time.Minute)
			Expect(a.applied()).To(BeEmpty())
		})
	})
})
