// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
)

// unreserved is a MachineDeployment that neither has a reserve nor asks for one.
func unreserved(change ...viewChange) plan.View {
	return changed(fleet(2, -1, serving("s1"), serving("s2")), change...)
}

var _ = DescribeTable("A MachineDeployment",
	func(idle bool, change ...viewChange) {
		v := unreserved(change...)
		Expect(v.HasNoReserve()).To(Equal(idle))
		p := plan.New(v)
		Expect(p.Idle).To(Equal(idle))
		if idle {
			Expect(p).To(Equal(plan.Plan{Idle: true}))
			Expect(p.Steady()).To(BeTrue())
		}
	},
	Entry("without a reserve is left alone", true),
	Entry("that asks for 0 is left alone", true, func(v *plan.View) { v.Deployment.Spec.ExcessReplicas = ptr.To[int32](0) }),
	Entry("that asks for a reserve is not", false, excess(1)),
	Entry("that records a field that is gone is not", false, note(api.WantedExcessAnnotation, "1")),
	Entry("that records a field that its API server drops is not", false, note(api.WantedExcessAnnotation, "1"), func(v *plan.View) { v.Pruned = true }),
	Entry("that drains, and whose field is not on record yet, is not", false, draining, func(v *plan.View) { v.Deployment.Spec.ExcessReplicas = ptr.To[int32](1) }),
	Entry("of which a Reserve requests one machine is not", false, note(api.RequestedExcessAnnotation, "shop=1")),
	Entry("whose bounds leave the excess to an absent field is left alone", true, note(api.BoundsAnnotation, "1:9")),
	Entry("whose bounds come to 0, which its field does not show, is not", false, note(api.BoundsAnnotation, "1:9:0")),
	Entry("whose bounds come to 0, which its field shows, is left alone", true, note(api.BoundsAnnotation, "1:9:0"), func(v *plan.View) { v.Deployment.Spec.ExcessReplicas = ptr.To[int32](0) }),
	Entry("whose field was fought over until now is not", false, note(api.BoundsAnnotation, "1:9:0"), func(v *plan.View) {
		v.Deployment.Spec.ExcessReplicas = ptr.To[int32](0)
		v.Memory.FieldConflict = plan.FieldConflict{Writes: 1, Until: noon.Add(time.Minute)}
	}),
	Entry("with bounds that cannot be read is not", false, note(api.BoundsAnnotation, "many")),
	Entry("with a named machine that is gone is not", false, func(v *plan.View) { v.NamedGone = 1 }),
	Entry("whose field was removed is not", false, note(api.WantedExcessAnnotation, "1"), witness),
	Entry("that has only a witness left is not", false, witness),
	Entry("that is remembered to have a reserve is not", false, func(v *plan.View) { v.Memory.Applied, v.Memory.UID = "1", "uid" }),
	Entry("with a record of its reserve is not", false, note(api.AppliedExcessAnnotation, "0")),
	Entry("with a record of a field that cannot be read is not", false, note(api.WantedExcessAnnotation, "many")),
	Entry("with a record of owners is not", false, note(api.ExcessOwnersAnnotation, "[]")),
	Entry("with a record of restored machines is not", false, note(api.ReturnedAnnotation, "gone")),
	Entry("with a record of claims is not", false, note(api.ClaimedAnnotation, "2:gone")),
	Entry("with another annotation of Evenkeel is left alone", true, note(api.AppliedReplicasAnnotation, "2")),
	Entry("with a marked machine is not", false, machine("s1", annotated(api.ReserveAnnotation, "broken"))),
	Entry("with a tainted Node is not", false, machine("s1", tainted(reserveTaint))),
	Entry("with a Node that shows since when it is held is not", false, machine("s1", nodeNoted(mark, since))),
	Entry("with a Node of others' taints is left alone", true, machine("s1", tainted(otherTaint))),
	Entry("with a machine that has no Node is left alone", true, machine("s1", withoutNode)),
	Entry("whose status shows a reserve is not", false, func(v *plan.View) { v.Deployment.Status.ExcessReplicas = 1 }),
	Entry("whose status shows a ready reserve is not", false, func(v *plan.View) { v.Deployment.Status.ReadyExcessReplicas = 1 }),
	Entry("whose status has the condition is not", false, func(v *plan.View) {
		v.Deployment.Status.Conditions = []mcm.MachineDeploymentCondition{{Type: "Available"}, {Type: api.ReserveReady}}
	}),
	Entry("whose status has other conditions is left alone", true, func(v *plan.View) {
		v.Deployment.Status.Conditions = []mcm.MachineDeploymentCondition{{Type: "Available"}}
	}),
)

var _ = Describe("A plan that finds only leftovers", func() {
	It("removes them, and reports nothing", func() {
		p := plan.New(unreserved(note(api.AppliedExcessAnnotation, "0"), note(api.WantedExcessAnnotation, "many"), note(api.ExcessOwnersAnnotation, "[]"), note(api.ReturnedAnnotation, "gone"), note(api.ClaimedAnnotation, "2:gone")))
		Expect(entries(p.Deployment.Annotations)).To(Equal([]string{"applied-excess=", "claimed=", "excess-owners=", "returned=", "wanted-excess="}))
		Expect(p.Report.Silent).To(BeTrue())
	})

	It("releases a Node that nothing holds", func() {
		p := plan.New(unreserved(machine("s1", tainted(reserveTaint))))
		Expect(nodeWrites(p)).To(Equal([]string{"s1 released:;"}))
		Expect(p.Report.Silent).To(BeTrue())
	})
})

var _ = DescribeTable("A plan is steady",
	func(p plan.Plan, steady bool) { Expect(p.Steady()).To(Equal(steady)) },
	Entry("if it writes nothing", plan.Plan{}, true),
	Entry("if it is idle", plan.Plan{Idle: true, Machines: make([]plan.MachineChange, 1)}, true),
	Entry("not if it writes a Machine", plan.Plan{Machines: make([]plan.MachineChange, 1)}, false),
	Entry("not if it writes a Node", plan.Plan{Nodes: make([]plan.NodeChange, 1)}, false),
	Entry("not if it writes a Machine and a Node", plan.Plan{Machines: make([]plan.MachineChange, 1), Nodes: make([]plan.NodeChange, 1)}, false),
	Entry("not if it raises replicas", plan.Plan{Deployment: plan.DeploymentChange{Replicas: 1}}, false),
	Entry("not if it lowers replicas", plan.Plan{Deployment: plan.DeploymentChange{Replicas: -1}}, false),
	Entry("not if it writes the field", plan.Plan{Deployment: plan.DeploymentChange{Field: ptr.To[int32](0)}}, false),
	Entry("not if it writes the witness of the field", plan.Plan{Deployment: plan.DeploymentChange{Witness: ptr.To(true)}}, false),
	Entry("not if it gives the field back", plan.Plan{Deployment: plan.DeploymentChange{Managed: []metav1.ManagedFieldsEntry{}}}, false),
	Entry("not if it writes an annotation", plan.Plan{Deployment: plan.DeploymentChange{Annotations: map[string]string{"a": ""}}}, false),
	Entry("if it has no annotation to write", plan.Plan{Deployment: plan.DeploymentChange{Annotations: map[string]string{}}}, true),
)
