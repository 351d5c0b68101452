// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
)

// rollingBack returns a MachineDeployment of a class that is to go back to a revision.
func rollingBack(class string, to int64, change ...deploymentChange) *api.MachineDeployment {
	return aPool(3, append(change, func(d *api.MachineDeployment) {
		d.Spec.Template.Spec.Class.Name = class
		d.Spec.RollbackTo = &mcm.RollbackConfig{Revision: to}
	})...)
}

// revisions returns MachineSets with the classes and revisions that are stated; the last one has machines.
func revisions(classes ...string) (all []Set) {
	for i, text := range classes {
		class, at, _ := strings.Cut(text, " ")
		if i == len(classes)-1 {
			all = append(all, poolSet(class, at, 3, abc()))
		} else {
			all = append(all, poolSet(class, at, 0, nil))
		}
	}
	return all
}

// textOfRollback returns in words what a plan does about a rollback.
func textOfRollback(p Plan) string {
	var words []string
	for _, s := range p.NewSets {
		words = append(words, fmt.Sprintf("create set of %s with %d", s.Spec.Template.Spec.Class.Name, s.Spec.Replicas))
	}
	if c := p.Deployment; c != nil {
		if was, is := c.Before.Spec.Template.Spec.Class.Name, c.After.Spec.Template.Spec.Class.Name; was != is {
			words = append(words, "take "+is)
		}
		if c.After.Spec.RollbackTo == nil {
			words = append(words, "end")
		}
		for _, e := range c.Events {
			words = append(words, e.Type+" "+e.Reason)
		}
	}
	return strings.Join(words, ", ")
}

const (
	done     = "end, Normal DeploymentRollback"
	same     = "end, Warning DeploymentRollbackTemplateUnchanged"
	notFound = "end, Warning DeploymentRollbackRevisionNotFound"
)

var _ = DescribeTable("A MachineDeployment goes back",
	func(d *api.MachineDeployment, sets []Set, want string) {
		p := New(poolView(d, sets...))
		Expect(textOfRollback(p)).To(Equal(want))
		Expect(p.Creations).To(BeEmpty())
		Expect(p.Deletions).To(BeEmpty())
		Expect(p.Again).To(beSoon())
		for _, s := range p.Sets {
			Expect(s.After.Spec.Replicas).To(Equal(s.Before.Spec.Replicas), "E6")
		}
	},
	Entry("B1: to a revision", rollingBack("c", 1), revisions("a 1", "b 2", "c 3"), "take a, "+done),
	Entry("B1: to the second highest revision", rollingBack("c", 0), revisions("a 1", "b 2", "c 3"), "take b, "+done),
	Entry("B1: to the second highest revision, whatever their order", rollingBack("c", 0), revisions("b 5", "a 4", "c 7"), "take b, "+done),
	Entry("B1: to the second highest revision, though some have none or one that is no number", rollingBack("c", 0), revisions("a 1", "b x", "d ", "c 3"), "take a, "+done),
	Entry("B1: to the first MachineSet if two have the highest revision", rollingBack("c", 0), revisions("a 3", "b 2", "d 3", "c 4"), "take a, "+done),
	Entry("B1: not yet, if its template has no MachineSet: it gets one without machines", rollingBack("new", 1), revisions("a 1", "b 2"), "create set of new with 0"),
	Entry("B3: nowhere from the only revision", rollingBack("a", 0), revisions("a 1"), notFound),
	Entry("B3: nowhere from the only revision, though a MachineSet has none", rollingBack("c", 0), revisions("a ", "c 3"), notFound),
	Entry("B3: nowhere if no MachineSet has the revision", rollingBack("c", 9), revisions("a 1", "c 3"), notFound),
	Entry("B3: nowhere if the revision is that of the template", rollingBack("c", 3), revisions("a 1", "c 3"), same),
	Entry("B3: nowhere if a revision that is no number is asked for by none", rollingBack("c", -1), revisions("a x", "c 3"), notFound),
	Entry("T11: from the revision that it is about to have", rollingBack("b", 4), revisions("a 3", "b 2"), same),
	Entry("T11: to the revision before the one that it is about to have", rollingBack("b", 0), revisions("a 3", "b 2"), "take a, "+done),
	Entry("E6: before it is scaled", rollingBack("c", 1, func(d *api.MachineDeployment) { d.Spec.Replicas = 7 }), revisions("a 1", "c 3"), "take a, "+done),
)

var _ = DescribeTable("B3: A MachineDeployment says where it did not go back to", func(to int64, sets []Set, want string) {
	Expect(New(poolView(rollingBack("c", to), sets...)).Deployment.Events).To(ConsistOf(HaveField("Message", want)))
},
	Entry("a revision", int64(9), revisions("a 1", "c 3"), "No machine set has revision 9"),
	Entry("an earlier one", int64(0), revisions("c 3"), "No machine set has an earlier revision"),
	Entry("the template that it has", int64(3), revisions("a 1", "c 3"), "Machine set pool-c has the same template"),
)

var _ = It("E6: A MachineDeployment does not go back while it is paused", func() {
	for _, class := range []string{"c", "new"} {
		p := New(poolView(rollingBack(class, 1, func(d *api.MachineDeployment) { d.Spec.Paused = true }), revisions("a 1", "c 3")...))
		Expect(p.NewSets).To(BeEmpty())
		Expect(textOfRollback(p)).To(BeEmpty())
	}
})

var _ = It("B2: A MachineDeployment takes what a MachineSet has of it, except for what belongs to one object, in one write and without a status", func() {
	own := map[string]string{
		history: "7", PreferNoSchedule: "x", Unfreeze: "x",
		corev1.LastAppliedConfigAnnotation: "{}", desired: "9",
	}
	d := rollingBack("c", 1, annotatedPool("owner", "second"), annotatedPool("more", "x"), annotatedPool(stamp, later), annotatedPool(names, "a~"+later))
	maps.Copy(d.Annotations, own)
	d.Status.ObservedGeneration = 1
	sets := revisions("a 1", "c 3")
	target := sets[0].Object
	target.Annotations["owner"], target.Annotations[stamp] = "first", earlier
	target.Annotations[corev1.LastAppliedConfigAnnotation] = "{of the set}"
	target.Spec.Template.Spec.NodeTemplateSpec.Labels = map[string]string{"old": "yes"}
	target.Spec.Template.Spec.MachineConfiguration = &mcm.MachineConfiguration{MachineDrainTimeout: &metav1.Duration{Duration: time.Minute}}
	target.Spec.Template.Annotations = map[string]string{"old": "yes"}
	v := poolView(d, sets...)
	before := target.DeepCopy()

	p := New(v)
	Expect(p.DeploymentStatus).To(BeNil(), "it would be one of the former template")
	after := p.Deployment.After
	Expect(after.Spec.RollbackTo).To(BeNil())
	want := before.Spec.Template.DeepCopy()
	want.Labels = map[string]string{"name": "d"}
	Expect(after.Spec.Template).To(Equal(*want))
	maps.Copy(own, map[string]string{"owner": "first", stamp: earlier, names: "a~" + later, revision: "3"})
	Expect(after.Annotations).To(Equal(own))
	Expect(target).To(Equal(before))
	after.Spec.Template, after.Spec.RollbackTo = d.Spec.Template, d.Spec.RollbackTo
	Expect(after.Spec).To(Equal(d.Spec))
})

var _ = It("B2: A MachineDeployment without annotations goes back to a MachineSet without annotations", func() {
	d, sets := rollingBack("c", 3), revisions("a 3", "c x")
	d.Annotations, sets[1].Object.Annotations = nil, nil
	sets[0].Object.Annotations = map[string]string{revision: "3"}
	Expect(textOfRollback(New(poolView(d, sets...)))).To(Equal("take a, " + done))
})

var _ = It("B4: In the next plan, the MachineSet is the newest one, with a new revision", func() {
	d, sets := rollingBack("c", 1), revisions("a 1", "b 2", "c 3")
	v := poolView(d, sets...)
	v.Deployment = New(v).Deployment.After
	p := New(v)
	i := slices.IndexFunc(p.Sets, func(c SetChange) bool { return c.Before.Name == "pool-a" })
	Expect(i).NotTo(Equal(-1))
	Expect(p.Sets[i].After.Annotations).To(And(
		HaveKeyWithValue(revision, "4"), HaveKeyWithValue(history, "1")))
	Expect(p.Sets[i].After.Spec.Replicas).To(BeEquivalentTo(1))
	Expect(p.Deployment.After.Annotations).To(HaveKeyWithValue(revision, "4"))
	Expect(p.DeploymentStatus).NotTo(BeNil())
})

var _ = It("B1: A template without a MachineSet becomes a revision, and then the MachineDeployment goes back", func() {
	v := poolView(rollingBack("new", 0), revisions("a 1", "b 2")...)
	p := New(v)
	Expect(p.NewSets).To(HaveLen(1))
	Expect(p.NewSets[0].Annotations).To(HaveKeyWithValue(revision, "3"))
	Expect(p.Deployment).To(BeNil())
	Expect(p.DeploymentStatus.After.Conditions).To(ContainElement(HaveField("Reason", "NewMachineSetCreated")))
	created := p.NewSets[0].DeepCopy()
	created.UID, created.CreationTimestamp = "uid-new", at(0)
	v.Sets = append(v.Sets, Set{Object: created})
	Expect(textOfRollback(New(v))).To(Equal("take b, " + done))
})

var _ = DescribeTable("R11: The taint of Nodes ends before a MachineDeployment goes back to their MachineSet",
	func(to int64, want string) {
		d, sets := rollingBack("c", to, within(60), counted(9, 9, 9), has(progressing, "True", "MachineSetUpdated", time.Hour)), revisions("a 1", "c 3")
		i := map[int64]int{1: 0, 3: 1}[to]
		sets[i] = poolSet(map[int]string{0: "a", 1: "c"}[i], fmt.Sprint(to), 1, these(running("a", onNode)), func(s *mcm.MachineSet) {
			s.Annotations[PreferNoSchedule] = "True"
		})
		v := poolView(d, sets...)
		others := corev1.Taint{Key: "others", Effect: corev1.TaintEffectPreferNoSchedule}
		v.Nodes["node"] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
		v.Nodes["node"].Spec.Taints = []corev1.Taint{others, {Key: PreferNoSchedule, Value: "True", Effect: corev1.TaintEffectPreferNoSchedule}}

		p := New(v)
		Expect(p.Nodes).To(HaveLen(1))
		Expect(p.Nodes[0].After.Spec.Taints).To(ConsistOf(others))
		Expect(textOfRollback(p)).To(BeEmpty())
		Expect(p.DeploymentStatus).NotTo(BeNil())
		Expect(conditionOf(p, progressing)).To(Equal("True MachineSetUpdated"), "E6: it is not judged")
		Expect(p.Again).To(beSoon(), "nothing else wakes it")
		v.Nodes["node"] = p.Nodes[0].After

		p = New(v)
		Expect(textOfRollback(p)).To(BeEmpty())
		j := slices.IndexFunc(p.Sets, func(c SetChange) bool { return c.Before.UID == sets[i].Object.UID })
		Expect(p.Sets[j].After.Annotations).NotTo(HaveKey(PreferNoSchedule))
		v.Sets[i].Object = p.Sets[j].After

		p = New(v)
		Expect(p.Nodes).To(BeEmpty())
		Expect(textOfRollback(p)).To(Equal(want))
	},
	Entry("B2: an old one", int64(1), "take a, "+done),
	Entry("B3: the one that it has", int64(3), same),
)

var _ = It("R11: A MachineDeployment goes back also if the Nodes are gone, or there is no target cluster", func() {
	for _, nodes := range []map[string]*corev1.Node{{}, nil} {
		sets := revisions("a 1", "c 3")
		sets[0] = poolSet("a", "1", 1, these(running("a", onNode)), func(s *mcm.MachineSet) { s.Annotations[PreferNoSchedule] = "True" })
		v := poolView(rollingBack("c", 1), sets...)
		v.Nodes = nodes
		p := New(v)
		Expect(textOfRollback(p)).To(BeEmpty())
		v.Sets[0].Object = p.Sets[0].After
		Expect(textOfRollback(New(v))).To(Equal("take a, " + done))
	}
})
