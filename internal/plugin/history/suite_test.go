// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/internal/demand"
)

func TestHistory(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "History")
}

// noon is now.
var noon = time.Date(2026, time.March, 9, 12, 0, 0, 0, time.UTC)

// created is a pod of one CPU that was created some time before noon.
func created(before, lasts time.Duration) demand.Pods {
	return demand.Pods{Created: noon.Add(-before), CPU: 1000, Lasts: lasts, Count: 1}
}
