// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/overview"
	. "github.com/evenkeel/evenkeel/internal/plugin/explain"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	machineplan "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/preparation/plan"
	"github.com/evenkeel/evenkeel/test/fixture"
)

func TestExplain(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Explain")
}

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// formatPast formats a time in the past: when, and how long ago.
func formatPast(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func owned(kind string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{Kind: kind, Name: string(uid), UID: uid, Controller: ptr.To(true)}}
}

// world has MachineDeployment "pool": a and b serve, c and d are in reserve, d the younger one.
type world struct{ overview.Objects }

func newWorld() *world {
	w := &world{overview.Objects{At: now}}
	plain := fixture.MachineDeployment("pool", 2)
	d := &v1alpha1.MachineDeployment{ObjectMeta: plain.ObjectMeta}
	d.Spec.StockMachineDeploymentSpec = plain.Spec
	d.UID, d.Spec.ExcessReplicas, d.Spec.ReserveWitness, d.CreationTimestamp = "pool", ptr.To(int32(2)), true, formatPast(time.Hour)
	d.Annotations = map[string]string{v1alpha1.AppliedExcessAnnotation: "2", v1alpha1.WantedExcessAnnotation: "2", revision: "1"}
	d.Finalizers = []string{machineplan.Finalizer}
	w.Deployments = []*v1alpha1.MachineDeployment{d}
	w.condition("True", "Complete", "all of it")
	set := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "pool", Namespace: d.Namespace, UID: "set", OwnerReferences: owned("MachineDeployment", d.UID)}}
	set.Finalizers, set.Labels = d.Finalizers, hashed()
	set.Annotations = map[string]string{revision: "1", "deployment.kubernetes.io/desired-replicas": "4", "deployment.kubernetes.io/max-replicas": "5"}
	set.Spec = mcm.MachineSetSpec{Replicas: 4, Selector: &metav1.LabelSelector{MatchLabels: hashed()}, Template: *d.Spec.Template.DeepCopy()}
	set.Spec.Template.Labels = hashed()
	w.Sets = []*mcm.MachineSet{set}
	for i, name := range []string{"a", "b", "c", "d"} {
		w.machine(name, time.Duration(60-10*i)*time.Minute, i >= 2)
	}
	return w
}

const revision = "deployment.kubernetes.io/revision"

// hashed are the labels of the MachineSet and its machines.
func hashed() map[string]string {
	return map[string]string{"name": "pool", mcm.DefaultMachineDeploymentUniqueLabelKey: "1"}
}

func (w *world) condition(status, reason, message string) {
	w.Deployments[0].Status.Conditions = []mcm.MachineDeploymentCondition{{
		Type: v1alpha1.ReserveReady, Status: mcm.ConditionStatus(status), Reason: reason, Message: message, LastTransitionTime: formatPast(time.Minute),
	}}
}

func (w *world) machine(name string, age time.Duration, reserve bool) {
	m := fixture.Machine(name, func(m *mcm.Machine) {
		m.UID, m.OwnerReferences, m.CreationTimestamp = types.UID(name), owned("MachineSet", "set"), formatPast(age)
		m.Labels, m.Spec.ProviderID = hashed(), "virtual:///"+name
		m.Labels[mcm.NodeLabelKey] = name
		m.Annotations = map[string]string{}
		m.Status.CurrentStatus.Phase = mcm.MachineRunning
		if reserve {
			taint := corev1.Taint{Key: v1alpha1.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}
			m.Annotations[v1alpha1.ReserveAnnotation] = v1alpha1.Reserve{
				Since: now.Add(-age), Taints: []corev1.Taint{taint},
				Annotations: map[string]string{v1alpha1.ReserveAnnotation: now.Add(-age).Format(time.RFC3339), v1alpha1.ScaleDownDisabledAnnotation: "true"},
			}.String()
			m.Annotations[v1alpha1.ReserveStateAnnotation] = fmt.Sprintf("Held since %s; node %s carries the reserve taint", now.Add(-age).Format(time.RFC3339), name)
			m.Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{taint}
		}
	})
	w.Machines = append(w.Machines, m)
	w.Nodes = append(w.Nodes, fixture.Node(name, func(n *corev1.Node) {
		if reserve {
			n.Spec.Taints = m.Spec.NodeTemplateSpec.Spec.Taints
			n.Annotations = map[string]string{v1alpha1.ReserveAnnotation: now.Add(-age).Format(time.RFC3339), v1alpha1.ScaleDownDisabledAnnotation: "true"}
		}
	}))
}

func (w *world) named(name string) *mcm.Machine {
	return w.Machines[slices.IndexFunc(w.Machines, func(m *mcm.Machine) bool { return m.Name == name })]
}

// text is an account in one piece.
func text(a Account) string {
	lines := []string{a.Title}
	for _, f := range a.Facts {
		lines = append(lines, f.Name+" = "+f.Value)
	}
	return strings.Join(slices.Concat(lines, a.Why, a.Next, a.See), "\n")
}

func machine(w *world, name string) string {
	GinkgoHelper()
	a, err := Machine(w.Objects, name)
	Expect(err).NotTo(HaveOccurred())
	return text(a)
}

func deployment(w *world) string {
	GinkgoHelper()
	a, err := Deployment(w.Objects, "pool")
	Expect(err).NotTo(HaveOccurred())
	return text(a)
}

var _ = Describe("A machine", func() {
	It("in reserve has its places among those that serve, and that go", func() {
		w := newWorld()
		Expect(machine(w, "c")).To(And(
			HavePrefix("Machine c: reserve ready\n"), ContainSubstring("MachineDeployment = pool: R 2, X 2, A 2"),
			ContainSubstring("it is the 1st to serve"), ContainSubstring("it is the 2nd to be deleted"),
			ContainSubstring("since 11:20:00 UTC (40m ago)"), ContainSubstring("Priority = 3: the default")))
		Expect(machine(w, "d")).To(And(ContainSubstring("it is the 2nd to serve"), ContainSubstring("it is the 1st to be deleted")))
	})

	It("in reserve has its place among those that go, too, if a Reserve requests it", func() {
		w := newWorld()
		d := w.Deployments[0]
		d.Spec.ExcessReplicas = nil
		delete(d.Annotations, v1alpha1.WantedExcessAnnotation)
		d.Annotations[v1alpha1.RequestedExcessAnnotation] = "office-hours=2"
		Expect(machine(w, "d")).To(ContainSubstring("it is the 1st to be deleted"))
		Expect(deployment(w)).To(ContainSubstring("When the excess falls by one, machine d is deleted"))
	})

	It("that serves is reported as serving, with the number of its pods", func() {
		w := newWorld()
		p := fixture.Pod("p")
		p.Spec.NodeName = "a"
		w.Pods = []*corev1.Pod{p}
		Expect(machine(w, "a")).To(And(HavePrefix("Machine a: working\n"), ContainSubstring("Pods = 1 pod that a drain would evict"),
			ContainSubstring("2 machines are desired, and 2 work"), Not(ContainSubstring("to serve"))))
		Expect(machine(w, "b")).To(ContainSubstring("Pods = none that a drain would evict"))
		w.PodsUnknown = true
		Expect(machine(w, "b")).To(ContainSubstring("Pods = cannot be read"))
	})

	It("that is about to serve, because replicas were raised", func() {
		w := newWorld()
		w.Deployments[0].Spec.Replicas = 3
		Expect(machine(w, "c")).To(ContainSubstring("It is about to serve (Released): the taint is removed."))
		Expect(machine(w, "d")).NotTo(ContainSubstring("about to serve"))
	})

	It("that is about to be deleted, because the excess was lowered", func() {
		w := newWorld()
		w.Deployments[0].Spec.ExcessReplicas = ptr.To(int32(1))
		Expect(machine(w, "d")).To(ContainSubstring("It is deleted next (Shrunk)"))
		Expect(machine(w, "c")).NotTo(ContainSubstring("next to go"))
	})

	It("that failed is explained, with the machine that replaces it", func() {
		w := newWorld()
		w.named("a").Status.CurrentStatus.Phase = mcm.MachineUnknown
		Expect(machine(w, "a")).To(And(HavePrefix("Machine a: failed\n"), ContainSubstring("It does not work: its Node does not respond."), ContainSubstring("replaces it at once")))
		Expect(machine(w, "c")).To(ContainSubstring("It is about to serve"))
	})

	It("that boots in reserve is shown with the time by which it must be ready", func() {
		w := newWorld()
		w.named("d").Status.CurrentStatus.Phase = mcm.MachinePending
		w.named("d").CreationTimestamp = formatPast(5 * time.Minute)
		Expect(machine(w, "d")).To(ContainSubstring("If it is not ready in 10m (12:10:00 UTC), it counts as a failed creation"))
	})

	It("that boots in reserve is judged by the setting of the manager", func() {
		w := newWorld()
		w.named("d").Status.CurrentStatus.Phase = mcm.MachinePending
		w.named("d").CreationTimestamp = formatPast(20 * time.Minute)
		w.BootPatience = time.Hour
		Expect(machine(w, "d")).To(ContainSubstring("If it is not ready in 40m (12:40:00 UTC), it counts"))
		w.BootPatience = math.MaxInt64 // no limit
		Expect(machine(w, "d")).NotTo(ContainSubstring("not ready in"))
	})

	DescribeTable("that is leaving is shown with what deletes it",
		func(want string, change func(*world)) {
			w := newWorld()
			change(w)
			Expect(machine(w, "a")).To(And(HavePrefix("Machine a: leaving\n"), ContainSubstring(want), ContainSubstring("drains it")))
		},
		Entry(nil, "It has been leaving since 11:59:00 UTC (60s ago)", func(w *world) { w.named("a").DeletionTimestamp = ptr.To(formatPast(time.Minute)) }),
		Entry(nil, "Its phase is Terminating.", func(w *world) { w.named("a").Status.CurrentStatus.Phase = mcm.MachineTerminating }),
		Entry(nil, "trigger-deletion-by-mcm", func(w *world) {
			w.Deployments[0].Annotations["node.machine.sapcloud.io/trigger-deletion-by-mcm"] = "a"
		}),
		Entry(nil, "marked it for deletion, with priority 1", func(w *world) {
			w.named("a").Annotations["machinepriority.machine.sapcloud.io"] = "1"
			w.named("a").Annotations["machine.sapcloud.io/marked-for-deletion-time"] = "2026-11-21T11:00:00Z"
		}),
		Entry(nil, "A client marked it for deletion with priority 1, and it has been leaving", func(w *world) {
			w.named("a").Annotations["machinepriority.machine.sapcloud.io"] = "1"
			w.named("a").DeletionTimestamp = ptr.To(formatPast(time.Minute))
		}),
	)

	It("without a MachineDeployment is not managed by Evenkeel", func() {
		w := newWorld()
		w.named("a").OwnerReferences = nil
		Expect(machine(w, "a")).To(HavePrefix("Machine a: without a MachineDeployment"))
	})

	It("that does not exist, or exists twice, is an error that names the remedy", func() {
		w := newWorld()
		w.Missing = []string{"nodes: no"}
		_, err := Machine(w.Objects, "x")
		Expect(err).To(And(MatchError(ErrNotFound), MatchError(ContainSubstring("could not read: nodes: no"))))
		twin := w.named("a").DeepCopy()
		twin.Namespace = "another"
		w.Machines = append(w.Machines, twin)
		_, err = Machine(w.Objects, "a")
		Expect(err).To(And(MatchError(ErrAmbiguous), MatchError(ContainSubstring("another, default"))))
	})
})

var _ = Describe("A MachineDeployment", func() {
	It("at rest is reported as such, with the machines that would serve or be deleted next", func() {
		Expect(deployment(newWorld())).To(And(
			HavePrefix("MachineDeployment pool: 2 of 2 machines work, 2 of 2 in reserve ready\n"), ContainSubstring("The excess is 2, from spec.excessReplicas."),
			ContainSubstring("The reserve has the desired size"), ContainSubstring("It is at rest"),
			ContainSubstring("When replicas are raised, machine c serves at once"), ContainSubstring("When the excess falls by one, machine d is deleted")))
	})

	It("that is invalid is not said to be at rest", func() {
		w := newWorld()
		w.Deployments[0].Spec.Strategy.Type = ""
		Expect(deployment(w)).To(And(
			ContainSubstring("Nothing happens to its machines until its spec is corrected: spec.strategy.type must be Recreate, RollingUpdate or InPlaceUpdate."),
			Not(ContainSubstring("at rest")), Not(ContainSubstring("When replicas are raised"))))
	})

	It("that is changing is shown with what is about to happen", func() {
		w := newWorld()
		w.Deployments[0].Spec.Replicas = 3
		Expect(deployment(w)).To(And(ContainSubstring("Machine c is about to serve (Released)."), Not(ContainSubstring("at rest"))))
		w = newWorld()
		w.Nodes[2].Spec.Taints = nil
		Expect(deployment(w)).To(And(ContainSubstring("The reserve taint of 1 Node is about to change."), Not(ContainSubstring("at rest"))))
		w = newWorld()
		w.Deployments[0].Spec.ExcessReplicas = ptr.To(int32(3))
		Expect(deployment(w)).To(ContainSubstring("The applied excess is about to become 3."))
		Expect(deployment(w)).To(ContainSubstring("The applied excess is 2, not 3"))
		w = newWorld()
		w.Deployments[0].Spec.ExcessReplicas = ptr.To(int32(1))
		Expect(deployment(w)).To(ContainSubstring("Machine d is about to be deleted (Shrunk)."))
	})

	It("is explained as without a target cluster where a user may read pods and no Nodes", func() {
		w := newWorld()
		w.Deployments[0].Spec.ExcessReplicas = ptr.To(int32(1))
		d := w.named("d")
		d.Annotations[v1alpha1.ReserveAnnotation] = v1alpha1.Reserve{Since: now.Add(-time.Minute), Taints: d.Spec.NodeTemplateSpec.Spec.Taints}.String()
		w.Nodes, w.NodesUnknown = nil, true
		Expect(deployment(w)).To(ContainSubstring("Machine c is about to be deleted (Shrunk)."), "pods may be bound to d once its Node registers")
	})

	DescribeTable("shows the source of its excess",
		func(want string, change func(*v1alpha1.MachineDeployment)) {
			w := newWorld()
			change(w.Deployments[0])
			Expect(deployment(w)).To(ContainSubstring(want))
		},
		Entry(nil, "The excess is 1, its share of the pool's", func(d *v1alpha1.MachineDeployment) { d.Annotations[v1alpha1.ShareAnnotation] = "1" }),
		Entry(nil, `The excess is the third part of the bounds "1:9:1"`, func(d *v1alpha1.MachineDeployment) { d.Annotations[v1alpha1.BoundsAnnotation] = "1:9:1" }),
		Entry(nil, "Of the 5 requested, max 3 leaves room for 1.", func(d *v1alpha1.MachineDeployment) { d.Annotations[v1alpha1.BoundsAnnotation] = "1:3:5" }),
		Entry(nil, "The excess is 2147483647, from spec.excessReplicas.", func(d *v1alpha1.MachineDeployment) { d.Spec.ExcessReplicas = ptr.To(int32(math.MaxInt32)) }),
		Entry(nil, "before that field was removed", func(d *v1alpha1.MachineDeployment) { d.Spec.ExcessReplicas, d.Spec.ReserveWitness = nil, false }),
		Entry(nil, "No excess is requested", func(d *v1alpha1.MachineDeployment) { d.Spec.ExcessReplicas = nil }),
		Entry(nil, "No reserve is desired: the annotation", func(d *v1alpha1.MachineDeployment) { d.Annotations[v1alpha1.DrainReserveAnnotation] = "true" }),
		Entry(nil, "No excess is requested", func(d *v1alpha1.MachineDeployment) { d.Spec.ExcessReplicas, d.Annotations = nil, nil }),
	)

	It("says what max leaves room for only if that is less than what is requested", func() {
		w := newWorld()
		w.Deployments[0].Annotations[v1alpha1.BoundsAnnotation] = "1:3:50%"
		Expect(deployment(w)).NotTo(ContainSubstring("leaves room for"), "half of two machines fits")
		w.Deployments[0].Annotations[v1alpha1.BoundsAnnotation] = "1:3:51%"
		Expect(deployment(w)).To(ContainSubstring("Of the 51% requested, max 3 leaves room for 1."))
		w.Deployments[0].Annotations[v1alpha1.DrainReserveAnnotation] = "true"
		Expect(deployment(w)).NotTo(ContainSubstring("leaves room for"), "nothing is desired")
	})

	It("explains each reason that the condition of the reserve can have", func() {
		for _, r := range reason.ReserveReady {
			w := newWorld()
			w.Deployments[0].Status.Conditions = []v1alpha1.MachineDeploymentCondition{{Type: v1alpha1.ReserveReady, Status: "False", Reason: r.Name}}
			Expect(deployment(w)).To(ContainSubstring(r.Explain()), r.Name)
		}
	})
})

var _ = Describe("Images on machines in reserve", func() {
	It("are explained as far as they are", func() {
		w := newWorld()
		w.Deployments[0].Annotations[v1alpha1.PrepareAnnotation] = "[{namespace: shop, images: [web]}]"
		w.Deployments[0].Status.ReadyExcessReplicas = 1
		w.Pods = append(w.Pods, fixture.Pod("puller", func(p *corev1.Pod) {
			p.Spec.NodeName, p.Labels, p.OwnerReferences = w.Machines[2].Labels[mcm.NodeLabelKey], map[string]string{plan.Label: "web"}, owned("Node", "c")
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		}))
		a, err := Machine(w.Objects, "c")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Facts).To(ContainElement(Fact{"Images", "pulled"}))
		a, err = Deployment(w.Objects, "pool")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Facts).To(ContainElement(Fact{"Prepared", "1 of 2 ready reserve machines have the requested images"}))
	})

	It("are not mentioned where none are asked for", func() {
		a, err := Deployment(newWorld().Objects, "pool")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Facts).NotTo(ContainElement(HaveField("Name", "Prepared")))
	})
})

var _ = DescribeTable("DaemonSets that start after a release", func(want string, pods ...string) {
	w := newWorld()
	for i, text := range pods {
		name, node, _ := strings.Cut(text, " on ")
		w.Pods = append(w.Pods, fixture.Pod(fmt.Sprint("daemon", i), func(p *corev1.Pod) {
			p.Spec.NodeName, p.OwnerReferences = node, owned("DaemonSet", types.UID(name))
		}))
	}
	a, err := Deployment(w.Objects, "pool")
	Expect(err).NotTo(HaveOccurred())
	named := ContainElement(Fact{"After a release", want + ": pods of these DaemonSets start only then, because they do not tolerate the reserve taint"})
	if want == "" {
		named = Not(ContainElement(HaveField("Name", "After a release")))
	}
	Expect(a.Facts).To(named)
},
	Entry("run on all machines that work and on none in reserve", "default/log, default/net", "net on a", "net on b", "log on a", "log on b", "dns on a", "dns on b", "dns on c"),
	Entry("and not on some of them only", "", "net on a"),
)

var _ = Describe("Dedicated machines", func() {
	dedicated := func() *world {
		w := newWorld()
		w.Deployments[0].Annotations[v1alpha1.DedicatedAnnotation] = "shop/Deployment/web=1"
		metav1.SetMetaDataAnnotation(&w.Machines[2].ObjectMeta, v1alpha1.DedicatedAnnotation, "shop/Deployment/web")
		return w
	}

	It("are explained by their owner", func() {
		a, err := Machine(dedicated().Objects, "c")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Facts).To(ContainElement(Fact{"Dedicated to", "shop/Deployment/web"}))
		Expect(a.Why).To(ContainElement(ContainSubstring("only for waiting pods of shop/Deployment/web")))
		Expect(a.Next).NotTo(ContainElement(ContainSubstring("When replicas are raised")))
	})

	It("are not the next to serve", func() {
		a, err := Machine(dedicated().Objects, "d")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Next).To(ContainElement(ContainSubstring("it is the 1st to serve")))
		a, err = Deployment(dedicated().Objects, "pool")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Facts).To(ContainElement(HaveField("Value", HavePrefix("shop/Deployment/web=1"))))
		Expect(a.Next).To(ContainElement(ContainSubstring("machine d serves at once")))
	})
})

var _ = Describe("A machine whose MachineDeployment is gone, or hidden,", func() {
	It("is not said to be without a MachineDeployment if that could not be read", func() {
		w := newWorld()
		w.Sets, w.MachinesUnknown, w.Missing = nil, true, []string{"machinesets: no rights to list them"}
		Expect(machine(w, "c")).To(And(HavePrefix("Machine c: its MachineDeployment could not be read\n"), ContainSubstring("machinesets: no rights to list them"), Not(ContainSubstring("does not manage it"))))
		Expect(deployment(w)).To(ContainSubstring("Not everything could be read (machinesets: no rights to list them)"))
	})

	It("goes with its MachineDeployment, whatever its place", func() {
		w := newWorld()
		w.Deployments[0].DeletionTimestamp = ptr.To(formatPast(time.Minute))
		Expect(machine(w, "c")).To(And(ContainSubstring("Its MachineDeployment is being deleted"), Not(ContainSubstring("to serve"))))
		Expect(deployment(w)).To(And(ContainSubstring("It has been in deletion since 11:59:00 UTC (60s ago)"), Not(ContainSubstring("at rest")), Not(ContainSubstring("When replicas are raised"))))
	})
})

// elsewhere adds another namespace with a MachineDeployment of the same name, with five replicas and
// no reserve, and machines of their own.
func elsewhere(w *world) *v1alpha1.MachineDeployment {
	d, set := w.Deployments[0].DeepCopy(), w.Sets[0].DeepCopy()
	d.Namespace, d.UID, d.Spec.Replicas, d.Spec.ExcessReplicas, d.Annotations = "elsewhere", "elsewhere", 5, nil, nil
	set.Namespace, set.UID, set.OwnerReferences = d.Namespace, "elsewhere-set", owned("MachineDeployment", d.UID)
	w.Deployments, w.Sets = slices.Insert(w.Deployments, 0, d), slices.Insert(w.Sets, 0, set)
	m := w.named("a").DeepCopy()
	m.Namespace, m.Name, m.UID, m.OwnerReferences, m.Labels = d.Namespace, "e", "e", owned("MachineSet", set.UID), map[string]string{mcm.NodeLabelKey: "e"}
	w.Machines = append(w.Machines, m)
	return d
}

var _ = Describe("What another namespace has of the same name", func() {
	It("does not change the explanation of a machine", func() {
		for _, name := range []string{"a", "b", "c", "d"} {
			w := newWorld()
			alone := machine(w, name)
			elsewhere(w)
			Expect(machine(w, name)).To(Equal(alone))
		}
	})

	It("has explanations of its own", func() {
		w := newWorld()
		elsewhere(w)
		Expect(machine(w, "e")).To(ContainSubstring("MachineDeployment = pool: R 5, X 0, A 0"))
	})

	DescribeTable("is drained alone", func(drained string, want string) {
		w := newWorld()
		w.Draining = map[string]bool{drained: true}
		Expect(deployment(w)).To(ContainSubstring(want))
		Expect(deployment(w)).To(ContainSubstring(map[bool]string{true: "about to be deleted", false: "It is at rest"}[drained == fixture.Namespace]))
	},
		Entry("there", "elsewhere", "The excess is 2, from spec.excessReplicas."),
		Entry("here", fixture.Namespace, "the manager runs with --drain-reserve"),
	)

	It("has no part of a Reserve", func() {
		w := office()
		alone := w.reserve()
		d := w.Deployments[0].DeepCopy()
		d.Namespace, d.UID, d.Spec.Replicas = "elsewhere", "elsewhere", 9
		w.Deployments = append(w.Deployments, d)
		w.hold(d, 1, 0)
		Expect(w.reserve()).To(Equal(alone))
	})
})

var _ = Describe("Machines that could not be read", func() {
	hide := func(w *world) {
		w.Machines, w.Sets, w.MachinesUnknown, w.Missing = nil, nil, true, []string{"machines, machinesets: no rights to list them"}
	}

	It("are not counted, and nothing is predicted from them", func() {
		w := newWorld()
		hide(w)
		a, err := Deployment(w.Objects, "pool")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Title).To(Equal("MachineDeployment pool: its machines could not be read"))
		Expect(a.Facts).To(ContainElement(Fact{"Machines", "cannot be read"}))
		Expect(a.Next).To(Equal([]string{"What happens next depends on its machines, which could not be read."}))
	})

	It("are not missed by a Reserve", func() {
		w := office()
		hide(w)
		a, err := Reserve(w.Objects, "office")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Title).To(Equal("Reserve office: its machines could not be read"))
		Expect(a.Facts).To(Equal([]Fact{{"Requests", "4 machines"}, {"Ready", "True, Complete: 4 of 4"}}))
		Expect(a.Why).To(HaveExactElements("It requests 4 machines: spec.replicas is 4.", HavePrefix("Not everything could be read")))
		Expect(a.Next).To(Equal([]string{"What happens next depends on machines, which could not be read."}))
	})

	It("leave what a schedule changes as it is known", func() {
		w := office()
		duty("0 7 * * *", "0 19 * * *", 6)(w, w.Reserves[0])
		hide(w)
		Expect(w.reserve()).To(ContainSubstring("A schedule changes the number to 4 machines in 7h"))
	})
})

var _ = Describe("A reader with only some rights", func() {
	It("is not told that the condition of a Reserve changes", func() {
		w := office()
		w.hold(w.Deployments[0], 0, 0)
		Expect(w.reserve()).To(ContainSubstring("The condition Ready is about to become"))
		w.Missing = []string{"nodes: no rights to list them"}
		Expect(w.reserve()).NotTo(ContainSubstring("The condition Ready is about to become"))
	})

	It("is not told that machines enter the reserve because their pods are hidden", func() {
		w := newWorld()
		d := w.Deployments[0]
		d.Spec.Replicas, d.Spec.ExcessReplicas = 1, ptr.To(int32(3))
		d.Annotations = map[string]string{v1alpha1.AppliedExcessAnnotation: "3", v1alpha1.WantedExcessAnnotation: "3"}
		Expect(deployment(w)).To(ContainSubstring("is about to enter the reserve"), "it is empty")
		w.PodsUnknown = true
		Expect(deployment(w)).NotTo(ContainSubstring("is about to enter the reserve"))
	})
})

var _ = It("The places of eight machines among those that go are looked for, and no more", func() {
	w := newWorld()
	w.Deployments[0].Spec.ExcessReplicas = ptr.To(int32(10))
	w.Deployments[0].Annotations = map[string]string{v1alpha1.AppliedExcessAnnotation: "10", v1alpha1.WantedExcessAnnotation: "10"}
	for i := range 8 {
		w.machine(fmt.Sprintf("x%d", i), time.Duration(20-i)*time.Minute, true)
	}
	w.Sets[0].Spec.Replicas = 12
	Expect(machine(w, "x7")).To(ContainSubstring("it is the 1st to be deleted"))
	Expect(machine(w, "x0")).To(ContainSubstring("it is the 8th to be deleted"))
	Expect(machine(w, "d")).NotTo(ContainSubstring("to be deleted"))
})

var _ = It("A MachineDeployment with an excess in devices is explained as what the controller would do", func() {
	w := newWorld()
	w.Deployments[0].Annotations[v1alpha1.BoundsAnnotation] = "0:9:devices.gpu=6"
	w.Devices = counted(2)
	a, err := Deployment(w.Objects, "pool")
	Expect(err).NotTo(HaveOccurred())
	Expect(text(a)).To(And(ContainSubstring("3 desired"), ContainSubstring("1 machine is about to be created, 1 of them in reserve.")))
})
