// SPDX-License-Identifier: Apache-2.0

package machinedeployment_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// previewed is a cluster with a MachineDeployment that is called pool, whose controller can be stopped.
type previewed struct {
	*reserved
	controller *storm.Process
}

// all are the objects of the servers, as clients decode them: hashes depend on that.
func (c *reserved) all() Objects {
	return Objects{
		Deployments: decoded[v1alpha1.MachineDeployment](c, deploymentGVR), Sets: decoded[mcm.MachineSet](c, setGVR), Machines: decoded[mcm.Machine](c, machineGVR),
		Nodes: decoded[corev1.Node](c, nodeGVR), Pods: decoded[corev1.Pod](c, corev1.SchemeGroupVersion.WithResource("pods")),
	}
}

func decoded[T any](c *reserved, kind schema.GroupVersionResource) (all []*T) {
	GinkgoHelper()
	for _, u := range c.Objects(kind) {
		text, err := u.MarshalJSON()
		Expect(err).NotTo(HaveOccurred())
		o := new(T)
		Expect(json.Unmarshal(text, o)).To(Succeed())
		all = append(all, o)
	}
	return all
}

func newPreview(hasTarget bool) *Preview {
	GinkgoHelper()
	p, err := NewPreview(plan.Settings{ProtectInRollout: true, SafetyUp: 2, SafetyDown: 1}, machinetaint.Settings{}, hasTarget)
	Expect(err).NotTo(HaveOccurred())
	return p
}

// foresee returns the objects after the plans of a preview, until there is nothing to do before a machine
// changes.
func foresee(o Objects) Objects {
	GinkgoHelper()
	preview := newPreview(true)
	for range 20 {
		Expect(preview.SetObjects(o, time.Now())).To(Succeed())
		v, p, ok := preview.Plan(fixture.Namespace, "pool")
		if !ok || p.IsEmpty() {
			return o
		}
		after, err := preview.After(v, p)
		Expect(err).NotTo(HaveOccurred())
		preview.Remember(v, p)
		o = put(o, after)
	}
	Fail("it does not come to rest")
	return o
}

// put replaces objects by those of the same name.
func put(o Objects, after After) Objects {
	o.Deployments = nil
	if after.Deployment != nil {
		o.Deployments = []*v1alpha1.MachineDeployment{after.Deployment}
	}
	gone := func(s *mcm.MachineSet) bool {
		return slices.ContainsFunc(after.GoneSets, func(other *mcm.MachineSet) bool { return other.Name == s.Name })
	}
	o.Sets = slices.DeleteFunc(replaced(o.Sets, after.Sets), gone)
	o.Machines, o.Nodes = append(replaced(o.Machines, after.Machines), after.Created...), replaced(o.Nodes, after.Nodes)
	return o
}

func replaced[T metav1.Object](all, by []T) []T {
	all = slices.DeleteFunc(slices.Clone(all), func(o T) bool {
		return slices.ContainsFunc(by, func(other T) bool { return other.GetName() == o.GetName() })
	})
	return append(all, by...)
}

var (
	timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|null`)
	typeMeta  = regexp.MustCompile(`"kind":"[A-Za-z]*","apiVersion":"[^"]*",`)
)

// said are objects in words, without MachineSets that have no MachineDeployment, and without what differs in
// each run: times, UIDs, and names of machines that are not among those before.
func said(o Objects, before Objects) (all []string) {
	GinkgoHelper()
	known := map[string]bool{}
	for _, m := range before.Machines {
		known[m.Name] = true
	}
	add := func(kind string, object metav1.Object) {
		object.SetResourceVersion("")
		object.SetUID("")
		object.SetManagedFields(nil)
		if kind == "machine" {
			object.SetGeneration(0)
			if !known[object.GetName()] {
				object.SetName("new")
			}
		}
		owners := object.GetOwnerReferences()
		for i := range owners {
			owners[i].UID = ""
		}
		object.SetOwnerReferences(owners)
		object.SetDeletionGracePeriodSeconds(nil)
		text, err := json.Marshal(object)
		Expect(err).NotTo(HaveOccurred())
		all = append(all, kind+" "+typeMeta.ReplaceAllString(timestamp.ReplaceAllString(string(text), "at"), ""))
	}
	for _, d := range o.Deployments {
		add("deployment", d.DeepCopy())
	}
	for _, s := range o.Sets {
		if metav1.GetControllerOf(s) != nil {
			add("set", s.DeepCopy())
		}
	}
	for _, m := range o.Machines {
		m = m.DeepCopy()
		m.GenerateName = ""
		add("machine", m)
	}
	for _, n := range o.Nodes {
		add("node", n.DeepCopy())
	}
	slices.Sort(all)
	return all
}

// differing returns the lines that are in one list alone.
func differing(predicted, came []string) (lines []string) {
	for _, line := range predicted {
		if !slices.Contains(came, line) {
			lines = append(lines, "predicted: "+line)
		}
	}
	for _, line := range came {
		if !slices.Contains(predicted, line) {
			lines = append(lines, "came: "+line)
		}
	}
	return lines
}

var _ = Describe("A preview", func() {
	// compare stops the controller, has something change, previews what follows, and has the controller do it.
	compare := func(replicas int, settings func(*v1alpha1.MachineDeployment), change func(c *previewed)) {
		GinkgoHelper()
		storm.Bubble(suite, func() {
			c := &previewed{reserved: &reserved{cluster: newCluster(sim.Options{Seed: 1})}}
			defer c.End()
			c.core = kubernetes.NewForConfigOrDie(c.ConfigFor("user"))
			c.Set(func() { c.cloud.ChangeNode = taintLikeMachine })
			c.controller = c.Start(name, keeping(everything))
			world.Create(c.deployments(), world.MachineDeployment("pool", int32(replicas), settings))
			c.settle()
			c.Down(true, "cloud", "garbage")
			c.controller.Crash()
			change(c)
			before := c.all()
			after := said(foresee(before), before)
			Expect(after).NotTo(Equal(said(before, before)), "there was something to do")
			c.controller.Restart()
			time.Sleep(time.Minute)
			Expect(differing(after, said(c.all(), before))).To(BeEmpty())
			Expect(after).To(HaveLen(len(said(c.all(), before))))
		})
	}
	edited := func(format string, args ...any) func(*previewed) {
		return func(c *previewed) { c.reserved.edit(format, args...) }
	}
	none := func(*v1alpha1.MachineDeployment) {}

	DescribeTable("comes to what the controller then writes", compare,
		Entry("of replicas that rise", 2, none, edited(`{"spec":{"replicas":4}}`)),
		Entry("of replicas that fall", 3, none, edited(`{"spec":{"replicas":1}}`)),
		Entry("of a reserve that grows", 2, spared(1), edited(`{"spec":{"excessReplicas":3}}`)),
		Entry("of a reserve that shrinks", 2, spared(2), edited(`{"spec":{"excessReplicas":1}}`)),
		Entry("of a reserve that serves", 2, spared(2), edited(`{"spec":{"replicas":3}}`)),
		Entry("of bounds", 2, spared(2), edited(`{"metadata":{"annotations":{"evenkeel.machine.sapcloud.io/bounds":"1:3:2"}}}`)),
		Entry("of a reserve that is drained", 2, spared(2), edited(`{"metadata":{"annotations":{"evenkeel.machine.sapcloud.io/drain-reserve":"true"}}}`)),
		Entry("of machines that enter the reserve", 3, spared(0), edited(`{"spec":{"replicas":2,"excessReplicas":1}}`)),
		Entry("of another template", 2, none, edited(`{"spec":{"template":{"spec":{"class":{"name":"other"}}}}}`)),
		Entry("of another template with a reserve", 2, spared(1), edited(`{"spec":{"template":{"spec":{"class":{"name":"other"}}}}}`)),
		Entry("of a template that machines take while they exist", 2, spared(1), edited(`{"spec":{"template":{"spec":{"nodeTemplate":{"metadata":{"labels":{"a":"b"}}}}}}}`)),
		Entry("of a machine that is named", 2, spared(1), func(c *previewed) {
			now := time.Now().UTC().Format(time.RFC3339)
			c.reserved.edit(`{"metadata":{"annotations":{"node.machine.sapcloud.io/trigger-deletion-by-mcm":"%s~%s","machine.sapcloud.io/last-deployment-replica-change-by-scaler-time":"%s"}},"spec":{"replicas":1}}`,
				c.serving()[0], now, now)
		}),
		Entry("of a spare machine that is named, for which replicas are given back", 2, spared(1), func(c *previewed) {
			now := time.Now().UTC().Format(time.RFC3339)
			c.reserved.edit(`{"metadata":{"annotations":{"node.machine.sapcloud.io/trigger-deletion-by-mcm":"%s~%s","machine.sapcloud.io/last-deployment-replica-change-by-scaler-time":"%s"}},"spec":{"replicas":1}}`,
				c.spare()[0], now, now)
		}),
		Entry("of machines that it adopts", 3, none, func(c *previewed) {
			world.Patch(c.machines(), c.serving()[0], `{"metadata":{"ownerReferences":null}}`)
		}),
		Entry("of MachineSets that it adopts", 3, none, func(c *previewed) {
			world.Patch(c.sets(), c.setsOf("pool")[0].Name, `{"metadata":{"ownerReferences":null}}`)
		}),
		Entry("of machines that it releases", 3, none, func(c *previewed) {
			world.Patch(c.machines(), c.serving()[0], `{"metadata":{"labels":{"name":"other"}}}`)
		}),
		Entry("of its end", 2, spared(1), func(c *previewed) { world.Delete(c.deployments(), "pool") }),
		Entry("of its end without machines", 0, none, func(c *previewed) { world.Delete(c.deployments(), "pool") }),
		Entry("of an old MachineSet that is not kept", 0, none, func(c *previewed) {
			c.controller.Restart()
			c.reserved.edit(`{"spec":{"template":{"spec":{"class":{"name":"other"}}}}}`)
			time.Sleep(time.Minute)
			c.controller.Crash()
			c.reserved.edit(`{"spec":{"revisionHistoryLimit":0}}`)
		}),
		Entry("of the name of its MachineSet that is taken", 0, none, func(c *previewed) {
			taken := c.setsOf("pool")[0].Name
			c.reserved.edit(`{"spec":{"template":{"spec":{"class":{"name":"other"}}}}}`)
			o := c.all()
			for _, s := range foresee(o).Sets {
				if s.Name != taken {
					s.ResourceVersion, s.UID, s.OwnerReferences, s.Labels = "", "", nil, nil
					world.Create(c.sets(), s)
				}
			}
		}),
	)

	It("keeps a machine in reserve on which a pod runs, and one that serves out of the reserve", func() {
		playReserved(sim.Options{Seed: 1}, 2, spared(1), keeping(everything), func(c *reserved) {
			preview, o := newPreview(true), c.all()
			Expect(preview.SetObjects(o, time.Now())).To(Succeed())
			v, p, _ := preview.Plan(fixture.Namespace, "pool")
			find := func(name string) *mcm.Machine {
				return o.Machines[slices.IndexFunc(o.Machines, func(m *mcm.Machine) bool { return m.Name == name })]
			}
			spare, serving := find(c.spare()[0]), find(c.serving()[0])
			marked := pool.Mark(serving, v.Reserve.Settings.NewMark(v.Now))
			p.Machines = append(p.Machines, plan.MachineChange{Before: serving, After: marked})
			p.Deletions = append(p.Deletions, plan.Deletion{Set: v.Sets[0].Object, Machine: spare, Reason: plan.Surplus})
			changed := func() (names []string) {
				Expect(preview.SetObjects(o, time.Now())).To(Succeed())
				after, err := preview.After(v, p)
				Expect(err).NotTo(HaveOccurred())
				for _, m := range after.Machines {
					names = append(names, m.Name)
				}
				return names
			}
			Expect(changed()).To(ConsistOf(spare.Name, serving.Name))
			for _, m := range []*mcm.Machine{spare, serving} {
				o.Pods = append(o.Pods, fixture.Pod("on-"+m.Name, func(p *corev1.Pod) { p.Spec.NodeName = m.Name }))
			}
			Expect(changed()).To(BeEmpty())
			p.Deletions[0].Reason = plan.Failed
			Expect(changed()).To(ConsistOf(spare.Name), "whatever runs there")
		})
	})

	It("creates machines that serve before those in reserve, and writes the status beside other changes", func() {
		playReserved(sim.Options{Seed: 1}, 1, spared(1), keeping(everything), func(c *reserved) {
			preview, o := newPreview(true), c.all()
			Expect(preview.SetObjects(o, time.Now())).To(Succeed())
			v, p, _ := preview.Plan(fixture.Namespace, "pool")
			changed := v.Deployment.DeepCopy()
			changed.Spec.Replicas++
			status := *v.Deployment.Status.DeepCopy()
			status.ReadyReplicas = 7
			p.Deployment = &plan.DeploymentChange{Before: v.Deployment, After: changed}
			p.DeploymentStatus = &plan.DeploymentStatusChange{After: status}
			p.Creations = []plan.Creation{{Set: v.Sets[0].Object, Count: 3, Reserve: 1, Mark: v.Reserve.Settings.NewMark(v.Now)}}
			after, err := preview.After(v, p)
			Expect(err).NotTo(HaveOccurred())
			roles := []bool{}
			for _, m := range after.Created {
				roles = append(roles, pool.Marked(m))
			}
			Expect(roles).To(Equal([]bool{false, false, true}))
			Expect(after.Deployment.Spec.Replicas).To(BeEquivalentTo(2))
			Expect(after.Deployment.Status).To(And(HaveField("ReadyReplicas", BeEquivalentTo(7)), HaveField("ObservedGeneration", v.Deployment.Generation+1)))
		})
	})

	It("writes nothing into what it was given", func() {
		playReserved(sim.Options{Seed: 1}, 2, spared(1), keeping(everything), func(c *reserved) {
			c.edit(`{"spec":{"replicas":4,"template":{"spec":{"class":{"name":"other"}}}}}`)
			o := c.all()
			before := said(o, o)
			foresee(o)
			Expect(said(o, o)).To(Equal(before))
		})
	})

	It("shows no MachineDeployment that there is none of", func() {
		preview := newPreview(true)
		Expect(preview.SetObjects(Objects{}, time.Now())).To(Succeed())
		_, _, ok := preview.Plan(fixture.Namespace, "pool")
		Expect(ok).To(BeFalse())
	})
})

// reservedView returns the view of the reserve of a MachineDeployment that a preview shows.
func reservedView(preview *Preview, o Objects) *machinetaint.View {
	GinkgoHelper()
	Expect(preview.SetObjects(o, time.Now())).To(Succeed())
	v, _, ok := preview.Plan(fixture.Namespace, "pool")
	Expect(ok).To(BeTrue())
	return v.Reserve
}

var _ = Describe("What a preview knows", func() {
	var o Objects
	BeforeEach(func() {
		d := world.MachineDeployment("pool", 1, spared(1))
		d.UID, d.Annotations = "uid", map[string]string{v1alpha1.AppliedExcessAnnotation: "1"}
		set := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "pool-1", Namespace: fixture.Namespace, UID: "set", Labels: d.Spec.Template.Labels, OwnerReferences: world.OwnedBy("MachineDeployment", d)}}
		set.Spec.Replicas, set.Spec.Template, set.Spec.Selector = 2, d.Spec.Template, d.Spec.Selector
		o = Objects{Deployments: []*v1alpha1.MachineDeployment{d}, Sets: []*mcm.MachineSet{set}}
		for _, name := range []string{"a", "b"} {
			m := world.NewMachine("pool", name, set, false)
			m.UID, m.Spec.ProviderID, m.Status.CurrentStatus.Phase = types.UID(name), "sim:///"+name, mcm.MachineRunning
			o.Machines = append(o.Machines, m)
		}
	})

	It("is what the settings of a controller are by default", func() {
		v := reservedView(newPreview(true), o)
		Expect(v.Settings.Effects).To(ConsistOf(corev1.TaintEffectNoSchedule))
		Expect(v.Settings.SurplusPatience).To(Equal(machinetaint.DefaultSurplusPatience))
	})

	It("is whether there is a target cluster", func() {
		v := reservedView(newPreview(true), o)
		Expect([]any{v.Targetless, v.Unreachable}).To(Equal([]any{false, ""}))
		Expect(reservedView(newPreview(false), o).Targetless).To(BeTrue())
	})

	It("is nothing of pods if they are not known: a machine that serves counts as busy then, one in reserve as empty", func() {
		preview := newPreview(false)
		moves := func() []reserve.Move {
			GinkgoHelper()
			Expect(preview.SetObjects(o, time.Now())).To(Succeed())
			v, p, _ := preview.Plan(fixture.Namespace, "pool")
			return Kept(v, p).Rule.Moves
		}
		Expect(moves()).To(HaveLen(1), "without a target cluster, no pod runs")
		o.PodsUnknown = true
		Expect(moves()).To(BeEmpty())
		o.Machines[1].CreationTimestamp = metav1.Now()
		o.Machines[1] = pool.Mark(o.Machines[1], reservedView(preview, o).Settings.NewMark(time.Now()))
		o.Deployments[0].Spec.ExcessReplicas = new(int32(0))
		Expect(preview.SetObjects(o, time.Now())).To(Succeed())
		v, p, _ := preview.Plan(fixture.Namespace, "pool")
		Expect(Kept(v, p).Rule.Going).To(ConsistOf(HaveField("Name", "b")))
	})

	DescribeTable("is whether more Nodes are not ready than its limits allow", func(limits pool.UnreadyLimits, want bool) {
		preview, err := NewPreview(plan.Settings{}, machinetaint.Settings{Unready: limits}, true)
		Expect(err).NotTo(HaveOccurred())
		o.Nodes = []*corev1.Node{fixture.Node("a")}
		for i := range 4 {
			o.Nodes = append(o.Nodes, fixture.Node(fmt.Sprint("dark-", i), func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }))
		}
		Expect(reservedView(preview, o).Unhealthy).To(Equal(want))
	},
		Entry("by default", pool.DefaultUnreadyLimits(), true),
		Entry("by their number", pool.UnreadyLimits{Count: 4, Percentage: 45}, false),
	)

	It("is what a MachineClass promises, where no Node shows it", func() {
		o.Deployments[0].Annotations[v1alpha1.BoundsAnnotation] = "1:9:cpu=8"
		o.Classes = []*mcm.MachineClass{fixture.MachineClass(fixture.Class, func(c *mcm.MachineClass) {
			c.NodeTemplate = &mcm.NodeTemplate{Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourcePods: resource.MustParse("110")}}
		})}
		Expect(reservedView(newPreview(true), o).Allocatable).To(HaveKeyWithValue(corev1.ResourceCPU, resource.MustParse("8")))
	})

	It("is budgets, or why they are not known", func() {
		preview := newPreview(true)
		Expect(preview.SetObjects(o, time.Now())).To(Succeed())
		v, p, _ := preview.Plan(fixture.Namespace, "pool")
		p.Memory.SurplusSince = time.Now().Add(-time.Hour)
		preview.Remember(v, p)
		for _, m := range o.Machines {
			m.Labels[mcm.NodeLabelKey] = m.Name
			o.Nodes = append(o.Nodes, fixture.Node(m.Name))
			o.Pods = append(o.Pods, fixture.Pod("on-"+m.Name, func(p *corev1.Pod) { p.Spec.NodeName = m.Name }))
		}
		o.Budgets = []*policyv1.PodDisruptionBudget{{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "b"}}}
		Expect(reservedView(preview, o).Evictions).To(HaveField("Budgets", HaveLen(1)))
		o.BudgetsUnknown = "no rights"
		Expect(reservedView(preview, o).Evictions).To(HaveField("BudgetsUnknown", "no rights"))
	})

	DescribeTable("is pods that leave with machines of another MachineDeployment,", func(leaves bool, change func(*mcm.Machine)) {
		preview := newPreview(true)
		Expect(preview.SetObjects(o, time.Now())).To(Succeed())
		v, p, _ := preview.Plan(fixture.Namespace, "pool")
		p.Memory.SurplusSince = time.Now().Add(-time.Hour)
		preview.Remember(v, p)
		m := machineIn("a")
		change(m)
		o.Deployments, o.Sets, o.Machines = append(o.Deployments, poolOf("a")), append(o.Sets, setIn("a")), append(o.Machines, m)
		o.Pods = append(o.Pods, podOn(m.Name))
		Expect(len(reservedView(preview, o).Evictions.Expected) > 0).To(Equal(leaves))
	},
		Entry("not of one that stays", false, func(*mcm.Machine) {}),
		Entry("of one that is being deleted", true, func(m *mcm.Machine) { m.DeletionTimestamp = new(metav1.Now()) }),
		Entry("of one that is named for deletion", true, func(m *mcm.Machine) {
			m.Annotations = map[string]string{machineutils.MachinePriority: "1", machineutils.MarkedForDeletionTime: "2026-11-22T12:00:00Z"}
		}),
		Entry("not of one that a client only wants deleted before others", false, func(m *mcm.Machine) {
			m.Annotations = map[string]string{machineutils.MachinePriority: "1"}
		}),
	)

	It("is what the plan before remembers, of the same MachineDeployment", func() {
		preview := newPreview(true)
		Expect(preview.SetObjects(o, time.Now())).To(Succeed())
		v, p, _ := preview.Plan(fixture.Namespace, "pool")
		p.Memory.Retry = reserve.Retry{Failures: 7, Until: time.Now().Add(time.Hour)}
		preview.Remember(v, p)
		Expect(reservedView(preview, o).Memory).To(Equal(*p.Memory))
		o.Deployments[0].UID = "other"
		Expect(reservedView(preview, o).Memory).To(BeZero())
	})

	It("is decided about the reserve, unless nothing is done about it", func() {
		preview := newPreview(true)
		Expect(preview.SetObjects(o, time.Now())).To(Succeed())
		v, p, _ := preview.Plan(fixture.Namespace, "pool")
		Expect(Kept(v, p).Report.Message).NotTo(BeEmpty())
		o.Deployments[0].Spec.Selector = nil
		Expect(preview.SetObjects(o, time.Now())).To(Succeed())
		v, p, _ = preview.Plan(fixture.Namespace, "pool")
		Expect(v.Reserve).NotTo(BeNil())
		Expect(Kept(v, p)).To(BeNil())
	})
})

var _ = It("Q9: MachineSets are looked at again after ten minutes", func() {
	preview := newPreview(true)
	Expect(preview.SetObjects(Objects{Sets: []*mcm.MachineSet{atRest()}}, time.Now())).To(Succeed())
	again, err := preview.Sync(GinkgoT().Context(), "default/MachineSet:s")
	Expect(err).NotTo(HaveOccurred())
	Expect(again).To(Equal(10 * time.Minute))
})

// atRest is a MachineSet that needs nothing.
func atRest() *mcm.MachineSet {
	s := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "s", UID: "s", Finalizers: []string{plan.Finalizer}}}
	s.Spec.Selector, s.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, map[string]string{"a": "b"}
	s.Spec.Template.Spec.Class = mcm.ClassSpec{Kind: "MachineClass", Name: "c"}
	return s
}
