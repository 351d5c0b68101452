// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/pkg/reserve"
)

var _ = Describe("Reserve that cannot be made (10)", func() {
	It("is given up, so that repair goes on, and tried again with back-off, one machine first", func() {
		w := settled(3, 0, Unbounded)
		w.outage = true
		w.setWish(3)
		_, rested := w.settle()
		Expect(rested).To(BeTrue())
		Expect(w.view.Applied.Excess).To(BeZero(), "%v", w.log)
		Expect(w.view.Machines).To(HaveLen(3))
		plan := NewPlan(w.view)
		Expect(plan.Summary.Reason).To(Equal(CannotBeMade))
		Expect(plan.Summary.Message).To(HavePrefix("3 of 3 machines serve, 0 of 3 in reserve, 0 of these ready; failures in a row: 1"))
		Expect(plan.Again).To(BeNumerically("~", time.Minute, 10*time.Second))

		w.view.Now = w.view.Now.Add(2 * time.Minute)
		Expect(NewPlan(w.view).Applied.Excess).To(Equal(1))
		w.settle()
		Expect(w.view.Retry.Failures).To(Equal(2))
		Expect(w.view.Applied.Excess).To(BeZero())
		Expect(NewPlan(w.view).Again).To(BeNumerically("~", 2*time.Minute, 10*time.Second))

		w.outage = false
		w.view.Now = w.view.Now.Add(time.Hour)
		plan, _ = w.settle()
		Expect(plan.Summary).To(And(HaveField("Ready", 3), HaveField("Reason", Complete)))
		Expect(w.view.Retry).To(BeZero())
		Expect(w.broken).NotTo(HaveOccurred())
	})

	It("is not in the way of a rollout once none is applied, though what is left of it can be made after all", func() {
		w := settled(2, 2, Unbounded)
		w.view.Rollout, w.view.Applied = true, Applied{Max: Unbounded}
		w.view.SetReplicas = 2
		plan := NewPlan(w.view)
		Expect(plan.Victims).To(Equal([]Victim{{"c", Shrunk}, {"d", Shrunk}}))
		Expect(plan.Priorities).To(Equal([]Priority{{"c", PriorityVictim}, {"d", PriorityVictim}}))
		Expect(plan.Moves).To(BeEmpty())
	})

	It("does not become ready in time: it goes, at its deadline", func() {
		w := settled(1, 1, Unbounded)
		w.machine("b").Phase, w.machine("b").Priority, w.machine("b").SeenPriority = mcm.MachinePending, 3, 3
		w.stuck = "b"
		plan := NewPlan(w.view)
		Expect(plan.Again).To(Equal(w.machine("b").Created.Add(w.view.BootPatience).Sub(start)))
		Expect(plan.Summary.Reason).To(Equal(NotReady))
		w.view.Now = w.view.Now.Add(plan.Again)
		plan = NewPlan(w.view)
		Expect(plan.Victims).To(Equal([]Victim{{"b", Unmakeable}}))
		Expect(plan.Priorities).To(Equal([]Priority{{"b", PriorityVictim}}))
		Expect(plan.Applied.Excess).To(Equal(1))
		w.carryOut(plan)
		Expect(NewPlan(w.view).Applied.Excess).To(Equal(0))
	})

	DescribeTable("stays while a machine that serves cannot be made either: that one may be made a moment later, and get pods (6)",
		func(replicas, wish int, reason Reason, reserved ...string) {
			w := settled(2, 1, Unbounded)
			w.setReplicas(replicas)
			w.setWish(wish)
			for _, name := range []string{"b", "c"} {
				m := w.machine(name)
				m.Reserve = slices.Contains(reserved, name)
				if m.Name == "b" || m.Reserve {
					m.Phase, m.Failing, m.HasProviderID, m.Pods = mcm.MachineCrashLoopBackOff, true, false, 0
				}
				m.Priority, m.SeenPriority = PriorityServing, PriorityServing
			}
			w.view.Applied.Excess, w.view.SetReplicas, w.view.MaxSetReplicas = 3-replicas, 3, 3
			plan := NewPlan(w.view)
			Expect(plan.Applied).To(Equal(w.view.Applied))
			Expect(plan.Summary.Reason).To(Equal(reason))

			b := w.machine("b")
			b.Phase, b.Failing, b.HasProviderID = mcm.MachineRunning, false, true
			w.settle()
			Expect(w.broken).NotTo(HaveOccurred())
			Expect(w.view.Applied.Excess).To(Equal(wish), "%v", w.log)
			Expect(w.view.Machines).To(HaveLen(replicas + wish))
		},
		Entry("where one of the reserve cannot be made", 2, 1, CannotBeMade, "c"),
		Entry("where it has been replaced, and a reserve is no longer desired", 1, 0, SurplusServing),
	)

	It("stays while more than R serve: it may be made a moment later, and one that serves would go in its place (6)", func() {
		w := settled(2, 1, Unbounded)
		w.setReplicas(1)
		c := w.machine("c")
		c.Phase, c.Failing, c.HasProviderID, c.Priority, c.SeenPriority = mcm.MachineCrashLoopBackOff, true, false, 3, 3
		w.view.Applied.Excess, w.view.SetReplicas, w.view.MaxSetReplicas = 2, 3, 3
		plan := NewPlan(w.view)
		Expect(plan.Applied).To(Equal(w.view.Applied))
		Expect(plan.Summary.Reason).To(Equal(CannotBeMade))
		w.view.Rollout = true
		Expect(NewPlan(w.view).Applied.Excess).To(Equal(1), "a rollout needs its surplus")
		w.view.Rollout = false
		w.machine("b").Phase = mcm.MachineUnknown
		Expect(NewPlan(w.view).Applied.Excess).To(Equal(1))
	})

	It("stays while it is tried again within seconds: it may be made by then, and one that serves would go in its place (6)", func() {
		w := settled(2, 1, Unbounded)
		c := w.machine("c")
		c.Phase, c.HasProviderID, c.Priority, c.SeenPriority = mcm.MachineCrashLoopBackOff, false, PriorityServing, PriorityServing
		w.setWish(0)
		plan := NewPlan(w.view)
		Expect(plan.Applied).To(Equal(w.view.Applied))
		Expect(plan.Victims).To(Equal([]Victim{{"c", Shrunk}}))
		c.Failing = true
		Expect(NewPlan(w.view).Applied.Excess).To(Equal(0), "nothing will be made of it for minutes")
	})

	It("stays while pods run on it, which one that cannot be made has where its Machine was restored from a backup (6)", func() {
		w := settled(2, 1, Unbounded)
		c := w.machine("c")
		c.Phase, c.Failing, c.HasProviderID, c.Priority, c.SeenPriority = mcm.MachineCrashLoopBackOff, true, false, PriorityServing, PriorityServing
		c.Pods = 1
		w.setWish(0)
		Expect(NewPlan(w.view).Applied).To(Equal(w.view.Applied))
		c.Pods = 0
		Expect(NewPlan(w.view).Applied.Excess).To(Equal(0))
	})

	It("is given up again when it comes back while waiting, but once only", func() {
		w := settled(1, 1, Unbounded)
		w.view.Retry = Retry{Failures: 1, Until: start.Add(time.Hour)}
		m := w.machine("b")
		m.Phase, m.Failing, m.HasProviderID, m.Priority, m.SeenPriority = mcm.MachineCrashLoopBackOff, true, false, 3, 3
		w.view.Applied.Excess, w.view.Excess = 1, 2
		plan := NewPlan(w.view)
		Expect(plan.Applied.Excess).To(Equal(0))
		Expect(plan.Retry.Failures).To(Equal(2))
		w.add(running(true))
		w.view.Applied.Excess = 1
		plan = NewPlan(w.view)
		Expect(plan.Applied.Excess).To(Equal(1), "b is about to be deleted")
		Expect(plan.Retry.Failures).To(Equal(1))
		Expect(plan.Priorities).To(BeEmpty())
	})

	It("waits twice as long after every failure, an hour at most", func() {
		w := settled(1, 1, Unbounded)
		m := w.machine("b")
		m.Phase, m.Failing, m.HasProviderID, m.Priority, m.SeenPriority = mcm.MachineCrashLoopBackOff, true, false, 3, 3
		for failures, wait := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute, time.Hour, time.Hour} {
			w.view.Retry.Failures = failures
			Expect(NewPlan(w.view).Retry).To(Equal(Retry{Failures: failures + 1, Until: start.Add(wait)}))
		}
		w.view.Retry.Failures = 1 << 30
		Expect(NewPlan(w.view).Retry.Until).To(Equal(start.Add(time.Hour)))
	})
})
