// SPDX-License-Identifier: Apache-2.0

package machinedeployment_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

func controlledBy(kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: mcm.SchemeGroupVersion.String(), Kind: kind, Name: name, UID: types.UID(name), Controller: new(true)}}
}

// poolOf returns a MachineDeployment with a class of its own.
func poolOf(name string, change ...func(*v1alpha1.MachineDeployment)) *v1alpha1.MachineDeployment {
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: fixture.Namespace, UID: types.UID(name)}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": name}}
	d.Spec.Template.Spec.Class.Name = "class-" + name
	for _, one := range change {
		one(d)
	}
	return d
}

func scaled(replicas int32) func(*v1alpha1.MachineDeployment) {
	return func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = replicas }
}

// setIn is the MachineSet of a MachineDeployment.
func setIn(deployment string) *mcm.MachineSet {
	s := orphanSet(deployment)
	s.OwnerReferences = controlledBy("MachineDeployment", deployment)
	return s
}

// orphanSet is a MachineSet that a MachineDeployment may adopt.
func orphanSet(deployment string) *mcm.MachineSet {
	s := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: deployment + "-1", UID: types.UID(deployment + "-1"), Labels: map[string]string{"name": deployment}}}
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: s.Labels}
	return s
}

// machineIn is a Machine of that MachineSet, with a Node of its name.
func machineIn(deployment string) *mcm.Machine {
	return fixture.Machine("of-"+deployment, func(m *mcm.Machine) {
		m.OwnerReferences = controlledBy("MachineSet", deployment+"-1")
		m.Labels = map[string]string{mcm.NodeLabelKey: "of-" + deployment}
	})
}

func orphan(label string) *mcm.Machine {
	return fixture.Machine("orphan", func(m *mcm.Machine) { m.Labels = map[string]string{"name": label} })
}

func nodeWith(change func(*corev1.Node)) *corev1.Node {
	return fixture.Node("of-a", func(n *corev1.Node) {
		n.Annotations = map[string]string{}
		change(n)
	})
}

func podOn(node string, change ...func(*corev1.Pod)) *corev1.Pod {
	return fixture.Pod("p", append(change, func(p *corev1.Pod) { p.Spec.NodeName = node })...)
}

// withTwoPools returns a controller that knows two MachineDeployments with a machine each.
func withTwoPools() *Preview {
	p, err := NewPreview(plan.Settings{}, machinetaint.Settings{}, true)
	Expect(err).NotTo(HaveOccurred())
	Expect(p.SetObjects(Objects{
		Deployments: []*v1alpha1.MachineDeployment{poolOf("a"), poolOf("b")}, Sets: []*mcm.MachineSet{setIn("a"), setIn("b")}, Machines: []*mcm.Machine{machineIn("a"), machineIn("b")},
	}, time.Now())).To(Succeed())
	return p
}

var _ = DescribeTable("A panic is reported where its cause is", func(key string, want ...string) {
	storm.Bubble(suite, func() {
		p := withTwoPools()
		Expect(p.SetObjects(Objects{Deployments: []*v1alpha1.MachineDeployment{poolOf("a")}, Sets: []*mcm.MachineSet{setIn("a"), orphanSet("x")}}, time.Now())).To(Succeed())
		for i := range want {
			want[i] = "Warning UnableToManage Controller panicked: oh. Retrying in 1m; please report this bug involvedObject{kind=" + want[i] + ",apiVersion=machine.sapcloud.io/v1alpha1}"
		}
		Expect(p.PanicEvents(fixture.Namespace + "/" + key)).To(ConsistOf(want))
	})
},
	Entry("a MachineDeployment", "MachineDeployment:a", "MachineDeployment"),
	Entry("its release", "Release:a", "MachineDeployment"),
	Entry("a MachineSet without one", "MachineSet:x-1", "MachineSet"),
	Entry("nothing that is still there", "MachineSet:gone"),
)

var _ = Describe("An event", func() {
	const a, b, c = fixture.Namespace + "/MachineDeployment:a", fixture.Namespace + "/MachineDeployment:b", fixture.Namespace + "/MachineDeployment:c"
	const releaseA, setX = fixture.Namespace + "/Release:a", fixture.Namespace + "/MachineSet:x-1"
	plain := nodeWith(func(*corev1.Node) {})
	annotated := nodeWith(func(n *corev1.Node) { n.Annotations["key"] = "changed" })
	tainted := func(value string) *corev1.Node {
		return nodeWith(func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "k", Value: value, Effect: corev1.TaintEffectNoSchedule}}
		})
	}
	elsewhere := func(d *v1alpha1.MachineDeployment) { d.Namespace, d.UID, d.Spec.Replicas = "other", "other", 1 }

	DescribeTable("is decided on where it matters, and nowhere else", func(was, is any, want ...string) {
		storm.Bubble(suite, func() { Expect(withTwoPools().WokenBy(was, is)).To(ConsistOf(want)) })
	},
		Entry("a MachineDeployment changes", poolOf("a"), poolOf("a"), a),
		Entry("a MachineDeployment gets its first replicas, so that the cluster does not hibernate", poolOf("a"), poolOf("a", scaled(1)), a, b, releaseA),
		Entry("a MachineDeployment comes with replicas", nil, poolOf("c", scaled(1)), c, a, b),
		Entry("a MachineDeployment loses its last replicas", poolOf("a", scaled(1)), poolOf("a"), a, b),
		Entry("a MachineDeployment goes with its replicas", poolOf("c", scaled(1)), nil, c, a, b),
		Entry("a MachineDeployment goes, and leaves its MachineSets", poolOf("a"), nil, a),
		Entry("a MachineDeployment goes that had fewer than no replicas", poolOf("a", scaled(-1)), nil, a),
		Entry("a MachineDeployment gets more replicas", poolOf("a", scaled(1)), poolOf("a", scaled(2)), a, releaseA),
		Entry("a MachineDeployment of another namespace gets replicas", nil, poolOf("a", elsewhere), "other/MachineDeployment:a"),
		Entry("a MachineSet comes", nil, setIn("a"), a),
		Entry("a MachineSet changes", setIn("a"), setIn("a"), a),
		Entry("a MachineSet gets another owner", setIn("a"), setIn("b"), a, b),
		Entry("a MachineSet goes", setIn("a"), nil, a),
		Entry("a MachineSet comes that nobody owns or selects", nil, orphanSet("x"), setX),
		Entry("a MachineSet comes that may be adopted", nil, orphanSet("b"), b, fixture.Namespace+"/MachineSet:b-1"),
		Entry("a Machine comes", nil, machineIn("a"), a),
		Entry("a Machine gets another owner", machineIn("a"), machineIn("b"), a, b),
		Entry("a Machine loses its owner", machineIn("a"), orphan("x"), a),
		Entry("a Machine loses its owner, and may be adopted", machineIn("a"), orphan("b"), a, b),
		Entry("a Machine goes", machineIn("a"), nil, a),
		Entry("a MachineClass comes", nil, fixture.MachineClass("class-a"), a),
		Entry("a MachineClass changes", fixture.MachineClass("class-a"), fixture.MachineClass("class-a"), a),
		Entry("a MachineClass goes", fixture.MachineClass("class-b"), nil, b),
		Entry("a MachineClass that is not used changes", fixture.MachineClass("x"), fixture.MachineClass("x")),
		Entry("a MachineClass of another namespace changes", nil, fixture.MachineClass("class-a", func(c *mcm.MachineClass) { c.Namespace = "other" })),
		Entry("a Node comes", nil, plain, a),
		Entry("a Node goes", plain, nil, a),
		Entry("a Node says how it is", plain, nodeWith(func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.Now() })),
		Entry("a Node offers another resource", plain, nodeWith(func(n *corev1.Node) { n.Status.Allocatable["gpu"] = resource.MustParse("1") }), a),
		Entry("a Node gets a provider id", nodeWith(func(n *corev1.Node) { n.Spec.ProviderID = "" }), plain, a),
		Entry("a Node is not ready any more", plain, nodeWith(func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }), a),
		Entry("a Node is cordoned", plain, nodeWith(func(n *corev1.Node) { n.Spec.Unschedulable = true }), a),
		Entry("a Node loses a taint", tainted("x"), plain, a),
		Entry("a taint gets another value", tainted("x"), tainted("y"), a),
		Entry("a Node gets an annotation", plain, annotated, a),
		Entry("a Node gets a label", plain, nodeWith(func(n *corev1.Node) { n.Labels["key"] = "changed" }), a),
		Entry("an update in place of a Node makes progress", plain, nodeWith(func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: mcm.NodeInPlaceUpdate, Status: corev1.ConditionTrue, Reason: mcm.UpdateSuccessful})
		}), a),
		Entry("a pod is bound", podOn(""), podOn("of-a"), a),
		Entry("a pod that waits changes", podOn(""), podOn("", func(p *corev1.Pod) { p.Labels = map[string]string{"k": "v"} })),
		Entry("a pod on a machine changes", podOn("of-a"), podOn("of-a", func(p *corev1.Pod) { p.Labels = map[string]string{"k": "v"} })),
		Entry("a pod on a machine may not be evicted any more", podOn("of-a"), podOn("of-a", func(p *corev1.Pod) { p.Annotations = map[string]string{pool.SafeToEvict: "false"} }), a),
		Entry("a pod goes", podOn("of-a"), nil, a),
		Entry("a pod ends", podOn("of-a"), podOn("of-a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), a),
		Entry("a pod of the same name is on another machine", podOn("of-a"), podOn("of-b"), a, b),
	)
})
