// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// returned is an annotation of earlier versions.
const returned = api.AnnotationPrefix + "returned"

// applied sets the record of the excess.
func applied(text string) viewChange { return note(api.AppliedExcessAnnotation, text) }

var _ = Describe("A machine leaves the reserve", func() {
	needed := func(change ...viewChange) []string {
		return machineWrites(machinetaint.New(atRest(append([]viewChange{replicas(4)}, change...)...)))
	}
	one, second := []string{"r1 released (Released)"}, []string{"r2 released (Released)"}
	forShop := []viewChange{note(api.DedicatedAnnotation, "shop=1"), machine("r1", annotated(api.DedicatedAnnotation, "shop"))}

	It("from the current MachineSet first", func() {
		Expect(needed()).To(Equal(one))
		Expect(needed(machine("r1", func(m *machinetaint.Machine) { m.Set = "old" }))).To(Equal(second))
	})

	It("prepared ones first", func() {
		Expect(needed(prepares(map[types.UID]machinetaint.Preparation{"r1": {Missing: true}}))).To(Equal(second))
		Expect(needed(machine("r2", devices("example.com/gpu", "8")))).To(Equal(second))
		Expect(needed(prepares(map[types.UID]machinetaint.Preparation{"r1": {Missing: true}, "r2": {Missing: true}}))).To(Equal(one))
	})

	It("only if it is not leaving, and last if a client wants it deleted first", func() {
		Expect(needed(replicas(5), machine("r1", leaving))).To(Equal(second))
		Expect(needed(machine("r1", first))).To(Equal(second))
	})

	It("only if it is not dedicated, unless a pod of its owner claims it", func() {
		Expect(needed(forShop...)).To(Equal(second))
		Expect(needed(append(forShop, note(api.ClaimedAnnotation, "4:r1"))...)).To(Equal([]string{`r1 released (Released) owner ""`, `r2 owner "shop"`}))
	})

	It("and not for a claim of more replicas than there are", func() {
		Expect(needed(append(forShop, note(api.ClaimedAnnotation, "5:r1"))...)).To(Equal(second))
	})

	It("also if it is dedicated, where max leaves no room for that", func() {
		Expect(needed(append(forShop, note(api.BoundsAnnotation, "1:4"), applied("2,max=4"))...)).To(Equal([]string{`r1 released (Released) owner ""`}))
	})
})

var _ = DescribeTable("The applied excess",
	func(v machinetaint.View, text string) {
		p := machinetaint.New(v)
		Expect(p.Idle).To(BeFalse())
		got, written := p.Deployment.Annotations[api.AppliedExcessAnnotation]
		Expect(written).To(Equal(text != "unchanged"), got)
		if written {
			Expect(got).To(Equal(text))
		}
	},
	Entry("grows with the desired one", atRest(excess(3)), "3"),
	Entry("grows also while machines are replaced", atRest(excess(3), rollingOut), "3"),
	Entry("grows up to max", atRest(excess(4), note(api.BoundsAnnotation, "1:6")), "3,max=6"),
	Entry("does not fall before a machine is seen leaving", atRest(excess(1)), "unchanged"),
	Entry("falls then", atRest(excess(1), machine("r2", leaving)), "1"),
	Entry("is removed with the last machine", changed(fleet(2, 1, held("r1", leaving), serving("s1"), serving("s2")), excess(0)), ""),
	Entry("stays while bounds cannot be read", atRest(note(api.BoundsAnnotation, "many"), applied("2,max=6")), "unchanged"),
)

var _ = DescribeTable("Bounds that cannot be read leave room for the reserve as before",
	func(text, reserved string) {
		p := machinetaint.New(atRest(note(api.BoundsAnnotation, "many"), applied(text)))
		Expect(p.Report.Message).To(ContainSubstring(reserved))
		Expect(p.Report.Reason).To(Equal(machinetaint.BoundsInvalid))
	},
	Entry("all of it", "2", "2 of 2 in reserve, 2 of these ready"),
	Entry("up to the max that was known", "2,max=4", "2 of 1 in reserve, 2 of these ready"),
	Entry("none above the max that was known", "2,max=2", "2 of 0 in reserve, 2 of these ready; max 2 leaves room for 0 of the 2 desired"),
)

var _ = DescribeTable("Reserve machines that clients have named are",
	func(want int, list string, change ...viewChange) {
		v := atRest(append([]viewChange{note(machineutils.TriggerDeletionByMCM, list)}, change...)...)
		Expect(machinetaint.NamedSpares(v.Deployment, v.Machines)).To(Equal(want))
	},
	Entry("none", 0, ""),
	Entry("those of the list", 2, "r1~2026-11-22T12:00:00Z,r2", machine("r1", named), machine("r2", named)),
	Entry("those that a Machine says", 1, "", machine("r1", named)),
	Entry("none that serve", 0, "s1", machine("s1", named)),
	Entry("none that serve, since a pod runs there", 0, "r1", machine("r1", named, occupied)),
	Entry("none that are being deleted for that", 0, "r1~2026-11-22T11:59:59Z", machine("r1", named, leaving)),
	Entry("none that were being deleted by then, and served", 0, "s1~2026-11-22T12:00:01Z", machine("s1", named, leaving)),
	Entry("those that were being deleted by then", 1, "r1~2026-11-22T12:00:01Z", machine("r1", named, leaving)),
	Entry("those that were being deleted in that second", 1, "r1~2026-11-22T12:00:00Z", machine("r1", named, leaving)),
	Entry("none that are being deleted, and that nobody has named since", 0, "", machine("r1", leaving)),
	Entry("those that are gone by now", 2, "gone,away~2026-11-22T12:00:00Z"),
	Entry("none of a malformed time", 0, "gone~noon"),
)

var _ = Describe("Patience", func() {
	crowded := func(change ...viewChange) machinetaint.View {
		return atRest(append([]viewChange{machine("r1", occupied)}, change...)...)
	}

	It("with machines beyond replicas begins when they serve, and is kept", func() {
		p := machinetaint.New(crowded())
		Expect(p.Memory.SurplusSince).To(Equal(noon))
		Expect(p.Again).To(Equal(time.Hour))
		p = machinetaint.New(crowded(func(v *machinetaint.View) { v.Memory.SurplusSince = eleven.Add(time.Minute) }))
		Expect(p.Memory.SurplusSince).To(Equal(eleven.Add(time.Minute)))
		Expect(p.Again).To(Equal(time.Minute))
		Expect(p.Rule.Going).To(BeEmpty())
	})

	// overdue is a surplus whose patience has ended.
	overdue := func(e *machinetaint.Evictions, change ...viewChange) machinetaint.View {
		return crowded(append([]viewChange{func(v *machinetaint.View) { v.Memory.SurplusSince, v.Evictions = eleven, e }}, change...)...)
	}
	surplus := func(v machinetaint.View) (names []string) {
		for _, victim := range machinetaint.New(v).Rule.Going {
			Expect(victim.Why).To(Equal(reserve.Surplus))
			names = append(names, victim.Name)
		}
		return names
	}
	// each machine that serves has a pod like this.
	each := func(change ...func(*corev1.Pod)) map[string][]*corev1.Pod {
		all := map[string][]*corev1.Pod{}
		for _, name := range []string{"r1", "s1", "s2", "s3"} {
			all[name] = []*corev1.Pod{fixture.Pod("on-"+name, append([]func(*corev1.Pod){func(p *corev1.Pod) {
				p.Labels = map[string]string{"app": "web"}
				p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Controller: ptr.To(true)}}
			}}, change...)...)}
		}
		return all
	}
	budget := func(allowed int) []pool.Budget {
		return []pool.Budget{{Namespace: fixture.Namespace, Name: "web", Selector: labels.SelectorFromSet(labels.Set{"app": "web"}), Allowed: allowed}}
	}
	onDisk := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	}

	It("ends after the time of the settings", func() {
		Expect(surplus(overdue(&machinetaint.Evictions{}))).To(Equal([]string{"r1"}))
	})

	It("spares machines whose pods must not be evicted, asks again every minute, and names a pod", func() {
		pods := each(onDisk)
		p := machinetaint.New(overdue(&machinetaint.Evictions{Pods: pods}))
		Expect(p.Rule.Going).To(BeEmpty())
		Expect(p.Again).To(Equal(time.Minute))
		Expect(p.Report.Message).To(ContainSubstring("runs a pod that must not be evicted now (LocalStorage: pod default/on-r1 has local storage in its volume data, on machine r1)"))
		pods["s2"][0].Spec.Volumes = nil
		Expect(surplus(overdue(&machinetaint.Evictions{Pods: pods}))).To(Equal([]string{"s2"}))
		Expect(surplus(overdue(&machinetaint.Evictions{Pods: each(onDisk)}, func(v *machinetaint.View) { v.Settings.Eviction.LocalStorage = true }))).To(Equal([]string{"r1"}))
	})

	It("spares machines whose pods no budget lets go, also with others that are expected to go", func() {
		Expect(surplus(overdue(&machinetaint.Evictions{Pods: each(), Budgets: budget(0)}))).To(BeEmpty())
		Expect(surplus(overdue(&machinetaint.Evictions{Pods: each(), Budgets: budget(1)}))).To(Equal([]string{"r1"}))
		elsewhere := each(func(p *corev1.Pod) { p.Name = "elsewhere" })["s1"]
		Expect(surplus(overdue(&machinetaint.Evictions{Pods: each(), Budgets: budget(1), Expected: elsewhere}))).To(BeEmpty())
		Expect(surplus(overdue(&machinetaint.Evictions{Pods: each(), Budgets: budget(2), Expected: elsewhere}))).To(Equal([]string{"r1"}))
	})

	It("spares more machines than a budget of theirs lets go together", func() {
		two := func(allowed int) []string {
			v := fleet(2, 3, held("r1", occupied), held("r2"), serving("s1"), serving("s2"), serving("s3"))
			v.Memory.SurplusSince, v.Evictions = eleven, &machinetaint.Evictions{Pods: each(), Budgets: budget(allowed)}
			return surplus(v)
		}
		Expect(two(2)).To(Equal([]string{"r1", "s3"}))
		Expect(two(1)).To(Equal([]string{"r1"}))
	})

	It("spares all machines while their pods or budgets are not known", func() {
		Expect(surplus(overdue(nil))).To(BeEmpty())
		Expect(surplus(overdue(&machinetaint.Evictions{Pods: each(), BudgetsUnknown: "they have not been read yet"}))).To(BeEmpty())
		Expect(machinetaint.New(overdue(&machinetaint.Evictions{Pods: each(), BudgetsUnknown: "they have not been read yet"})).Report.Message).To(ContainSubstring("(PodDisruptionBudget: they have not been read yet, on machine r1)"))
		unseen := func(m *machinetaint.Machine) { m.Node, m.Unseen, m.Pods = nil, true, 0 }
		Expect(surplus(overdue(&machinetaint.Evictions{}, machine("s1", unseen), machine("s2", unseen), machine("s3", unseen), machine("r1", unseen, func(m *machinetaint.Machine) { m.NonTolerating = 1 })))).To(BeEmpty())
		Expect(surplus(overdue(nil, excess(1), func(v *machinetaint.View) { v.Targetless = true }))).To(Equal([]string{"s3"}), "without a target cluster, there are no pods")
	})

	It("needs to know pods and budgets only once patience has ended with more machines that serve than replicas", func() {
		impatient := func(v *machinetaint.View) { v.Settings.SurplusPatience = 0 }
		late := func(v *machinetaint.View) { v.Memory.SurplusSince = v.Now.Add(-v.Settings.SurplusPatience) }
		early := func(v *machinetaint.View) {
			v.Memory.SurplusSince = v.Now.Add(time.Second - v.Settings.SurplusPatience)
		}
		Expect(atRest(impatient).NeedsEvictions()).To(BeFalse())
		Expect(crowded(impatient).NeedsEvictions()).To(BeTrue())
		Expect(crowded(impatient, machine("s1", leaving)).NeedsEvictions()).To(BeFalse())
		Expect(crowded(impatient, machine("s1", in(mcm.MachineUnknown))).NeedsEvictions()).To(BeFalse())
		Expect(crowded().NeedsEvictions()).To(BeFalse())
		Expect(crowded(early).NeedsEvictions()).To(BeFalse())
		Expect(crowded(late).NeedsEvictions()).To(BeTrue())
		Expect(atRest(late).NeedsEvictions()).To(BeTrue(), "they serve no longer, and the next plan forgets it")
	})

	It("does not run while many Nodes of the cluster are not ready", func() {
		p := machinetaint.New(crowded(func(v *machinetaint.View) { v.Unhealthy, v.Memory.SurplusSince = true, eleven }))
		Expect(p.Memory.SurplusSince).To(BeZero())
		Expect(p.Report.Message).To(ContainSubstring("so many Nodes of the cluster are not ready"))
	})

	It("with machines that do not become ready is that of the settings", func() {
		v := atRest(machine("r1", in(mcm.MachinePending)))
		Expect(machinetaint.New(v).Report.Reason).To(Equal(reserve.NotReady))
		v.Settings.BootPatience = 2 * time.Hour
		Expect(machinetaint.New(v).Again).To(Equal(time.Hour))
		v.Settings.BootPatience = time.Hour
		Expect(machinetaint.New(v).Report.Reason).To(Equal(reserve.CannotBeMade))
	})

	It("with machines that could not be created is kept from plan to plan", func() {
		retry := reserve.Retry{Failures: 2, Until: noon.Add(3 * time.Minute)}
		p := machinetaint.New(changed(fleet(2, 2, held("r1"), serving("s1"), serving("s2")), applied("1"), func(v *machinetaint.View) { v.Memory.Retry = retry }))
		Expect(p.Memory.Retry).To(Equal(retry))
		Expect(p.Again).To(Equal(3 * time.Minute))
		Expect(p.Report.Reason).To(Equal(reserve.CannotBeMade))
	})

	It("after a reduction of replicas is kept from plan to plan", func() {
		lowered := reserve.Lowered{Times: 2, Until: noon.Add(4 * time.Minute), Replicas: 5, Wish: 3, Max: pool.Unbounded}
		p := machinetaint.New(included(excess(3), func(v *machinetaint.View) { v.Memory.Lowered = lowered }))
		Expect(p.Memory.Lowered).To(Equal(lowered))
		Expect(p.Again).To(Equal(4 * time.Minute))
		Expect(p.Report.Reason).To(Equal(reserve.ReplicasLowered))
	})

	It("after a reduction of replicas is kept while settings cannot be read", func() {
		lowered := reserve.Lowered{Times: 1, Until: noon.Add(-time.Hour), Lasting: true, Replicas: 5, Wish: 3, Max: 9}
		p := machinetaint.New(included(note(api.BoundsAnnotation, "many"), func(v *machinetaint.View) { v.Memory.Lowered = lowered }))
		Expect(p.Report.Reason).To(Equal(machinetaint.BoundsInvalid))
		Expect(p.Memory.Lowered).To(Equal(lowered))
	})

	It("with another client that writes the field ends the sooner of both", func() {
		v := atRest(note(api.BoundsAnnotation, "1:9:2"), machine("r1", occupied), applied("2,max=9"))
		v.Memory.FieldConflict = machinetaint.FieldConflict{Writes: 1, Until: noon.Add(time.Minute)}
		Expect(machinetaint.New(v).Again).To(Equal(time.Minute))
		v.Memory.FieldConflict.Until = noon.Add(2 * time.Hour)
		Expect(machinetaint.New(v).Again).To(Equal(time.Hour))
		v.Deployment.Spec.ExcessReplicas = ptr.To[int32](9)
		Expect(machinetaint.New(v).Deployment.Field).To(BeNil())
	})
})

// unreserved is a MachineDeployment that neither has a reserve nor asks for one.
func unreserved(change ...viewChange) machinetaint.View {
	return changed(fleet(2, -1, serving("s1"), serving("s2")), change...)
}

var _ = DescribeTable("A MachineDeployment",
	func(idle bool, change ...viewChange) {
		v := unreserved(change...)
		Expect(v.HasNoReserve()).To(Equal(idle))
		p := machinetaint.New(v)
		Expect(p.Idle).To(Equal(idle))
		if idle {
			Expect(p).To(Equal(machinetaint.Plan{Idle: true}))
		}
	},
	Entry("without a reserve is left alone", true),
	Entry("that asks for 0 is left alone", true, func(v *machinetaint.View) { v.Deployment.Spec.ExcessReplicas = ptr.To[int32](0) }),
	Entry("that asks for a reserve is not", false, excess(1)),
	Entry("that records a field that is gone is not", false, note(api.WantedExcessAnnotation, "1")),
	Entry("that records a field that its API server drops is not", false, note(api.WantedExcessAnnotation, "1"), func(v *machinetaint.View) { v.Pruned = true }),
	Entry("that drains, and whose field is not on record yet, is not", false, draining, func(v *machinetaint.View) { v.Deployment.Spec.ExcessReplicas = ptr.To[int32](1) }),
	Entry("of which a Reserve requests one machine is not", false, note(api.RequestedExcessAnnotation, "shop=1")),
	Entry("whose bounds leave the excess to an absent field is left alone", true, note(api.BoundsAnnotation, "1:9")),
	Entry("whose bounds come to 0, which its field does not show, is not", false, note(api.BoundsAnnotation, "1:9:0")),
	Entry("whose bounds come to 0, which its field shows, is left alone", true, note(api.BoundsAnnotation, "1:9:0"), func(v *machinetaint.View) { v.Deployment.Spec.ExcessReplicas = ptr.To[int32](0) }),
	Entry("whose field was fought over until now is not", false, note(api.BoundsAnnotation, "1:9:0"), func(v *machinetaint.View) {
		v.Deployment.Spec.ExcessReplicas = ptr.To[int32](0)
		v.Memory.FieldConflict = machinetaint.FieldConflict{Writes: 1, Until: noon.Add(time.Minute)}
	}),
	Entry("with bounds that cannot be read is not", false, note(api.BoundsAnnotation, "many")),
	Entry("whose field was removed is not", false, note(api.WantedExcessAnnotation, "1"), witness),
	Entry("that has only a witness left is not", false, witness),
	Entry("that is remembered to have a reserve is not", false, func(v *machinetaint.View) { v.Memory.Applied = "1" }),
	Entry("with a record of its reserve is not", false, note(api.AppliedExcessAnnotation, "0")),
	Entry("with a record of a field that cannot be read is not", false, note(api.WantedExcessAnnotation, "many")),
	Entry("with a record of owners is not", false, note(api.ExcessOwnersAnnotation, "[]")),
	Entry("with a record of restored machines is not", false, note(returned, "gone")),
	Entry("with a record of claims is not", false, note(api.ClaimedAnnotation, "2:gone")),
	Entry("with another annotation of Evenkeel is left alone", true, note(api.AppliedReplicasAnnotation, "2")),
	Entry("with a marked machine is not", false, machine("s1", annotated(api.ReserveAnnotation, "broken"))),
	Entry("with a tainted Node is not", false, machine("s1", tainted(reserveTaint))),
	Entry("with a Node that shows since when it is held is not", false, machine("s1", nodeNoted(mark, since))),
	Entry("with a Node of others' taints is left alone", true, machine("s1", tainted(otherTaint))),
	Entry("with a machine that has no Node is left alone", true, machine("s1", withoutNode)),
	Entry("whose status shows a reserve is not", false, func(v *machinetaint.View) { v.Deployment.Status.ExcessReplicas = 1 }),
	Entry("whose status shows a ready reserve is not", false, func(v *machinetaint.View) { v.Deployment.Status.ReadyExcessReplicas = 1 }),
	Entry("whose status has the condition is not", false, func(v *machinetaint.View) {
		v.Deployment.Status.Conditions = []mcm.MachineDeploymentCondition{{Type: "Available"}, {Type: api.ReserveReady}}
	}),
	Entry("whose status has other conditions is left alone", true, func(v *machinetaint.View) {
		v.Deployment.Status.Conditions = []mcm.MachineDeploymentCondition{{Type: "Available"}}
	}),
)

var _ = Describe("A plan that finds only leftovers", func() {
	It("removes them, and reports nothing", func() {
		p := machinetaint.New(unreserved(note(api.AppliedExcessAnnotation, "0"), note(api.WantedExcessAnnotation, "many"), note(api.ExcessOwnersAnnotation, "[]"), note(returned, "gone"), note(api.ClaimedAnnotation, "2:gone")))
		Expect(entries(p.Deployment.Annotations)).To(Equal([]string{"applied-excess=", "claimed=", "excess-owners=", "returned=", "wanted-excess="}))
		Expect(p.Report.Silent).To(BeTrue())
	})

	It("releases a Node that nothing holds", func() {
		p := machinetaint.New(unreserved(machine("s1", tainted(reserveTaint))))
		Expect(nodeWrites(p)).To(Equal([]string{"s1 released:;"}))
		Expect(p.Report.Silent).To(BeTrue())
	})
})

// objects are copies of all objects of a view.
type objects struct {
	deployment *api.MachineDeployment
	machines   []*mcm.Machine
	nodes      []*corev1.Node
}

func objectsOf(v machinetaint.View) objects {
	all := objects{deployment: v.Deployment.DeepCopy()}
	for _, m := range v.Machines {
		all.machines, all.nodes = append(all.machines, m.Object.DeepCopy()), append(all.nodes, m.Node.DeepCopy())
	}
	return all
}

var _ = DescribeTable("A plan changes no object of its view, and is the same for the same view,", func(v machinetaint.View) {
	before := objectsOf(v)
	p := machinetaint.New(v)
	Expect(isAtRest(p)).To(BeFalse())
	for _, c := range p.Machines {
		v.Changed(c)
	}
	for _, c := range p.Nodes {
		c.ApplyTo(c.Machine.Node.DeepCopy())
	}
	machinetaint.NewStatus(v.Deployment, p.Report, at(0))
	Expect(objectsOf(v)).To(Equal(before), "the objects are those of a cache")
	Expect(machinetaint.New(v)).To(Equal(p), "the same view, the same plan")
},
	Entry("when it releases a machine", atRest(replicas(4), machine("r1", tainted(reserveTaint, otherTaint)))),
	Entry("when it holds machines", atRest(excess(3), applied("3"), replicas(2), machine("s3", idle, tainted(otherTaint)))),
	Entry("when it renews marks", atRest(func(v *machinetaint.View) { v.Settings = evicting }, machine("r1", tainted(), nodeNoted()))),
	Entry("when it changes numbers", included(additive, excess(4))),
	Entry("when it writes a lost record", atRest(applied(""), remembered("2"), note(returned, "gone"))),
	Entry("when it removes what earlier versions wrote", atRest(note(returned, "gone"), machine("r1", annotated(machineutils.MachinePriority, "5")))),
	Entry("when it gives the field back",
		owned(2, "2", gitops, entry(machinetaint.FieldManager, "Update", 9, claim), entry("gitops", "Apply", 0, noClaim))),
	Entry("when it ends a reserve", changed(fleet(2, 1, held("r1", leaving), serving("s1"), serving("s2")), excess(0), func(v *machinetaint.View) {
		v.Deployment.Status.Conditions = []mcm.MachineDeploymentCondition{{Type: api.ReserveReady}, {Type: "Available"}}
	})),
)
