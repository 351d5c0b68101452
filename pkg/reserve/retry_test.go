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
