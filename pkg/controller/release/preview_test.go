// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/release"
	"github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	. "github.com/evenkeel/evenkeel/test/builders/release"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// spare is a pool of one machine that is in reserve, with bounds.
func spare() Objects {
	stock := fixture.MachineDeployment("p", 0)
	d := &v1alpha1.MachineDeployment{ObjectMeta: stock.ObjectMeta, Spec: v1alpha1.MachineDeploymentSpec{StockMachineDeploymentSpec: stock.Spec}}
	d.UID, d.ResourceVersion = "p", "7"
	d.Annotations = map[string]string{v1alpha1.BoundsAnnotation: "0:4:1", v1alpha1.AppliedExcessAnnotation: "1,max=4", v1alpha1.AppliedReplicasAnnotation: "0"}
	owned := func(kind string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: kind, Name: "p", UID: "p", Controller: ptr.To(true)}}
	}
	set := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "p", UID: "p", OwnerReferences: owned("MachineDeployment")}}
	set.Spec.Template = stock.Spec.Template
	m := fixture.Machine("a", func(m *mcm.Machine) {
		m.OwnerReferences, m.Labels = owned("MachineSet"), map[string]string{"node": "a"}
		m.Annotations = map[string]string{v1alpha1.ReserveAnnotation: "{}"}
		m.Spec.ProviderID, m.Status.CurrentStatus.Phase = "a", mcm.MachineRunning
	})
	node := fixture.Node("a", func(n *corev1.Node) {
		n.Annotations = map[string]string{v1alpha1.ReserveAnnotation: "x"}
		n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}}
	})
	return Objects{Deployments: []*v1alpha1.MachineDeployment{d}, Sets: []*mcm.MachineSet{set}, Machines: []*mcm.Machine{m}, Nodes: []*corev1.Node{node}}
}

var _ = It("Nothing is said of a PodGroup that went away while a decision was made", func() {
	preview, err := NewPreview(UsualSettings)
	Expect(err).NotTo(HaveOccurred())
	lacks := func(pod *corev1.Pod, group string) plan.Shortage {
		return plan.Shortage{Group: "default/" + group, Pods: 2, Member: pod}
	}
	said := preview.Tell(lacks(Pod("gone-0", 1000, member("gone")), "gone"), lacks(Pod("there", 1000), "kueue:there"))
	Expect(said).To(ConsistOf(HavePrefix("Normal ReserveTooSmall 2 pods must start together")))
})

var _ = Describe("A preview", func() {
	It("doubts a pod that still waits half a minute later although there is room", func() {
		preview, err := NewPreview(UsualSettings)
		Expect(err).NotTo(HaveOccurred())
		o := spare()
		o.Nodes = append(o.Nodes, fixture.Node("free"))
		o.Pods = []*corev1.Pod{Pod("picky", 1000)}
		for age, outcome := range []plan.Outcome{plan.HasRoom, plan.HasRoom, plan.Doubtful} {
			Expect(preview.SetObjects(o, Noon.Add(time.Duration(age)*plan.DefaultPatience/2))).To(Succeed())
			Expect(preview.Plan().Pods).To(HaveKeyWithValue("default/picky", outcome))
		}
	})

	It("raises replicas in a copy for a pod that waits, and for none that does not", func() {
		preview, err := NewPreview(UsualSettings)
		Expect(err).NotTo(HaveOccurred())
		o := spare()
		Expect(preview.SetObjects(o, Noon)).To(Succeed())
		Expect(preview.Plan().Raises).To(BeEmpty())
		o.Pods = []*corev1.Pod{Pod("late", 3000)}
		Expect(preview.SetObjects(o, Noon)).To(Succeed())
		plan := preview.Plan()
		Expect(plan.Raises).To(HaveLen(1))
		Expect(plan.Raises[0]).To(And(HaveField("By", 1), HaveField("Machines", []string{"a"})))
		d := plan.Raises[0].After(o.Deployments[0])
		Expect(d.Spec.Replicas).To(BeEquivalentTo(1))
		Expect(d.Annotations).To(And(HaveKeyWithValue(v1alpha1.AppliedReplicasAnnotation, "1"), HaveKeyWithValue(v1alpha1.BoundsAnnotation, "0:4:1")))
		Expect(o.Deployments[0].Spec.Replicas).To(BeZero(), "what was shown stays as it was")
	})
})

var _ = DescribeTable("A machine with the mark", func(change func(*corev1.Pod), want string) {
	preview, err := NewPreview(UsualSettings)
	Expect(err).NotTo(HaveOccurred())
	o := spare()
	there := Pod("there", 500)
	there.Spec.NodeName = "a"
	change(there)
	o.Pods = []*corev1.Pod{there, Pod("late", 3000)}
	Expect(preview.SetObjects(o, Noon)).To(Succeed())
	Expect(Raises(preview.Plan())).To(Equal(want))
},
	Entry("serves where a pod runs that does not tolerate the taint, and so has room for others", func(*corev1.Pod) {}, ""),
	Entry("is in reserve beside the kubelet's own pods", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }, "p+1(a)"),
	Entry("is in reserve beside pods that tolerate the taint", func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: v1alpha1.ReserveTaintKey, Operator: corev1.TolerationOpExists}}
	}, "p+1(a)"),
	Entry("is in reserve where the pod has only been promised a place", func(p *corev1.Pod) { p.Spec.NodeName, p.Status.NominatedNodeName = "", "a" }, "p+1(a)"),
)

var _ = It("A preview puts the DaemonSets of the system first, as the controller does, whatever the names of other priority classes", func() {
	preview, err := NewPreview(UsualSettings)
	Expect(err).NotTo(HaveOccurred())
	o := spare()
	for class, milli := range map[string]int64{"system-node-critical": 2000, "vpn": 3000} {
		set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: class, UID: types.UID(class)}}
		set.Spec.Template.Spec = Pod("daemon", milli).Spec
		set.Spec.Template.Spec.PriorityClassName = class
		o.Daemons = append(o.Daemons, set)
	}
	o.Pods = []*corev1.Pod{Pod("late", 1500)}
	Expect(preview.SetObjects(o, Noon)).To(Succeed())
	Expect(Raises(preview.Plan())).To(Equal("p+1(a)"))
})

// binder is a store of pods in which one is bound as soon as the waiting pods have been listed.
type binder struct {
	cache.Indexer
	pod  *corev1.Pod
	node string
}

func (b *binder) ByIndex(index, value string) ([]any, error) {
	found, err := b.Indexer.ByIndex(index, value)
	return found, errors.Join(err, b.bind())
}

func (b *binder) List() []any {
	found := b.Indexer.List()
	if err := b.bind(); err != nil {
		panic(err)
	}
	return found
}

func (b *binder) bind() error {
	bound := b.pod.DeepCopy()
	bound.Spec.NodeName = b.node
	return b.Update(bound)
}

var _ = Describe("A look at pods", func() {
	It("tells them apart though they have no uid, as in a file", func() {
		for range 20 {
			preview, err := NewPreview(UsualSettings)
			Expect(err).NotTo(HaveOccurred())
			o := spare()
			large, running := Pod("large", 4000), Pod("running", 500)
			large.UID, running.UID, running.Spec.NodeName = "", "", "b"
			o.Pods, o.Nodes = []*corev1.Pod{running, large}, append(o.Nodes, NodeIn("b", "z"))
			Expect(preview.SetObjects(o, Noon)).To(Succeed())
			Expect(Raises(preview.Plan())).To(Equal("p+1(a)"))
		}
	})

	It("does not count one twice that is bound meanwhile", func() {
		preview, err := NewPreview(UsualSettings)
		Expect(err).NotTo(HaveOccurred())
		o, late := spare(), Pod("late", 3000)
		o.Pods, o.Nodes = []*corev1.Pod{late, Pod("other", 1000)}, append(o.Nodes, NodeIn("b", "z")) // b has room for both
		Expect(preview.SetObjects(o, Noon)).To(Succeed())
		preview.Interpose(func(pods cache.Indexer) cache.Indexer { return &binder{Indexer: pods, pod: late, node: "b"} })
		Expect(Raises(preview.Plan())).To(BeEmpty())
	})
})

var _ = Describe("What one decision looks at", func() {
	It("is bounded for a preview, too", func() {
		preview, err := NewPreview(UsualSettings)
		Expect(err).NotTo(HaveOccurred())
		o := spare()
		for i := range plan.MaxPods + 10 {
			o.Pods = append(o.Pods, Pod(fmt.Sprintf("x-%d", i), 5000, InNamespace("crowd")))
		}
		o.Pods = append(o.Pods, Pod("p", 1000, excessive))
		o.Pods = append(o.Pods, Pod("q", 1000))
		Expect(preview.SetObjects(o, Noon)).To(Succeed())
		p := preview.Plan()
		Expect(Raises(p)).To(Equal("p+1(a)"))
		Expect(p.Beyond).To(Equal(12))
		Expect(p.Pods).To(And(HaveLen(plan.MaxPods), HaveKeyWithValue("default/p", plan.Unclear)))
	})
})

// excessive gives a pod more rules than are read of one.
func excessive(p *corev1.Pod) {
	p.Spec.TopologySpreadConstraints = slices.Repeat([]corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: Zone, WhenUnsatisfiable: corev1.DoNotSchedule}}, fit.MaxRules+1)
}
