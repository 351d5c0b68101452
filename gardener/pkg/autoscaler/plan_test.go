// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	"fmt"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestAutoscaler(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Controller of cluster-autoscaler")
}

// views are all that there can be.
func views() (all []View) {
	for i := range 64 {
		v := View{Wanted: i&1 > 0, Served: i&2 > 0, Runs: i&4 > 0, Exists: i&8 > 0, Upstream: i&16 > 0, Offered: i&32 > 0}
		if v.Exists || !v.Upstream {
			all = append(all, v)
		}
	}
	return all
}

// answers is what the webhook makes of a step; nothing while it is down.
func answers(v View, step Step, down bool) View {
	switch {
	case step == RestoreAutoscaler:
		v.Upstream = false
	case down:
	case step == TouchManager:
		v.Served = v.Wanted || v.Upstream && v.Served
	case step == TouchAutoscaler:
		v.Upstream = v.Exists && v.Wanted && v.Served && v.Offered
	}
	return v
}

// carried is what is left after the steps of a plan, until one has an effect.
func carried(v View, down bool) View {
	for _, step := range NewPlan(v) {
		if after := answers(v, step, down); after != v {
			return after
		}
	}
	return v
}

var _ = Describe("The plan", func() {
	It("leaves no unmodified cluster-autoscaler without a server, whether the webhook answers or not", func() {
		for _, before := range views() {
			for _, down := range []bool{false, true} {
				v := before
				for range 4 {
					v = carried(v, down)
				}
				about := fmt.Sprintf("%+v, down %t: %+v", before, down, v)
				Expect(v.Upstream && !(v.Served && v.Offered)).To(BeFalse(), "law 1: "+about)
				Expect(v.Upstream && !v.Wanted).To(BeFalse(), about)
				Expect(carried(v, down)).To(Equal(v), "it comes to rest: "+about)
				if !down {
					Expect(NewPlan(v)).To(BeEmpty(), "law 2: "+about)
					Expect(v.Served && !v.Wanted).To(BeFalse(), about)
					Expect(v.Upstream).To(Equal(v.Wanted && v.Exists && v.Served && v.Offered && (v.Runs || before.Upstream)), about)
				}
			}
		}
	})

	It("gives up the unmodified cluster-autoscaler only if its server does not come back", func() {
		Expect(NewPlan(View{Wanted: true, Exists: true, Upstream: true})).To(Equal([]Step{TouchManager, RestoreAutoscaler}))
	})

	It("waits until the server runs before the fork goes", func() {
		Expect(NewPlan(View{Wanted: true, Exists: true, Served: true, Offered: true})).To(BeEmpty())
		Expect(NewPlan(View{Wanted: true, Exists: true, Served: true, Runs: true, Offered: true})).To(Equal([]Step{TouchAutoscaler}))
	})

	It("gives it up where a pool would not be scaled", func() {
		Expect(NewPlan(View{Wanted: true, Exists: true, Served: true, Runs: true, Upstream: true})).To(Equal([]Step{RestoreAutoscaler}))
	})

	It("leaves a Shoot alone whose manager has no server", func() {
		Expect(NewPlan(View{Wanted: true, Exists: true, Runs: true})).To(BeEmpty(), "gardenlet writes it")
		Expect(NewPlan(View{Exists: true, Runs: true})).To(BeEmpty())
	})
})
