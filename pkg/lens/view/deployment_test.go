// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"encoding/json"
	"errors"
	"math"
	"slices"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/test/fixture"
)

func withExcess(replicas int32, excess string) *v1alpha1.MachineDeployment {
	return fixture.MachineDeployment("pool", replicas, func(d *v1alpha1.MachineDeployment) {
		d.Annotations = map[string]string{machine.AppliedExcessAnnotation: excess, machine.BoundsAnnotation: "1:9:2", "their": "own"}
	})
}

var _ = Describe("A MachineDeployment", func() {
	DescribeTable("shows all machines wanted (V5)",
		func(replicas int, excess, applied string, shown int) {
			d := withExcess(int32(replicas), excess)
			if applied != "" {
				d.Annotations[machine.AppliedReplicasAnnotation] = applied
			}
			Expect(view.ShowDeployment(d).Spec.Replicas).To(Equal(int32(shown)))
			Expect(d.Spec.Replicas).To(Equal(int32(replicas)))
		},
		Entry("none", 3, "0", "", 3),
		Entry("some", 3, "2", "", 5),
		Entry("at zero replicas", 0, "2", "", 2),
		Entry("below the max", 3, "2,max=6", "", 5),
		Entry("at the max", 3, "2,max=5", "", 5),
		Entry("replicas raised: the max stands, no machine goes", 4, "2,max=5", "", 5),
		Entry("replicas raised to the max", 5, "2,max=5", "", 5),
		Entry("replicas above the max are honoured", 7, "2,max=5", "", 7),
		Entry("a max of zero", 1, "2,max=0", "", 1),
		Entry("while growth is split", 9, "2", "4", 6),
		Entry("while growth is split, and the max stands", 9, "2,max=5", "4", 5),
		Entry("while growth from zero is split", 9, "1", "0", 1),
		Entry("replicas lowered below what is split take effect", 3, "2", "5", 5),
		Entry("replicas lowered to zero below what is split take effect", 0, "", "5", 0),
		Entry("what is split is not understood", 3, "2", "-4", 5),
		Entry("what is applied is not understood", 3, "5%", "", 3),
		Entry("nothing is applied", 3, "", "", 3),
		Entry("replicas include the reserve", 5, "3,counted=2,replicas=5", "", 6),
		Entry("replicas that include the reserve are lowered", 4, "2,counted=2,replicas=5", "", 5),
		Entry("they are lowered by more than the reserve", 2, "2,counted=2,replicas=5", "", 4),
		Entry("more than can be counted", math.MaxInt32-1, "5", "", math.MaxInt32),
		Entry("more than can be counted, with a max", 5, "2147483647,max=2147483647", "", math.MaxInt32),
		Entry("invalid replicas stay so", -3, "2", "", -3),
	)

	It("never shows the wish (V5)", func() {
		d := &v1alpha1.MachineDeployment{}
		Expect(json.Unmarshal([]byte(`{"spec":{"replicas":3,"excessReplicas":2},"metadata":{"annotations":{"`+machine.BoundsAnnotation+`":"1:9:4"}}}`), d)).To(Succeed())
		Expect(view.ShowDeployment(d).Spec.Replicas).To(Equal(int32(3)))
	})

	It("hides our annotations, which would be copied to MachineSets and fill their revision history", func() {
		d := withExcess(3, "2")
		Expect(view.ShowDeployment(d).Annotations).To(Equal(map[string]string{"their": "own"}))
		Expect(d.Annotations).To(HaveLen(3))
	})

	restored := func(stored []byte, change func(*v1alpha1.MachineDeployment)) (tree, error) {
		GinkgoHelper()
		after := view.ShowDeployment(decoded[v1alpha1.MachineDeployment](stored)).DeepCopy()
		change(after)
		raw, err := view.RestoreDeployment(stored, after)
		if err != nil {
			return nil, err
		}
		return *decoded[tree](raw), nil
	}

	It("keeps what is ours when its annotations are replaced by those of a MachineSet, as in a rollback", func() {
		is, err := restored(encoded(withExcess(3, "2")), func(d *v1alpha1.MachineDeployment) {
			d.Annotations = map[string]string{"their": "older", machine.BoundsAnnotation: "0:1:1", machine.AnnotationPrefix + "leaked": "x"}
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(is["metadata"].(tree)["annotations"]).To(Equal(tree{
			"their": "older", machine.BoundsAnnotation: "1:9:2", machine.AppliedExcessAnnotation: "2",
		}))
	})

	It("keeps replicas, excess and our status when its status is written (V3)", func() {
		var t tree
		Expect(json.Unmarshal(encoded(withExcess(3, "2")), &t)).To(Succeed())
		t["spec"].(tree)["excessReplicas"] = 2
		t["spec"].(tree)["strategy"].(tree)["later"] = tree{"kept": true}
		t["status"] = tree{"replicas": 3, "excessReplicas": 1, "readyExcessReplicas": 1, "conditions": []any{
			tree{"type": "ReserveReady", "status": "True", "observedGeneration": 7},
			tree{"type": "Available", "status": "False", "observedGeneration": 8},
		}}
		is, err := restored(encoded(t), func(d *v1alpha1.MachineDeployment) {
			d.Status.Replicas = 5
			d.Status.Conditions[1].Status = v1alpha1.ConditionTrue
			d.Status.Conditions[0], d.Status.Conditions[1] = d.Status.Conditions[1], d.Status.Conditions[0]
		})
		Expect(err).NotTo(HaveOccurred())
		t["status"].(tree)["replicas"] = 5
		conditions := t["status"].(tree)["conditions"].([]any)
		conditions[0], conditions[1] = conditions[1], conditions[0]
		conditions[0].(tree)["status"] = "True"
		Expect(is).To(BeEquivalentTo(*decoded[tree](encoded(t))))
	})

	It("keeps of a machine that failed what no type knows, when it fails in another way and others come first (V3)", func() {
		stored := `{"spec":{"replicas":3},"status":{"failedMachines":[{"name":"a","later":"x"},{"name":"b","later":"y"}]}}`
		is, err := restored([]byte(stored), func(d *v1alpha1.MachineDeployment) {
			slices.Reverse(d.Status.FailedMachines)
			for _, m := range d.Status.FailedMachines {
				m.LastOperation.Description = "failed again"
			}
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(is["status"].(tree)["failedMachines"]).To(HaveExactElements(
			And(HaveKeyWithValue("name", "b"), HaveKeyWithValue("later", "y")), And(HaveKeyWithValue("name", "a"), HaveKeyWithValue("later", "x"))))
	})

	It("takes no replicas where there is excess, and takes them where there is none (V10)", func() {
		_, err := restored(encoded(withExcess(3, "2")), func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = 4 })
		Expect(errors.Is(err, view.ErrReplicas)).To(BeTrue())
		is, err := restored(encoded(withExcess(3, "0")), func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = 4 })
		Expect(err).NotTo(HaveOccurred())
		Expect(is["spec"].(tree)["replicas"]).To(BeEquivalentTo(4))
	})

	It("keeps numbers as they are written", func() {
		stored := `{"spec":{"replicas":3,"later":[12345678901234567890,1.0,1e400]}}`
		raw, err := view.RestoreDeployment([]byte(stored), &v1alpha1.MachineDeployment{Spec: v1alpha1.MachineDeploymentSpec{Replicas: 3, Paused: true}})
		Expect(err).NotTo(HaveOccurred())
		Expect(string(raw)).To(ContainSubstring(`"later":[12345678901234567890,1.0,1e400]`))
	})
})
