// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/keep"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

func controlledBy(kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: mcm.SchemeGroupVersion.String(), Kind: kind, Name: name, UID: "uid", Controller: ptr.To(true)}}
}

// setIn is the MachineSet of a MachineDeployment.
func setIn(deployment string) *mcm.MachineSet {
	return &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: deployment + "-1", OwnerReferences: controlledBy("MachineDeployment", deployment)}}
}

// machineIn is a Machine of that MachineSet, with a Node of its name.
func machineIn(deployment string) *mcm.Machine {
	return fixture.Machine("of-"+deployment, func(m *mcm.Machine) {
		m.OwnerReferences = controlledBy("MachineSet", deployment+"-1")
		m.Labels = map[string]string{mcm.NodeLabelKey: "of-" + deployment}
	})
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

var _ = Describe("An event", func() {
	const a, b, c = fixture.Namespace + "/a", fixture.Namespace + "/b", fixture.Namespace + "/c"
	plain := nodeWith(func(*corev1.Node) {})
	annotated := func(key string) *corev1.Node {
		return nodeWith(func(n *corev1.Node) { n.Annotations[key] = "changed" })
	}
	tainted := func(value string) *corev1.Node {
		return nodeWith(func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "k", Value: value, Effect: corev1.TaintEffectNoSchedule}}
		})
	}

	inReserve := nodeWith(func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: api.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}}
	})
	kept := inReserve.DeepCopy()
	kept.Annotations[api.ScaleDownDisabledAnnotation] = "true"
	unready := inReserve.DeepCopy()
	unready.Status.Conditions[0].Status = corev1.ConditionFalse
	changed := func(change func(*api.MachineDeployment)) *api.MachineDeployment {
		d := poolOf("a")
		change(d)
		return d
	}

	DescribeTable("is decided on where it matters, and nowhere else", func(was, is any, want ...string) {
		storm.Bubble(suite, func() { Expect(withTwoPools().WokenBy(was, is)).To(ConsistOf(want)) })
	},
		Entry("a MachineDeployment changes", poolOf("a"), poolOf("a"), a),
		Entry("a MachineDeployment gets its first replicas, so that the cluster does not hibernate", poolOf("a"), scaled(poolOf("a"), 1), a, b),
		Entry("a MachineDeployment comes with replicas", nil, scaled(poolOf("c"), 1), c, a, b),
		Entry("a MachineDeployment loses its last replicas", scaled(poolOf("a"), 1), poolOf("a"), a, b),
		Entry("a MachineDeployment goes with its replicas", scaled(poolOf("c"), 1), nil, c, a, b),
		Entry("a MachineDeployment gets more replicas", scaled(poolOf("a"), 1), scaled(poolOf("a"), 2), a),
		Entry("a MachineDeployment of another namespace gets replicas", nil, elsewhere(scaled(poolOf("a"), 1)), "other/a"),
		Entry("a MachineSet comes", nil, setIn("a"), a),
		Entry("a MachineSet changes", setIn("a"), setIn("a"), a),
		Entry("a MachineSet gets another owner", setIn("a"), setIn("b"), a, b),
		Entry("a MachineSet goes", setIn("a"), nil, a),
		Entry("a Machine comes", nil, machineIn("a"), a),
		Entry("a Machine gets another owner", machineIn("a"), machineIn("b"), a, b),
		Entry("a Machine loses its owner", machineIn("a"), fixture.Machine("of-a"), a),
		Entry("a Machine goes", machineIn("a"), nil, a),
		Entry("a MachineClass comes", nil, fixture.MachineClass("class-a"), a),
		Entry("a MachineClass changes", fixture.MachineClass("class-a"), fixture.MachineClass("class-a"), a),
		Entry("a MachineClass goes", fixture.MachineClass("class-b"), nil, b),
		Entry("a MachineClass that is not used changes", fixture.MachineClass("x"), fixture.MachineClass("x")),
		Entry("a MachineClass of another namespace changes", nil, fixture.MachineClass("class-a", func(c *mcm.MachineClass) { c.Namespace = "other" })),
		Entry("a Node offers another resource", plain, nodeWith(func(n *corev1.Node) { n.Status.Allocatable["gpu"] = resource.MustParse("1") }), a),
		Entry("a Node comes", nil, plain, a),
		Entry("a Node goes", plain, nil, a),
		Entry("a Node says how it is", plain, nodeWith(func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.Now() })),
		Entry("a Node is annotated by others", plain, annotated("other")),
		Entry("a Node gets a provider id", nodeWith(func(n *corev1.Node) { n.Spec.ProviderID = "" }), plain, a),
		Entry("a Node is not ready any more", plain, nodeWith(func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }), a),
		Entry("a Node is cordoned", plain, nodeWith(func(n *corev1.Node) { n.Spec.Unschedulable = true }), a),
		Entry("a Node loses a taint", tainted("x"), plain, a),
		Entry("a taint gets another value", tainted("x"), tainted("y"), a),
		Entry("a Node is marked", plain, annotated(api.ReserveAnnotation), a),
		Entry("scaling down is disabled on a Node", plain, annotated(api.ScaleDownDisabledAnnotation), a),
		Entry("machine-controller-manager has applied a template to a Node", plain, annotated(machineutils.LastAppliedALTAnnotation), a),
		Entry("machine-controller-manager notes that a rollout keeps a Node", plain, annotated(keep.KeptByRollout), a),
		Entry("a pod is bound", podOn(""), podOn("of-a"), a),
		Entry("a pod that waits changes", podOn(""), podOn("", func(p *corev1.Pod) { p.Labels = map[string]string{"k": "v"} })),
		Entry("a pod on a machine changes", podOn("of-a"), podOn("of-a", func(p *corev1.Pod) { p.Labels = map[string]string{"k": "v"} })),
		Entry("a pod on a machine may not be evicted any more", podOn("of-a"), podOn("of-a", func(p *corev1.Pod) { p.Annotations = map[string]string{pool.SafeToEvict: "false"} }), a),
		Entry("a pod goes", podOn("of-a"), nil, a),
		Entry("a pod ends", podOn("of-a"), podOn("of-a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), a),
		Entry("a pod of the same name is on another machine", podOn("of-a"), podOn("of-b"), a, b),
	)

	DescribeTable("is decided on at once if that is urgent, and otherwise together with others", func(want []time.Duration, changes ...[2]any) {
		storm.Bubble(suite, func() { Expect(withTwoPools().DelaysAfter(changes...)).To(Equal(map[string][]time.Duration{a: want})) })
	},
		Entry("a MachineSet comes", atOnce, [2]any{nil, setIn("a")}),
		Entry("a MachineSet changes twice", gathered, [2]any{setIn("a"), setIn("a")}, [2]any{setIn("a"), setIn("a")}),
		Entry("a MachineSet goes", atOnce, [2]any{setIn("a"), nil}),
		Entry("a Machine comes", atOnce, [2]any{nil, machineIn("a")}),
		Entry("a Machine changes, and its MachineSet", gathered, [2]any{machineIn("a"), machineIn("a")}, [2]any{setIn("a"), setIn("a")}),
		Entry("a Machine goes", atOnce, [2]any{machineIn("a"), nil}),
		Entry("a Node comes", atOnce, [2]any{nil, plain}),
		Entry("a Node goes", atOnce, [2]any{plain, nil}),
		Entry("a Node gets a taint, and another one", gathered, [2]any{plain, tainted("x")}, [2]any{tainted("x"), tainted("y")}),
		Entry("a Node loses a taint of another client", gathered, [2]any{tainted("x"), plain}),
		Entry("a Node gets the taint of the reserve", gathered, [2]any{plain, inReserve}),
		Entry("a Node loses it", atOnce, [2]any{inReserve, plain}),
		Entry("a Node loses an annotation of the reserve", atOnce, [2]any{kept, inReserve}),
		Entry("a Node without the taint loses such an annotation", gathered, [2]any{annotated(api.ScaleDownDisabledAnnotation), plain}),
		Entry("a Node in reserve becomes ready", gathered, [2]any{unready, inReserve}),
		Entry("a MachineDeployment comes", atOnce, [2]any{nil, poolOf("a")}),
		Entry("a MachineDeployment goes", atOnce, [2]any{poolOf("a"), nil}),
		Entry("the status of a MachineDeployment changes twice", gathered, [2]any{poolOf("a"), poolOf("a")}, [2]any{poolOf("a"), poolOf("a")}),
		Entry("a MachineDeployment is asked for something else", atOnce, [2]any{poolOf("a"), changed(func(d *api.MachineDeployment) { d.Generation = 2 })}),
		Entry("an annotation of a MachineDeployment changes", atOnce, [2]any{poolOf("a"), changed(func(d *api.MachineDeployment) { d.Annotations = map[string]string{"k": "v"} })}),
		Entry("a label of a MachineDeployment changes", atOnce, [2]any{poolOf("a"), changed(func(d *api.MachineDeployment) { d.Labels = map[string]string{"k": "v"} })}),
		Entry("a MachineDeployment is created anew", atOnce, [2]any{poolOf("a"), changed(func(d *api.MachineDeployment) { d.UID = "other" })}),
		Entry("a MachineClass comes", gathered, [2]any{nil, fixture.MachineClass("class-a")}),
		Entry("two pods are bound", gathered, [2]any{podOn(""), podOn("of-a")}, [2]any{podOn(""), podOn("of-a")}),
	)
})

var (
	atOnce   = []time.Duration{0}
	gathered = []time.Duration{100 * time.Millisecond}
)

// poolOf returns a MachineDeployment with a class of its own.
func poolOf(name string) *api.MachineDeployment {
	d := &api.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: fixture.Namespace}}
	d.Spec.Template.Spec.Class.Name = "class-" + name
	return d
}

func scaled(d *api.MachineDeployment, replicas int32) *api.MachineDeployment {
	d.Spec.Replicas = replicas
	return d
}

func elsewhere(d *api.MachineDeployment) *api.MachineDeployment {
	d.Namespace = "other"
	return d
}

// withTwoPools returns a controller that knows two MachineDeployments with a machine each.
func withTwoPools() *machinetaint.Preview {
	p, err := machinetaint.NewPreview(keep.Settings{}, true)
	Expect(err).NotTo(HaveOccurred())
	pools := []*api.MachineDeployment{poolOf("a"), poolOf("b")}
	Expect(p.SetObjects(machinetaint.Objects{Deployments: pools, Sets: []*mcm.MachineSet{setIn("a"), setIn("b")}, Machines: []*mcm.Machine{machineIn("a"), machineIn("b")}}, time.Now())).To(Succeed())
	return p
}

var _ = DescribeTable("A machine in reserve that a MachineDeployment with fewer replicas than before names is noted", func(uid types.UID, noted int) {
	storm.Bubble(suite, func() {
		p, m := withTwoPools(), machineIn("a")
		m.Annotations = map[string]string{api.ReserveAnnotation: api.Reserve{Since: time.Now()}.String()}
		Expect(p.SetObjects(machinetaint.Objects{Machines: []*mcm.Machine{m}}, time.Now())).To(Succeed())
		was, is := scaled(poolOf("a"), 2), scaled(poolOf("a"), 1)
		was.UID, was.Generation = "first", 1
		is.UID, is.Generation, is.Annotations = uid, 2, map[string]string{machineutils.TriggerDeletionByMCM: m.Name}
		Expect(p.WokenBy(was, is)).To(ConsistOf(fixture.Namespace + "/a"))
		Expect(p.Remembered()["names"]).To(Equal(noted))
	})
},
	Entry("if it is the same MachineDeployment", types.UID("first"), 1),
	Entry("not if it is another one of the name: nobody has lowered its replicas", types.UID("second"), 0),
)
