// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/pkg/reserve"
)

var _ = DescribeTable("A reserve machine that cannot be made, one minute before the next try (10)",
	func(do func(*world), want ...Victim) {
		w := settled(3, 3, Unbounded)
		w.machine("d").Phase, w.machine("d").Failing = mcm.MachinePending, true
		w.view.Retry = Retry{Failures: 1, Until: w.view.Now.Add(time.Minute)}
		do(w)
		Expect(NewPlan(w.view).Victims).To(HaveExactElements(want))
	},
	Entry("goes", func(*world) {}, Victim{"d", Unmakeable}),
	Entry("stays while MCM has deletions to do, which may be for it", replicas(2)),
	Entry("stays during a rollout, which makes machines of its own", func(w *world) { w.view.Rollout = true }),
	Entry("goes during a rollout once the minute is over", func(w *world) {
		w.view.Rollout = true
		w.view.Now = w.view.Retry.Until
	}, Victim{"d", Unmakeable}),
)

var _ = It("The tries to make a reserve machine are remembered while settings cannot be read, so that the reserve stays as it is (10)", func() {
	w := settled(3, 2, Unbounded)
	w.view.Wish, w.view.Excess = 3, 3
	w.view.Retry = Retry{Failures: 5, Until: w.view.Now.Add(time.Minute)}
	Expect(NewPlan(w.view).Retry).To(Equal(w.view.Retry))
	w.view.SettingsUnknown, w.view.Wish, w.view.Excess = true, 2, 2
	Expect(NewPlan(w.view).Retry).To(Equal(w.view.Retry))
	w.view.Now = w.view.Retry.Until
	Expect(NewPlan(w.view).Retry).To(Equal(w.view.Retry))
	Expect(NewPlan(w.view).Applied).To(Equal(w.view.Applied))
})
