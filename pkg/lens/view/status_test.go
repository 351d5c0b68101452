// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/lens/view"
)

// numbers are what users of machine-controller-manager read from a status.
type numbers struct {
	replicas, updated, available, unavailable int32
	failed                                    int
	enough                                    v1alpha1.ConditionStatus
}

var (
	earlier = metav1.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	later   = metav1.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
)

// statusOf is such a status. The machines that failed are f0, f1 and so on.
func statusOf(n numbers, at metav1.Time, preserved int32) v1alpha1.MachineDeploymentStatus {
	s := v1alpha1.MachineDeploymentStatus{
		Replicas: n.replicas, UpdatedReplicas: n.updated, AvailableReplicas: n.available, ReadyReplicas: n.available,
		UnavailableReplicas: n.unavailable, PreservedFailedReplicas: preserved, FailedMachines: []*v1alpha1.MachineSummary{},
	}
	for i := range n.failed {
		s.FailedMachines = append(s.FailedMachines, &starting(false, i).MachineSummary)
	}
	available := v1alpha1.MachineDeploymentCondition{
		Type: v1alpha1.MachineDeploymentAvailable, Status: n.enough, LastTransitionTime: at, LastUpdateTime: at,
		Reason: "MinimumReplicasAvailable", Message: "Deployment has minimum availability.",
	}
	if n.enough == v1alpha1.ConditionFalse {
		available.Reason, available.Message = "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
	}
	s.Conditions = []v1alpha1.MachineDeploymentCondition{{Type: "ReserveReady", Status: "True"}, available}
	return s
}

// starting is a spare whose last operation failed.
func starting(updated bool, i int) *view.Spare {
	s := &view.Spare{Updated: updated}
	s.Name = fmt.Sprint("f", i)
	s.LastOperation.State = v1alpha1.MachineStateFailed
	return s
}

// timeless is a status without the times of its conditions.
func timeless(s v1alpha1.MachineDeploymentStatus) v1alpha1.MachineDeploymentStatus {
	s.Conditions = slices.Clone(s.Conditions)
	for i := range s.Conditions {
		s.Conditions[i].LastTransitionTime, s.Conditions[i].LastUpdateTime = metav1.Time{}, metav1.Time{}
	}
	return s
}

// withCondition sets the status and the message of a condition.
func withCondition(all []v1alpha1.MachineDeploymentCondition, kind v1alpha1.MachineDeploymentConditionType, is v1alpha1.ConditionStatus, message string) []v1alpha1.MachineDeploymentCondition {
	all = slices.Clone(all)
	for i := range all {
		if all[i].Type == kind {
			all[i].Status, all[i].Message = is, message
		}
	}
	return all
}

// rolls sets a strategy that tolerates so many missing machines.
func rolls(d *v1alpha1.MachineDeployment, unavailable int32) {
	d.Spec.Strategy = v1alpha1.MachineDeploymentStrategy{
		Type: v1alpha1.RollingUpdateMachineDeploymentStrategyType,
		RollingUpdate: &v1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: v1alpha1.UpdateConfiguration{
			MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(unavailable)),
		}},
	}
}

var _ = Describe("A status (V12)", func() {
	const yes, no = v1alpha1.ConditionTrue, v1alpha1.ConditionFalse

	// leavesOut writes a status with so many spares of either template, and looks at what is stored and shown then.
	leavesOut := func(d *v1alpha1.MachineDeployment, updated, old int, ready int32, written, want numbers) {
		GinkgoHelper()
		var spares []view.Spare
		for i := range updated + old { // they are the last that failed
			spares = append(spares, *starting(i < updated, written.failed-updated-old+i))
		}
		show, restore := view.Viewing(spares, ready)
		rolls(d, 0)
		d.Status = statusOf(numbers{enough: yes}, earlier, 0)
		after := show(d).DeepCopy()
		after.Status = statusOf(written, later, 0)
		before := after.DeepCopy()
		raw, err := restore(encoded(d), after)
		Expect(err).NotTo(HaveOccurred())
		Expect(after).To(Equal(before), "it is written again after an error")
		stored := decoded[v1alpha1.MachineDeployment](raw)
		Expect(encoded(timeless(stored.Status))).To(MatchJSON(encoded(timeless(statusOf(want, later, 0)))))
		inStore := stored.DeepCopy()
		show(stored)
		Expect(stored).To(Equal(inStore), "others read it, too")
		Expect(encoded(timeless(show(stored).Status))).To(MatchJSON(encoded(timeless(after.Status))), "machine-controller-manager finds its own write")
		if want.enough != written.enough {
			Expect(encoded(stored.Status.Conditions[1])).To(MatchJSON(encoded(d.Status.Conditions[1])), "nothing has happened to it")
		}
	}

	DescribeTable("leaves out reserve machines that have not become ready, and is shown with them",
		func(updated, old int, ready int32, written, want numbers) {
			leavesOut(withExcess(3, "2"), updated, old, ready, written, want)
		},
		Entry("they boot, or cannot be made", 2, 0, int32(0), numbers{5, 5, 3, 2, 2, no}, numbers{3, 3, 3, 0, 0, yes}),
		Entry("one is ready", 1, 0, int32(1), numbers{5, 5, 4, 1, 1, no}, numbers{4, 4, 4, 0, 0, yes}),
		Entry("they are of an older template", 0, 2, int32(0), numbers{5, 1, 3, 2, 2, no}, numbers{3, 1, 3, 0, 0, yes}),
		Entry("a machine for workload boots, too", 2, 0, int32(0), numbers{5, 5, 2, 3, 2, no}, numbers{3, 3, 2, 1, 0, no}),
		Entry("a machine for workload cannot be made", 1, 0, int32(1), numbers{5, 5, 3, 2, 2, no}, numbers{4, 4, 3, 1, 1, no}),
		Entry("they have yet to be created", 0, 0, int32(0), numbers{3, 3, 3, 2, 0, no}, numbers{3, 3, 3, 0, 0, yes}),
		Entry("all is well", 0, 0, int32(2), numbers{5, 5, 5, 0, 0, yes}, numbers{5, 5, 5, 0, 0, yes}),
	)

	It("leaves them out also where replicas include the reserve", func() {
		leavesOut(withExcess(5, "2,max=9,counted=2,replicas=5"), 2, 0, 0, numbers{5, 5, 3, 2, 2, no}, numbers{3, 3, 3, 0, 0, yes})
	})

	It("counts spares that the excess does not ask for where a machine for workload is missing", func() {
		show, restore := view.Viewing([]view.Spare{*starting(true, 0)}, 2)
		d := withExcess(3, "2")
		rolls(d, 0)
		after := show(d).DeepCopy()
		after.Status = statusOf(numbers{6, 6, 4, 1, 0, no}, later, 0)
		raw, err := restore(encoded(d), after)
		Expect(err).NotTo(HaveOccurred())
		Expect(encoded(decoded[v1alpha1.MachineDeployment](raw).Status)).To(MatchJSON(encoded(statusOf(numbers{5, 5, 4, 1, 0, no}, later, 0))))
	})

	It("leaves out nothing, and asks for nothing, where no excess is applied (V7)", func() {
		show, restore := view.Viewing([]view.Spare{*starting(true, 0)}, 0)
		d := withExcess(3, "2")
		d.Annotations = nil
		after := show(d).DeepCopy()
		after.Status = statusOf(numbers{5, 5, 3, 2, 2, no}, later, 0)
		raw, err := restore(encoded(d), after)
		Expect(err).NotTo(HaveOccurred())
		Expect(encoded(decoded[v1alpha1.MachineDeployment](raw).Status)).To(MatchJSON(encoded(after.Status)))
	})

	It("counts the whole reserve as missing where there are no machines for workload", func() {
		show, _ := view.Viewing(nil, 0)
		Expect(show(withExcess(0, "2")).Status.UnavailableReplicas).To(BeEquivalentTo(2))
		show, _ = view.Viewing(nil, 1)
		Expect(show(withExcess(0, "2")).Status.UnavailableReplicas).To(BeEquivalentTo(1))
	})

	It("counts a spare that leaves, and leaves out that it failed", func() {
		leaving := starting(true, 0)
		leaving.Leaving, leaving.LastOperation.State = true, ""
		show, restore := view.Viewing([]view.Spare{*leaving}, 2)
		d := withExcess(3, "2")
		Expect(show(d).Status.FailedMachines).To(BeEmpty())
		Expect(show(d).Status.Replicas).To(Equal(d.Status.Replicas))
		after := show(d).DeepCopy()
		after.Status = statusOf(numbers{6, 6, 5, 0, 1, yes}, later, 0)
		raw, err := restore(encoded(d), after)
		Expect(err).NotTo(HaveOccurred())
		Expect(encoded(decoded[v1alpha1.MachineDeployment](raw).Status)).To(MatchJSON(encoded(statusOf(numbers{6, 6, 5, 0, 0, yes}, later, 0))))
	})

	It("names only spares that failed, and changes no list of others", func() {
		booting := view.Spare{}
		booting.Name = "boots"
		show, _ := view.Viewing([]view.Spare{booting, *starting(true, 0)}, 0)
		d := withExcess(3, "2")
		theirs := &v1alpha1.MachineSummary{Name: "theirs"}
		list := append(make([]*v1alpha1.MachineSummary, 0, 8), theirs)
		d.Status.FailedMachines = list
		failed := show(d).Status.FailedMachines
		Expect(failed).To(HaveExactElements(theirs, HaveField("Name", "f0")))
		Expect(list[:2][1]).To(BeNil(), "the list is shared with the store")
	})

	It("keeps a condition that is already correct, and does not touch the others", func() {
		show, restore := view.Viewing([]view.Spare{*starting(true, 0)}, 1)
		d := withExcess(3, "2")
		rolls(d, 0)
		d.Status = statusOf(numbers{3, 3, 3, 0, 0, yes}, earlier, 0)
		d.Status.Conditions[1].Message = "enough"
		progress := v1alpha1.MachineDeploymentCondition{Type: v1alpha1.MachineDeploymentProgressing, Status: yes, Message: "old"}
		d.Status.Conditions = append(d.Status.Conditions, progress)
		after := show(d).DeepCopy()
		after.Status.AvailableReplicas = 5
		after.Status.Conditions = withCondition(after.Status.Conditions, progress.Type, yes, "new")
		after.Status.Conditions = withCondition(after.Status.Conditions, v1alpha1.MachineDeploymentAvailable, yes, "as written")
		raw, err := restore(encoded(d), after)
		Expect(err).NotTo(HaveOccurred())
		stored := decoded[v1alpha1.MachineDeployment](raw).Status.Conditions
		Expect(stored).To(ContainElement(And(HaveField("Type", progress.Type), HaveField("Message", "new"))))
		Expect(stored).To(ContainElement(And(HaveField("Type", v1alpha1.MachineDeploymentAvailable), HaveField("Message", "enough"), HaveField("Status", yes))))
	})

	It("sets reason and message of a condition that changes, and keeps those of one that does not", func() {
		show, restore := view.Viewing([]view.Spare{*starting(true, 0)}, 1)
		d := withExcess(3, "2")
		rolls(d, 0)
		d.Status = statusOf(numbers{3, 3, 3, 0, 0, no}, earlier, 0)
		d.Status.Conditions[1].Message = "not enough"
		shown := show(d)
		Expect(shown.Status.Conditions[1].Message).To(Equal("not enough"))
		after := shown.DeepCopy()
		after.Status.AvailableReplicas = 4
		raw, err := restore(encoded(d), after)
		Expect(err).NotTo(HaveOccurred())
		c := decoded[v1alpha1.MachineDeployment](raw).Status.Conditions[1]
		Expect([]string{string(c.Status), c.Reason, c.Message}).To(Equal([]string{"True", "MinimumReplicasAvailable", "Deployment has minimum availability."}))
		d.Status.Conditions[1] = c
		c = show(d).Status.Conditions[1]
		Expect([]string{string(c.Status), c.Reason, c.Message}).To(Equal([]string{"False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."}))
	})

	It("is available where the strategy is invalid, as machine-controller-manager has it", func() {
		show, _ := view.Viewing([]view.Spare{*starting(true, 0)}, 0)
		d := withExcess(3, "2")
		d.Status = statusOf(numbers{0, 0, 0, 0, 0, yes}, earlier, 0)
		for strategy, is := range map[v1alpha1.MachineDeploymentStrategyType]v1alpha1.ConditionStatus{"RollingUpdate": yes, "InPlaceUpdate": yes, "other": no} {
			d.Spec.Strategy = v1alpha1.MachineDeploymentStrategy{Type: strategy}
			Expect(show(d).Status.Conditions[1].Status).To(Equal(is), string(strategy))
		}
		rolls(d, 0)
		d.Spec.Strategy.InPlaceUpdate = nil
		Expect(show(d).Status.Conditions[1].Status).To(Equal(no))
	})

	It("bears a strategy that is invalid", func() {
		show, _ := view.Viewing([]view.Spare{*starting(true, 0)}, 0)
		d := withExcess(3, "2")
		for _, kind := range []v1alpha1.MachineDeploymentStrategyType{"RollingUpdate", "InPlaceUpdate", "other"} {
			d.Spec.Strategy = v1alpha1.MachineDeploymentStrategy{Type: kind}
			Expect(show(d).Status.Replicas).To(BeEquivalentTo(1))
		}
	})

	It("shows what machine-controller-manager computed, whatever is left out (V2)", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			draw := func(what string, least, most int32) int32 { return rapid.Int32Range(least, most).Draw(t, what) }
			d := arbitrary{t}.deployment()
			rolls(d, draw("tolerated", 0, 2))
			d.Status = statusOf(numbers{enough: rapid.SampledFrom([]v1alpha1.ConditionStatus{yes, no}).Draw(t, "enough")}, earlier, 0)
			var spares []view.Spare
			updated := int32(0)
			for i := range draw("spares", 0, 4) {
				spares = append(spares, *starting(rapid.Bool().Draw(t, "updated"), int(i)))
				if spares[i].Updated {
					updated++
				}
			}
			ready := draw("ready", 0, 3)
			show, restore := view.Viewing(spares, ready)
			after := show(d).DeepCopy()
			preserved, tolerated := draw("preserved", 0, 1), int32(d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue())
			n := numbers{replicas: int32(len(spares)) + draw("others", 0, 5), available: draw("available", 0, 8), failed: len(spares), enough: yes}
			n.updated = updated + draw("others updated", 0, n.replicas-updated)
			n.unavailable = max(0, after.Spec.Replicas) + draw("missing", 0, 3) // each machine of the excess that is not ready is unavailable
			if n.available < after.Spec.Replicas-min(tolerated, max(0, after.Spec.Replicas))-preserved {
				n.enough = no
			}
			after.Status = statusOf(n, later, preserved)
			raw, err := restore([]byte(encodedFor(t, d)), after)
			if err != nil {
				t.Fatal(err)
			}
			stored := &v1alpha1.MachineDeployment{}
			if err := json.Unmarshal(raw, stored); err != nil {
				t.Fatal(err)
			}
			if is, want := encodedFor(t, timeless(show(stored).Status)), encodedFor(t, timeless(after.Status)); is != want {
				t.Fatalf("written\n%s\nis shown as\n%s\nstored\n%s", want, is, raw)
			}
		})
	})
})
