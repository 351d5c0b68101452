// SPDX-License-Identifier: Apache-2.0

package capacitybuffer_test

import (
	"fmt"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	. "github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/test/builders/capacitybuffer"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// previewOf returns a preview of objects and of what buffers refer to.
func previewOf(o Objects, refers map[string][]any) *Preview {
	GinkgoHelper()
	p, err := NewPreview(Namespace, References{Objects: refers, Scales: new(ScaleReader)})
	Expect(err).NotTo(HaveOccurred())
	Expect(p.SetObjects(o, Now)).To(Succeed())
	return p
}

// agent is a DaemonSet that runs one pod on each machine.
func agent(name, requests, class string, age time.Duration) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, CreationTimestamp: metav1.NewTime(Now.Add(-age))},
		Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: PodSpec(requests, func(s *corev1.PodSpec) {
			s.PriorityClassName = class
			s.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		})}},
	}
}

var _ = Describe("The controller observes", func() {
	webTemplate := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: Shop, Name: "web"}, Template: corev1.PodTemplateSpec{Spec: PodSpec("cpu=1")}}
	refers := func(quotas ...any) map[string][]any {
		return map[string][]any{"PodTemplate": {webTemplate}, KindQuota: quotas}
	}
	three := func() *v1beta1.CapacityBuffer { return Chunks("b", 3, "cpu=1").Object }

	It("the generation of a PodTemplate, which the status of a buffer names", func() {
		template := webTemplate.DeepCopy()
		template.Generation = 7
		d := previewOf(shown(three()), map[string][]any{"PodTemplate": {template}}).Plan().Decisions[0]
		Expect(d.After(Now).Status.PodTemplateGeneration).To(HaveValue(BeEquivalentTo(7)))
	})

	DescribeTable("the ResourceQuotas of the namespaces with buffers",
		func(want string, quotas ...any) {
			Expect(Outcome(previewOf(shown(three()), refers(quotas...)).Plan().Decisions[0])).To(Equal(want))
		},
		Entry("none", "3"),
		Entry("one", "2 of 3 by q", Quota("q", "cpu=9", "cpu=7")),
		Entry("one with a scope", "3", Quota("q", "cpu=0", "", WithScopes(corev1.ResourceQuotaScopeTerminating))),
		Entry("one with a selector", "3", Quota("q", "cpu=0", "", WithClasses(corev1.ScopeSelectorOpIn, "important"))),
		Entry("one of another namespace", "3", Quota("q", "cpu=0", "", func(q *corev1.ResourceQuota) { q.Namespace = Namespace })),
	)

	DescribeTable("the DaemonSets, those of the system and old ones first",
		func(want string, daemons ...*appsv1.DaemonSet) {
			o := shown(Chunks("b", 2, "cpu=2").Object)
			o.Daemons = daemons
			two := &corev1.PodTemplate{ObjectMeta: webTemplate.ObjectMeta, Template: corev1.PodTemplateSpec{Spec: PodSpec("cpu=2")}}
			Expect(Requests(previewOf(o, map[string][]any{"PodTemplate": {two}}).Plan())).To(Equal(want))
		},
		Entry("none", "a=1"),
		Entry("one", "a=2", agent("x", "cpu=1", "", 0)),
		Entry("one too many", "a=2", agent("x", "cpu=2", "system-node-critical", 0), agent("a", "cpu=3", "", time.Hour)),
		Entry("one of a class whose name comes after the system's", "a=2", agent("x", "cpu=2", "system-node-critical", 0), agent("y", "cpu=3", "vpn", time.Hour)),
		Entry("an old one that leaves no room", "", agent("x", "cpu=2", "", 0), agent("y", "cpu=3", "", time.Hour)),
		Entry("an old one that leaves room", "a=2", agent("x", "cpu=3", "", 0), agent("y", "cpu=2", "", time.Hour)),
		Entry("two of the same age, by name", "a=2", agent("y", "cpu=3", "", 0), agent("x", "cpu=2", "", 0)),
		Entry("two of the same age, by name, without room", "", agent("y", "cpu=2", "", 0), agent("x", "cpu=3", "", 0)),
	)

	It("what the newest pod of a DaemonSet requests, as admission changes it", func() {
		o, set := shown(Chunks("b", 2, "cpu=2").Object), agent("agent", "cpu=1", "", 0)
		set.UID, set.Annotations = "agent", map[string]string{appsv1.DeprecatedTemplateGeneration: "2"}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: "agent-1", Labels: map[string]string{"pod-template-generation": "2"}}, Spec: PodSpec("cpu=3")}
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: set.Name, UID: set.UID, Controller: ptr.To(true)}}
		o.Daemons, o.Pods = []*appsv1.DaemonSet{set}, []*corev1.Pod{pod}
		two := &corev1.PodTemplate{ObjectMeta: webTemplate.ObjectMeta, Template: corev1.PodTemplateSpec{Spec: PodSpec("cpu=2")}}
		requested := func() string { return Requests(previewOf(o, map[string][]any{"PodTemplate": {two}}).Plan()) }
		Expect(requested()).To(BeEmpty(), "no chunk fits beside it")

		pod.Namespace, pod.DeletionTimestamp = Shop, &metav1.Time{Time: Now}
		Expect(requested()).To(Equal("a=2"), "a user of another namespace names the DaemonSet as the owner of a pod, and keeps it by a finalizer")
	})

	It("the DaemonSets of each namespace, however many another one has", func() {
		o := shown(Chunks("b", 2, "cpu=2").Object)
		o.Daemons = []*appsv1.DaemonSet{agent("agent", "cpu=1", "", 0)}
		for i := range 200 {
			other := agent(fmt.Sprintf("d%d", i), "cpu=99", "system-node-critical", time.Hour)
			other.Namespace = Shop
			o.Daemons = append(o.Daemons, other)
		}
		two := &corev1.PodTemplate{ObjectMeta: webTemplate.ObjectMeta, Template: corev1.PodTemplateSpec{Spec: PodSpec("cpu=2")}}
		Expect(Requests(previewOf(o, map[string][]any{"PodTemplate": {two}}).Plan())).To(Equal("a=2"))
	})

	It("what machines are like, also while cluster-autoscaler drains one", func() {
		o := shown(three())
		set, machines := fixture.Spares(o.Deployments[0], 1, 1)
		set.Spec.Template = o.Deployments[0].Spec.Template
		draining := fixture.Node("n", func(n *corev1.Node) {
			n.Spec.ProviderID, n.Spec.Taints = "", []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Effect: corev1.TaintEffectNoSchedule}}
		})
		machines[0].Labels, machines[0].Annotations = map[string]string{mcm.NodeLabelKey: draining.Name}, nil // it serves
		o.Sets, o.Machines, o.Nodes = []*mcm.MachineSet{set}, machines, []*corev1.Node{draining}
		o.Reserves = []*autoscaling.Reserve{plan.NewReserve(Namespace, plan.Request{Pool: "a", Machines: 1})}
		Expect(previewOf(o, refers()).Plan().Requests).To(BeEmpty())
	})

	It("what machines are like, also while those in reserve do not offer their devices yet", func() {
		gpu := &corev1.PodTemplate{ObjectMeta: webTemplate.ObjectMeta, Template: corev1.PodTemplateSpec{Spec: PodSpec("nvidia.com/gpu=1")}}
		o := shown(three())
		o.Classes[0].NodeTemplate.Capacity["gpu"] = resource.MustParse("4")
		set, machines := fixture.Spares(o.Deployments[0], 1, 1)
		set.Spec.Template = o.Deployments[0].Spec.Template
		machines[0].Labels = map[string]string{mcm.NodeLabelKey: "n"}
		o.Sets, o.Machines = []*mcm.MachineSet{set}, machines
		o.Nodes = []*corev1.Node{fixture.Node("n", func(n *corev1.Node) {
			n.Spec.ProviderID, n.Annotations = "", map[string]string{machine.ReserveAnnotation: "NoSchedule"}
			n.Spec.Taints = []corev1.Taint{{Key: machine.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}}
		})}
		o.Reserves = []*autoscaling.Reserve{plan.NewReserve(Namespace, plan.Request{Pool: "a", Machines: 1})}
		Expect(previewOf(o, map[string][]any{"PodTemplate": {gpu}}).Plan().Requests).To(BeEmpty())
	})

	It("neither buffers that are being deleted nor those of others", func() {
		gone, theirs := three(), three()
		gone.DeletionTimestamp, theirs.Name = &metav1.Time{Time: Now}, "c"
		theirs.Spec.ProvisioningStrategy = ptr.To(v1beta1.StrategyActive)
		o := shown(gone)
		o.Buffers = append(o.Buffers, theirs)
		Expect(previewOf(o, refers()).Plan().Decisions).To(BeEmpty())
	})

	It("its own Reserves, and not those that are being deleted or that somebody else has given their name", func() {
		o := shown(three())
		request := plan.Request{Pool: "a", Machines: 9}
		ours := plan.NewReserve(Namespace, request)
		o.Reserves = []*autoscaling.Reserve{ours}
		Expect(Requests(previewOf(o, refers()).Plan())).To(Equal("a=1"))
		Expect(previewOf(o, refers()).Plan().Requests[0].Reserve).To(Equal(ours))

		going := plan.NewReserve(Namespace, request)
		going.DeletionTimestamp = &metav1.Time{Time: Now}
		o.Reserves[0] = going
		Expect(previewOf(o, refers()).Plan().Requests[0].Reserve).To(BeNil())

		theirs := plan.NewReserve(Namespace, request)
		theirs.Labels = nil
		o.Reserves[0] = theirs
		Expect(previewOf(o, refers()).Plan().Requests).To(BeEmpty())
	})

	DescribeTable("what a buffer refers to",
		func(ref, want string) {
			p, err := NewPreview(Namespace, References{Objects: map[string][]any{"Job": {
				&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: Shop, Name: "ended"}, Status: batchv1.JobStatus{CompletionTime: &metav1.Time{Time: Now}}},
				&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: Shop, Name: "runs"}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: PodSpec("cpu=1")}}},
			}}})
			Expect(err).NotTo(HaveOccurred())
			Expect(p.SetObjects(shown(NewBuffer("b", "{scalableRef: "+ref+", replicas: 1}").Object), Now)).To(Succeed())
			Expect(Outcome(p.Plan().Decisions[0])).To(Equal(want))
		},
		Entry("a Job", "{apiGroup: batch, kind: Job, name: runs}", "1"),
		Entry("a Job that has ended", "{apiGroup: batch, kind: Job, name: ended}", reason.WorkloadNotFound),
		Entry("a Job of another group", "{apiGroup: example.com, kind: Job, name: runs}", reason.WorkloadUnread),
		Entry("a kind without anyone to read its scale", "{apiGroup: example.com, kind: Rollout, name: web}", reason.WorkloadUnread),
	)

	DescribeTable("the newest pod of a workload of another kind",
		func(want string, pods ...*corev1.Pod) {
			o := shown(three())
			o.Pods = pods
			newest := previewOf(o, refers()).NewestPod(Shop, &plan.Scale{Selector: labels.SelectorFromSet(labels.Set{"app": "web"})})
			if want == "" {
				Expect(newest).To(BeNil())
				return
			}
			Expect(newest.Name).To(Equal(want))
		},
		Entry("none", ""),
		Entry("the only one", "x", podOf("x", 0)),
		Entry("of two", "y", podOf("x", time.Hour), podOf("y", time.Minute)),
		Entry("of two, in another order", "y", podOf("y", time.Minute), podOf("x", time.Hour)),
		Entry("of two of the same age", "x", podOf("y", 0), podOf("x", 0)),
		Entry("one of another workload", "", podOf("x", 0, func(p *corev1.Pod) { p.Labels["app"] = "other" })),
		Entry("one of another namespace", "", podOf("x", 0, func(p *corev1.Pod) { p.Namespace = Namespace })),
		Entry("one that is being deleted", "x", podOf("x", time.Hour), podOf("y", 0, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: Now} })),
		Entry("one that is being deleted, before there is another", "x", podOf("x", 0, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: Now} })),
		Entry("the only one that is not being deleted", "x", podOf("y", 0, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: Now} }), podOf("x", time.Hour)),
		Entry("one that has ended", "x", podOf("x", time.Hour), podOf("y", 0, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })),
		Entry("one that has failed", "", podOf("y", 0, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })),
	)

	It("looks at each pod once for each workload, however many buffers name it (law 8)", func() {
		o, asked := shown(three()), 0
		o.Pods = []*corev1.Pod{podOf("x", time.Hour), podOf("y", time.Minute)}
		for _, b := range previewOf(o, refers()).NewestPods(Shop, &plan.Scale{Selector: counted{labels.SelectorFromSet(labels.Set{"app": "web"}), &asked}}, 50) {
			Expect(b.Newest.Name).To(Equal("y"))
		}
		Expect(asked).To(BeNumerically("<=", 2), "one is older than the other")
	})
})

// counted is a selector that counts what it is asked.
type counted struct {
	labels.Selector
	asked *int
}

func (c counted) Matches(l labels.Labels) bool {
	*c.asked++
	return c.Selector.Matches(l)
}

// podOf is a pod of the workload web.
func podOf(name string, age time.Duration, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: Shop, Name: name, Labels: map[string]string{"app": "web"}, CreationTimestamp: metav1.NewTime(Now.Add(-age))}}
	p.Spec = PodSpec("cpu=1")
	for _, c := range change {
		c(p)
	}
	return p
}

var _ = DescribeTable("An update matters",
	func(is any, matters bool) {
		q, d := Quota("q", "cpu=9", "cpu=7"), deployed(func(*appsv1.Deployment) {})
		if _, of := is.(*corev1.ResourceQuota); of {
			Expect(Differ(q, is)).To(Equal(matters))
			return
		}
		Expect(Differ(d, is)).To(Equal(matters))
	},
	Entry("of a quota, if nothing changes, not", Quota("q", "cpu=9", "cpu=7"), false),
	Entry("of a quota, if only its annotations change, not", Quota("q", "cpu=9", "cpu=7", func(q *corev1.ResourceQuota) { q.Annotations = map[string]string{"a": "b"} }), false),
	Entry("of what a quota allows", Quota("q", "cpu=10", "cpu=7"), true),
	Entry("of what of a quota is used", Quota("q", "cpu=9", "cpu=8"), true),
	Entry("of the scopes of a quota", Quota("q", "cpu=9", "cpu=7", WithScopes(corev1.ResourceQuotaScopeTerminating)), true),
	Entry("of the selector of a quota", Quota("q", "cpu=9", "cpu=7", WithClasses(corev1.ScopeSelectorOpExists)), true),
	Entry("of a workload, if nothing changes, not", deployed(func(*appsv1.Deployment) {}), false),
	Entry("of a workload, if only its status changes, not", deployed(func(d *appsv1.Deployment) { d.Status.Replicas = 3 }), false),
	Entry("of the replicas of a workload", deployed(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](3) }), true),
	Entry("of the template of a workload", deployed(func(d *appsv1.Deployment) { d.Spec.Template.Spec = PodSpec("cpu=2") }), true),
	Entry("of a workload that was created anew", deployed(func(d *appsv1.Deployment) { d.UID = "other" }), true),
)

// deployed is a Deployment of two pods.
func deployed(change func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: Shop, Name: "web", UID: "uid"}}
	d.Spec.Replicas, d.Spec.Template.Spec = ptr.To[int32](2), PodSpec("cpu=1")
	change(d)
	return d
}

var _ = DescribeTable("The free room on a machine counts (law 14)",
	func(change func(*pool.Machine), counts bool) {
		m := pool.Machine{Object: &mcm.Machine{}, Node: &corev1.Node{}}
		m.Object.Status.CurrentStatus.Phase = mcm.MachineRunning
		m.Node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		change(&m)
		Expect(AcceptsPods(m)).To(Equal(counts))
	},
	Entry("if it serves", func(*pool.Machine) {}, true),
	Entry("if it has the taints of its template", func(m *pool.Machine) {
		m.Node.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
		m.Object.Spec.NodeTemplateSpec.Spec.Taints = m.Node.Spec.Taints
	}, true),
	Entry("not before it runs", func(m *pool.Machine) { m.Object.Status.CurrentStatus.Phase = mcm.MachinePending }, false),
	Entry("not in reserve", func(m *pool.Machine) {
		metav1.SetMetaDataAnnotation(&m.Object.ObjectMeta, machine.ReserveAnnotation, "x")
	}, false),
	Entry("not while its Node is still closed", func(m *pool.Machine) {
		m.Node.Spec.Taints = []corev1.Taint{{Key: machine.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}}
	}, false),
	Entry("not if it is to be deleted", func(m *pool.Machine) { m.Named = true }, false),
	Entry("not without a Node", func(m *pool.Machine) { m.Node = nil }, false),
	Entry("not if its Node is not ready", func(m *pool.Machine) { m.Node.Status.Conditions = nil }, false),
	Entry("not if its Node is cordoned", func(m *pool.Machine) { m.Node.Spec.Unschedulable = true }, false),
	Entry("not if its Node has another taint", func(m *pool.Machine) {
		m.Node.Spec.Taints = []corev1.Taint{{Key: "broken", Effect: corev1.TaintEffectNoSchedule}}
	}, false),
)
