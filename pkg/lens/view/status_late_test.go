// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/lens/view"
)

var _ = DescribeTable("A status omits only what machine-controller-manager has counted (V12)",
	func(computed, want numbers) {
		now := view.Counts{All: 5, Updated: 5, Available: 4}
		counted := view.Counts{All: computed.replicas, Updated: computed.updated, Available: computed.available}
		show, restore := view.ViewingReserve(view.Reserve{Starting: []view.Spare{*starting(true, 9)}, Ready: 1, Machines: now, Counted: counted})
		d := withExcess(3, "2")
		rolls(d, 0)
		d.Status = statusOf(numbers{enough: v1alpha1.ConditionTrue}, earlier, 0)
		after := show(d).DeepCopy()
		after.Status = statusOf(computed, later, 0)
		raw, err := restore(encoded(d), after)
		Expect(err).NotTo(HaveOccurred())
		stored := decoded[v1alpha1.MachineDeployment](raw)
		Expect(encoded(timeless(stored.Status))).To(MatchJSON(encoded(timeless(statusOf(want, later, 0)))))
		is := show(stored).Status
		Expect([]int32{is.Replicas, is.UpdatedReplicas, is.UnavailableReplicas}).To(Equal([]int32{computed.replicas, computed.updated, computed.unavailable}), "its own write")
	},
	Entry("all of it", numbers{5, 5, 4, 1, 0, v1alpha1.ConditionFalse}, numbers{4, 4, 4, 0, 0, v1alpha1.ConditionTrue}),
	Entry("all but a machine that has just been created", numbers{4, 4, 4, 1, 0, v1alpha1.ConditionFalse}, numbers{4, 4, 4, 0, 0, v1alpha1.ConditionTrue}),
	Entry("all but one that has just been created, in a rollout", numbers{5, 4, 4, 1, 0, v1alpha1.ConditionFalse}, numbers{4, 4, 4, 0, 0, v1alpha1.ConditionTrue}),
	Entry("all but one that has just become ready", numbers{5, 5, 3, 2, 0, v1alpha1.ConditionFalse}, numbers{4, 4, 3, 0, 0, v1alpha1.ConditionTrue}),
	Entry("a machine that is gone by now", numbers{6, 6, 4, 1, 0, v1alpha1.ConditionFalse}, numbers{5, 5, 4, 0, 0, v1alpha1.ConditionTrue}),
)

var _ = It("A status that only shows what is stored changes nothing, also if MachineSets count more by now (V1, V12)", func() {
	all := view.Counts{All: 7, Updated: 7, Available: 5}
	show, restore := view.ViewingReserve(view.Reserve{Starting: []view.Spare{*starting(true, 8), *starting(true, 9)}, Machines: all, Counted: all})
	d := withExcess(3, "2")
	rolls(d, 0)
	d.Status = statusOf(numbers{3, 3, 3, 0, 0, v1alpha1.ConditionTrue}, earlier, 0)
	after := show(d).DeepCopy()
	after.Status.ObservedGeneration = 7
	raw, err := restore(encoded(d), after)
	Expect(err).NotTo(HaveOccurred())
	is := decoded[v1alpha1.MachineDeployment](raw).Status
	Expect(is.ObservedGeneration).To(Equal(int64(7)))
	Expect([]int32{is.Replicas, is.UpdatedReplicas, is.AvailableReplicas}).To(Equal([]int32{3, 3, 3}))
})

var _ = It("A status omits what machine-controller-manager has counted also where it differs only in the available machines, and MachineSets count one more by now (V12)", func() {
	all := view.Counts{All: 5, Updated: 5, Available: 4}
	show, restore := view.ViewingReserve(view.Reserve{Starting: []view.Spare{*starting(true, 9)}, Ready: 1, Machines: all, Counted: all})
	d := withExcess(3, "2")
	rolls(d, 0)
	d.Status = statusOf(numbers{4, 4, 4, 0, 0, v1alpha1.ConditionTrue}, earlier, 0)
	after := show(d).DeepCopy()
	Expect([]int32{after.Status.Replicas, after.Status.UpdatedReplicas, after.Status.AvailableReplicas}).To(Equal([]int32{5, 5, 4}))
	after.Status = statusOf(numbers{5, 5, 3, 2, 0, v1alpha1.ConditionFalse}, later, 0)
	raw, err := restore(encoded(d), after)
	Expect(err).NotTo(HaveOccurred())
	stored := decoded[v1alpha1.MachineDeployment](raw)
	Expect(encoded(timeless(stored.Status))).To(MatchJSON(encoded(timeless(statusOf(numbers{4, 4, 3, 0, 0, v1alpha1.ConditionTrue}, later, 0)))))
})
