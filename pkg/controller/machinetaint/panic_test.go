// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
)

// brokenClock panics once when it is asked how long something took, as a release is after its Node was written.
type brokenClock struct {
	clock.RealClock
	repaired atomic.Bool
}

func (c *brokenClock) Since(t time.Time) time.Duration {
	if !c.repaired.Swap(true) {
		panic("a broken clock")
	}
	return c.RealClock.Since(t)
}

var _ = Describe("A panic while a machine is written", func() {
	It("is reported, and ends neither the process nor the care for the MachineDeployment", func() {
		onItsOwn(1, 1, machinetaint.Options{Clock: &brokenClock{}}, func(a *alone) {
			time.Sleep(time.Minute)
			a.patch(`{"spec":{"replicas":2}}`)
			time.Sleep(6 * time.Minute)
			Expect(a.heard()).To(ContainElement("Warning ReserveUnattended Controller panicked: a broken clock. Retrying in 5m; please report this bug"))
			m := a.stored("b")
			Expect(m.Annotations).NotTo(HaveKey(api.ReserveAnnotation), "it serves")
		})
	})
})
