// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
)

const (
	names = machineutils.TriggerDeletionByMCM
	stamp = machineutils.LastDeploymentReplicaChangeByScalerTime
)

// Times of marks, as text.
var earlier, now, later = mark(-time.Minute), mark(0), mark(time.Minute)

// aPool returns a MachineDeployment of the class "class" that rolls one machine after the other.
func aPool(replicas int32, change ...deploymentChange) *api.MachineDeployment {
	return newDeployment(replicas, append([]deploymentChange{func(d *api.MachineDeployment) {
		d.Annotations, d.Spec.Template.Spec.Class.Name = map[string]string{}, "class"
	}}, change...)...)
}

func annotatedPool(key, value string) deploymentChange {
	return func(d *api.MachineDeployment) { d.Annotations[key] = value }
}

// namedPool is a MachineDeployment that had three machines, when a client has named some and changed
// replicas.
func namedPool(replicas int32, list, changed string) *api.MachineDeployment {
	d := aPool(replicas, annotatedPool(names, list))
	if changed != "" {
		d.Annotations[stamp] = changed
	}
	return d
}

// poolSet returns a MachineSet of a pool of a revision, with its machines.
func poolSet(class, at string, replicas int32, machines []machineOf, change ...setChange) Set {
	s := newSet("pool-"+class, replicas, func(s *mcm.MachineSet) {
		s.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(aPool(0), mcm.SchemeGroupVersion.WithKind("MachineDeployment"))}
		s.Labels = map[string]string{"name": "d", hashLabel: class}
		s.Spec.Selector.MatchLabels = map[string]string{"name": "d", hashLabel: class}
		s.Spec.Template.Labels = map[string]string{"name": "d", hashLabel: class}
		s.Spec.Template.Spec.Class.Name = class
		s.Annotations = map[string]string{revision: at, desired: "3", maximum: "4"}
	})
	for _, c := range change {
		c(s)
	}
	one := Set{Object: s}
	for _, m := range machines {
		object := m(s)
		object.Labels["name"], object.Labels[hashLabel] = "d", class
		one.Machines = append(one.Machines, object)
	}
	return one
}

// poolView returns a view of a MachineDeployment with its MachineSets, each older than the next.
func poolView(d *api.MachineDeployment, sets ...Set) View {
	for i, s := range sets {
		s.Object.CreationTimestamp = at(time.Duration(i-len(sets)) * time.Hour)
	}
	return View{Now: noon, Deployment: d, Sets: sets, Nodes: map[string]*corev1.Node{}}
}

// textOfPool returns in words what a plan does about a pool, except for its status.
func textOfPool(p Plan) string {
	var words []string
	say := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	differ := func(of string, before, after map[string]string, keys ...string) {
		for _, key := range keys {
			if before[key] != after[key] {
				say("%s %s %q", of, key[strings.LastIndex(key, "/")+1:], after[key])
			}
		}
	}
	if c := p.Deployment; c != nil {
		differ("pool", c.Before.Annotations, c.After.Annotations, names, stamp)
	}
	for _, c := range p.Sets {
		differ(c.Before.Name, c.Before.Annotations, c.After.Annotations, stamp, names)
		if c.Before.Spec.Replicas != c.After.Spec.Replicas {
			say("%s has %d", c.Before.Name, c.After.Spec.Replicas)
		}
	}
	for _, c := range p.Machines {
		differ(c.Before.Name, c.Before.Annotations, c.After.Annotations, machineutils.MachinePriority, machineutils.MarkedForDeletionTime)
	}
	for _, c := range p.Creations {
		say("create %d", c.Count)
	}
	for _, d := range p.Deletions {
		say("delete %s (%s)", d.Machine.Name, d.Reason)
	}
	text := strings.Join(words, ", ")
	for when, word := range map[string]string{earlier: "earlier", now: "now", later: "later"} {
		text = strings.ReplaceAll(text, when, word)
	}
	for key, word := range map[string]string{names: "names", stamp: "changed", machineutils.MachinePriority: "priority", machineutils.MarkedForDeletionTime: "mark"} {
		text = strings.ReplaceAll(text, key[strings.LastIndex(key, "/")+1:], word)
	}
	return text
}

// abc are three machines, the oldest first. Machines replace those of their names.
func abc(others ...machineOf) (all []machineOf) {
	for i, name := range []string{"a", "b", "c"} {
		one := running(name, aged(time.Duration(9-i)*time.Hour))
		for _, other := range others {
			if other(newSet("s", 1)).Name == name {
				one = other
			}
		}
		all = append(all, one)
	}
	return all
}

const (
	shrinks = `pool-class changed "now", pool-class has 2`
	gone    = `pool names "", pool-class changed "now"`
)

var _ = DescribeTable("Machines that are named for deletion",
	func(d *api.MachineDeployment, machines []machineOf, want string) {
		p := New(poolView(d, poolSet("class", "1", 3, machines)))
		Expect(textOfPool(p)).To(Equal(want))
		for _, c := range p.Machines {
			Expect(c.After).NotTo(Equal(c.Before), "what is the same is not written")
		}
	},
	Entry("N1, N6: go in the plan in which replicas fall", namedPool(2, "b~"+now, now), abc(), shrinks+", delete b (Surplus)"),
	Entry("N1: go together", namedPool(1, "b~"+now+",c~"+earlier, now), abc(), `pool-class changed "now", pool-class has 1, delete c (Surplus), delete b (Surplus)`),
	Entry("N6: and then others, if replicas fall further", namedPool(1, "b~"+now, now), abc(), `pool-class changed "now", pool-class has 1, delete b (Surplus), delete a (Surplus)`),
	Entry("N6: go although another has not come up yet", namedPool(2, "b~"+now, now), abc(machine("c", mcm.MachinePending)), shrinks+", delete b (Surplus)"),
	Entry("N5: go although replicas stay", namedPool(3, "b~"+now, now), abc(), `pool-class changed "now", delete b (Named)`),
	Entry("N5: stay while machines are missing, with a mark", namedPool(4, "b~"+now, now), abc(),
		`pool-class changed "now", pool-class has 4, b priority "1", b mark "now", create 1`),
	Entry("N5: stay if they were named after the last change of replicas, with a mark", namedPool(3, "b~"+later, now), abc(),
		`pool-class changed "now", b priority "1", b mark "later"`),
	Entry("N4: keep an earlier mark", namedPool(3, "b~"+later, earlier), abc(running("b", marked(0))), `pool-class changed "earlier", b priority "1"`),
	Entry("N4: keep a mark that is no time", namedPool(3, "b~"+now, now), abc(running("b", annotated(machineutils.MarkedForDeletionTime, "soon"))), `pool-class changed "now", b priority "1"`),
	Entry("N4: get a mark with a priority of people", namedPool(3, "b~"+later, now), abc(running("b", priority("1"))), `pool-class changed "now", b mark "later"`),
	Entry("N4: are marked once", namedPool(3, "b~"+now, earlier), abc(running("b", priority("1"), marked(0))), `pool-class changed "earlier"`),
	Entry("N4: are marked by the first of two times", namedPool(3, "b~"+later+",b~"+now, earlier), abc(), `pool-class changed "earlier", b priority "1", b mark "later"`),
	Entry("N2: without a time were named at the last change of replicas", namedPool(2, "b", now), abc(),
		`pool names "b~now", `+shrinks+", delete b (Surplus)"),
	Entry("N2: without any time were named now, which is written down", namedPool(2, "b", ""), abc(),
		`pool names "b~now", pool changed "now", `+shrinks+", delete b (Surplus)"),
	Entry("N2: with a time, where nothing says when replicas were changed, go now", namedPool(3, "b~"+earlier, ""), abc(), `pool changed "now", pool-class changed "now", delete b (Named)`),
	Entry("N2, N3: without a time, where the last change is none, are dropped", namedPool(3, "b", "soon"), abc(), `pool names "", pool-class changed "soon"`),
	Entry("N3: are kept in order", namedPool(3, "c~"+later+",gone~"+now+",b~"+later, now), abc(),
		`pool names "c~later,b~later", pool-class changed "now", b priority "1", b mark "later", c priority "1", c mark "later"`),
	Entry("N3: are dropped with two times", namedPool(3, "b~"+now+"~"+now, now), abc(), gone),
	Entry("N3: are dropped with a time that is none", namedPool(3, "b~soon", now), abc(), gone),
	Entry("N3: are dropped with an empty time", namedPool(3, "b~", now), abc(), gone),
	Entry("N3: are dropped without a name", namedPool(3, "~"+now+",", now), abc(), gone),
	Entry("N3: are dropped if they are not there", namedPool(3, "d~"+now, now), abc(), gone),
	Entry("N3: are dropped if they have failed, and go for that", namedPool(2, "b~"+now, now), abc(failed("b")), `pool names "", `+shrinks+", delete b (Surplus)"),
	Entry("N3: are dropped if they are being deleted", namedPool(2, "b~"+now, now), abc(running("b", leaving)), `pool names "", `+shrinks),
	Entry("N7: keep their marks whatever becomes of the names", aPool(3), abc(running("b", priority("1"), marked(0))), ""),
	Entry("N7: go at the next change of replicas after they were spared", aPool(3, annotatedPool(stamp, now)), abc(running("b", priority("1"), marked(-time.Minute))),
		`pool-class changed "now", delete b (Named)`),
	Entry("N1: are none if the list is empty", namedPool(3, "", ""), abc(), ""),
	Entry("S7: stay if they are preserved and another may go", namedPool(2, "b~"+now, now), abc(running("b", expires(time.Hour))),
		shrinks+`, delete a (Surplus), delete b (Named)`),
)

var _ = It("N3: The list goes with the last name", func() {
	after := New(poolView(namedPool(3, "gone~"+now, now), poolSet("class", "1", 3, abc()))).Deployment.After
	Expect(after.Annotations).NotTo(HaveKey(names))
})

var _ = It("N5: A machine that was in a reserve which is no more goes as any other", func() {
	d := namedPool(3, "b~"+later, now)
	Expect(textOfPool(New(poolView(d, poolSet("class", "1", 3, abc(running("b", markedNow))))))).To(Equal(`pool-class changed "now", b priority "1", b mark "later"`))
})

var _ = It("E5: Machines that are named for deletion go also while the MachineDeployment is paused", func() {
	d := namedPool(2, "b~"+now, now)
	d.Spec.Paused = true
	Expect(textOfPool(New(poolView(d, poolSet("class", "1", 3, abc()))))).To(Equal(shrinks + ", delete b (Surplus)"))
})

var _ = It("E4: Machines that are named for deletion are not marked while the MachineDeployment is being deleted", func() {
	d := namedPool(2, "b~"+now, now)
	d.DeletionTimestamp = deleted(noon)
	Expect(textOfPool(New(poolView(d, poolSet("class", "1", 3, abc()))))).To(BeEmpty())
})

var _ = It("E6: Machines that are named for deletion are marked also when the MachineDeployment is rolled back", func() {
	d := namedPool(3, "b~"+later, now)
	d.Spec.RollbackTo = &mcm.RollbackConfig{Revision: 9}
	Expect(textOfPool(New(poolView(d, poolSet("class", "1", 3, abc()))))).To(Equal(`pool-class changed "now", b priority "1", b mark "later"`))
})

var _ = It("N3: A name of a machine of another MachineDeployment is dropped", func() {
	d := namedPool(3, "other~"+now, now)
	v := poolView(d, poolSet("class", "1", 3, abc()))
	v.Orphans = append(v.Orphans, newMachine(newSet("s", 1), "other", mcm.MachineRunning, orphan))
	Expect(textOfPool(New(v))).To(Equal(gone))
})

var _ = It("N4, T6: A machine of an old MachineSet is marked, and that MachineSet is not told when replicas were changed", func() {
	d := namedPool(3, "b~"+now, now)
	v := poolView(d, poolSet("old", "1", 3, abc()), poolSet("class", "2", 1, these(machine("d", mcm.MachinePending))))
	Expect(textOfPool(New(v))).To(Equal(`pool-class changed "now", b priority "1", b mark "now"`))
})

var _ = It("N8: The same annotations on a Node name nothing", func() {
	v := poolView(aPool(3), poolSet("class", "1", 3, abc(running("b", onNode))))
	v.Nodes["node"] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Annotations: map[string]string{names: "b~" + now, machineutils.MachinePriority: "1", stamp: now}}}
	Expect(textOfPool(New(v))).To(BeEmpty())
})

var _ = It("N2: The time of a change that is not stated is noted once", func() {
	d := namedPool(3, "b", "")
	v := poolView(d, poolSet("class", "1", 3, abc()))
	p := New(v)
	v.Deployment, v.Sets[0].Object = p.Deployment.After, p.Sets[0].After
	v.Now = noon.Add(time.Minute)
	p = New(v)
	Expect(p.Deployment).To(BeNil())
	Expect(p.Sets).To(BeEmpty())
	Expect(text(p)).To(Equal("delete b (Named)"))
})

var _ = It("N1: More machines are named than one plan deletes: all are marked, and the first go", func() {
	machines := manyRunning(200)
	var list []string
	for _, m := range machines {
		list = append(list, m(newSet("s", 1)).Name+"~"+now)
	}
	slices.Reverse(list)
	p := New(poolView(namedPool(50, strings.Join(list[:150], ","), now), poolSet("class", "1", 200, machines)))
	Expect(p.Deletions).To(HaveLen(Burst))
	Expect(p.Machines).To(HaveLen(50))
	for _, d := range p.Deletions {
		Expect(d.Machine.Annotations).To(HaveKeyWithValue(machineutils.MachinePriority, "1"))
	}
})
