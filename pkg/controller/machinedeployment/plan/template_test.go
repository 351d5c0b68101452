// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/controller"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
)

// template changes the template of a MachineDeployment.
func template(change func(*mcm.MachineTemplateSpec)) deploymentChange {
	return func(d *api.MachineDeployment) { change(&d.Spec.Template) }
}

var (
	zoned = template(func(t *mcm.MachineTemplateSpec) { t.Spec.NodeTemplateSpec.Labels = map[string]string{"zone": "z"} })
	slow  = template(func(t *mcm.MachineTemplateSpec) {
		t.Spec.MachineConfiguration = &mcm.MachineConfiguration{MachineDrainTimeout: &metav1.Duration{Duration: time.Minute}}
	})
	ofKind = template(func(t *mcm.MachineTemplateSpec) { t.Spec.Class.Kind = "Other" })
	hashed = template(func(t *mcm.MachineTemplateSpec) { t.Labels[hashLabel] = "1" })
	byArg  = func(what string) deploymentChange {
		return template(func(t *mcm.MachineTemplateSpec) {
			switch what {
			case "label":
				t.Labels["more"] = "x"
			case "annotation":
				t.Annotations = map[string]string{"more": "x"}
			case "class":
				t.Spec.Class.Name = "else"
			case "group":
				t.Spec.Class.APIGroup = "else"
			case "provider":
				t.Spec.ProviderID = "else"
			}
		})
	}
)

var _ = DescribeTable("T3: A template", func(change deploymentChange, rolls bool) {
	d := newDeployment(1)
	v := viewOf(d, of("new", 1, "r"))
	change(d)
	Expect(New(v).NewSets).To(HaveLen(map[bool]int{true: 1}[rolls]))
},
	Entry("rolls with another label", byArg("label"), true),
	Entry("rolls with another annotation", byArg("annotation"), true),
	Entry("rolls with another class", byArg("class"), true),
	Entry("rolls with another group of its class", byArg("group"), true),
	Entry("rolls with a provider ID", byArg("provider"), true),
	Entry("does not roll for Nodes", zoned, false),
	Entry("does not roll for the configuration", slow, false),
	Entry("does not roll for the kind of its class", ofKind, false),
	Entry("does not roll for a hash", hashed, false),
	Entry("does not roll for an empty map", template(func(t *mcm.MachineTemplateSpec) { t.Annotations = map[string]string{} }), false),
)

var _ = It("T2: A new set has all of the template, and what identifies it", func() {
	d := newDeployment(2, zoned, slow, func(d *api.MachineDeployment) {
		d.Labels, d.Annotations = map[string]string{"team": "a"}, map[string]string{"owner": "b"}
		d.Spec.MinReadySeconds, d.Spec.AutoPreserveFailedMachineMax = 7, 1
		d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "name", Operator: metav1.LabelSelectorOpExists}}
	})
	was := d.DeepCopy()
	s := New(viewOf(d)).NewSets[0]
	hash := fmt.Sprint(controller.ComputeHash(&was.Spec.Template, nil))
	Expect(s.Name).To(Equal("d-" + s.Name[2:]))
	Expect(s.Name).To(HaveLen(7))
	Expect(s.Namespace).To(Equal("n"))
	Expect(s.Labels).To(Equal(map[string]string{"name": "d", hashLabel: hash}))
	Expect(s.OwnerReferences).To(ConsistOf(*metav1.NewControllerRef(d, mcm.SchemeGroupVersion.WithKind("MachineDeployment"))))
	Expect(s.Finalizers).To(ConsistOf(Finalizer), "O1")
	Expect(s.Annotations).To(And(HaveKeyWithValue("owner", "b"), HaveKeyWithValue(revision, "1"), Not(HaveKey(history))))
	Expect(s.Spec.MinReadySeconds).To(BeEquivalentTo(7))
	Expect(s.Spec.AutoPreserveFailedMachineMax).To(BeEquivalentTo(1))
	Expect(s.Spec.Selector.MatchLabels).To(Equal(map[string]string{"name": "d", hashLabel: hash}))
	Expect(s.Spec.Selector.MatchExpressions).To(HaveLen(1))
	Expect(s.Spec.Template.Labels).To(Equal(s.Labels))
	Expect(s.Spec.Template.Spec).To(Equal(was.Spec.Template.Spec))
	Expect(s.Spec.MachineClass).To(BeZero())
	Expect(d).To(Equal(was))
})

var _ = It("T1, T4: After a collision, a new set has another hash and name", func() {
	d := newDeployment(2)
	first := New(viewOf(d)).NewSets[0]
	d.Status.CollisionCount = ptr.To[int32](1)
	second := New(viewOf(d)).NewSets[0]
	Expect(second.Name).NotTo(Equal(first.Name))
	Expect(second.Labels[hashLabel]).To(Equal(fmt.Sprint(controller.ComputeHash(&d.Spec.Template, ptr.To[int32](1)))))
})

var _ = Describe("T4: A set that has the name of a new one", func() {
	live := func(change ...setChange) (View, *mcm.MachineSet) {
		d := newDeployment(2)
		return viewOf(d), of("new", 2, "", change...).object(d, 0)
	}
	DescribeTable("is", func(change setChange, is bool) {
		v, s := live(change)
		Expect(v.IsNewSet(s)).To(Equal(is))
	},
		Entry("the one that another plan has created", func(*mcm.MachineSet) {}, true),
		Entry("it, also if it is being deleted", goes, true),
		Entry("one that is to be adopted", func(s *mcm.MachineSet) { s.OwnerReferences = nil }, true),
		Entry("not one that cannot be adopted", func(s *mcm.MachineSet) { s.OwnerReferences = nil; goes(s) }, false),
		Entry("not one of another owner", func(s *mcm.MachineSet) { s.OwnerReferences[0].UID = "other" }, false),
		Entry("not one of another template", func(s *mcm.MachineSet) { s.Spec.Template.Spec.Class.Name = "other" }, false),
		Entry("not one that is not selected", func(s *mcm.MachineSet) { s.Labels = nil }, false),
	)

	It("raises the number of collisions", func() {
		v, _ := live()
		Expect(v.WithCollision().After.CollisionCount).To(HaveValue(BeEquivalentTo(1)))
		v.Deployment.Status.CollisionCount = ptr.To[int32](4)
		Expect(v.WithCollision().After.CollisionCount).To(HaveValue(BeEquivalentTo(5)))
		Expect(v.Deployment.Status.CollisionCount).To(HaveValue(BeEquivalentTo(4)))
	})
})

// annotationsAfter returns those that the only changed set has after a plan.
func annotationsAfter(v View) map[string]string {
	p := New(v)
	if len(p.Sets) == 0 {
		return nil
	}
	Expect(p.Sets).To(HaveLen(1))
	return p.Sets[0].After.Annotations
}

var _ = It("T6: The new set has the annotations of the MachineDeployment, except for those of one object alone", func() {
	d := newDeployment(1)
	v := viewOf(d, of("new", 1, "r", func(s *mcm.MachineSet) { s.Annotations["kept"], s.Annotations[stamp] = "x", now }))
	d.Annotations[stamp] = now // or it would be stamped for the machine that is named
	for _, key := range []string{corev1.LastAppliedConfigAnnotation, history, desired, maximum, PreferNoSchedule, "node.machine.sapcloud.io/trigger-deletion-by-mcm"} {
		d.Annotations[key] = "theirs"
	}
	Expect(New(v).Sets).To(BeEmpty())
	d.Annotations["owner"] = "b"
	Expect(annotationsAfter(v)).To(Equal(map[string]string{"kept": "x", "owner": "b", stamp: now, revision: "1", desired: "1", maximum: "2"}))
})

var _ = It("T6, T7: Old sets are not changed", func() {
	d := newDeployment(2)
	v := viewOf(d, of("old", 2, "rr", isMarked), of("new", 1, "p"))
	d.Annotations["owner"] = "b"
	zoned(d)
	d.Spec.MinReadySeconds = 7
	p := New(v)
	Expect(p.Sets).To(HaveLen(1))
	Expect(p.Sets[0].Before.Name).To(Equal("new"))
})

var _ = It("T7, T8: The new set takes the rest while it exists, and its machines with it", func() {
	d := newDeployment(1)
	v := viewOf(d, of("new", 1, "r"))
	zoned(d)
	slow(d)
	ofKind(d)
	d.Spec.MinReadySeconds, d.Spec.AutoPreserveFailedMachineMax = 7, 2
	p := New(v)
	Expect(p.Sets).To(HaveLen(1))
	s := p.Sets[0].After.Spec
	Expect(s.MinReadySeconds).To(BeEquivalentTo(7))
	Expect(s.AutoPreserveFailedMachineMax).To(BeEquivalentTo(2))
	Expect(s.Template.Spec).To(Equal(d.Spec.Template.Spec))
	Expect(p.Machines).To(HaveLen(1))
	Expect(p.Machines[0].After.Spec.NodeTemplateSpec).To(Equal(d.Spec.Template.Spec.NodeTemplateSpec))
	Expect(rest(v).Sets[0].Machines[0].Spec.Class.Kind).To(Equal("Other"))
})

func atRevision(text string) setChange {
	return func(s *mcm.MachineSet) { s.Annotations[revision] = text }
}

var _ = DescribeTable("T11, T12: The revision of the new set", func(sets []part, want string) {
	Expect(steps(New(viewOf(newDeployment(1, paused), sets...)))).To(Equal(want))
},
	Entry("is beyond those of others, and the MachineDeployment has it", parts(of("old", 1, "r", atRevision("7")), of("new", 0, "", atRevision("3"))), "revision 8, new revision 8, new revision-history 3"),
	Entry("is beyond one that is as high", parts(of("old", 1, "r", atRevision("7")), of("new", 0, "", atRevision("7"))), "revision 8, new revision 8, new revision-history 7"),
	Entry("is a decimal number", parts(of("old", 1, "r", atRevision("10")), of("new", 0, "", atRevision("9"))), "revision 11, new revision 11, new revision-history 9"),
	Entry("stays if it is", parts(of("old", 1, "r", atRevision("7")), of("new", 0, "", atRevision("9"))), ""),
	Entry("is the first where there is none", parts(of("new", 1, "r", atRevision(""))), "revision 1, new revision 1"),
	Entry("ignores what is no number", parts(of("old", 1, "r", atRevision("x")), of("new", 0, "", atRevision("1"))), ""),
	Entry("is not replaced if it is no number", parts(of("old", 1, "r", atRevision("7")), of("new", 0, "", atRevision("x"))), ""),
)

var _ = It("T12: A set shows its last twenty revisions", func() {
	d := newDeployment(1, paused)
	v := viewOf(d, of("old", 1, "r", atRevision("50")), of("new", 0, "", atRevision("49"), func(s *mcm.MachineSet) { s.Annotations[history] = "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20" }))
	Expect(annotationsAfter(v)).To(HaveKeyWithValue(history, "2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,49"))
})

var _ = It("P13, T11: The MachineDeployment has the revision of the new set", func() {
	d := newDeployment(1)
	v := viewOf(d, of("new", 1, "r"))
	delete(d.Annotations, revision)
	Expect(steps(New(v))).To(Equal("revision 1"))
})

// byHand is for a MachineSet that has no hash.
func byHand(s *mcm.MachineSet) {
	s.Labels = map[string]string{"name": "d"}
	s.Spec.Template.Labels = map[string]string{"name": "d"}
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": "d"}}
}

var _ = Describe("T14: A set without a hash", func() {
	var v View
	BeforeEach(func() {
		v = viewOf(newDeployment(2), of("new", 2, "rt", byHand))
		for _, m := range v.Sets[0].Machines {
			delete(m.Labels, hashLabel)
		}
	})

	It("gives it to its machines, and to those to come, first", func() {
		p := New(v)
		Expect(p.Sets).To(HaveLen(1))
		after := p.Sets[0].After
		hash, err := controller.GetMachineSetHash(p.Sets[0].Before, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(after.Spec.Template.Labels).To(HaveKeyWithValue(hashLabel, hash))
		Expect(after.Spec.Selector.MatchLabels).NotTo(HaveKey(hashLabel))
		Expect(after.Labels).NotTo(HaveKey(hashLabel))
		Expect(p.Machines).To(HaveEach(HaveField("After.Labels", HaveKeyWithValue(hashLabel, hash))))
		Expect(p.Machines).To(HaveLen(2))
		Expect(p.Creations).To(ConsistOf(HaveField("Set", BeIdenticalTo(after))), "so it has the label")
	})

	It("selects by it once all have it", func() {
		next := carriedOut(v, New(v))
		after := New(next).Sets[0].After
		Expect(after.Labels).To(HaveKeyWithValue(hashLabel, after.Spec.Template.Labels[hashLabel]))
		Expect(after.Spec.Selector.MatchLabels).To(HaveKeyWithValue(hashLabel, after.Spec.Template.Labels[hashLabel]))
	})

	It("waits for the last of them, whatever was written before", func() {
		next := carriedOut(v, New(v))
		m := next.Sets[0].Machines[0].DeepCopy()
		m.Labels[hashLabel] = "other"
		next.Sets[0].Machines[0] = m
		p := New(next)
		Expect(p.Machines).To(ConsistOf(HaveField("Before", BeIdenticalTo(m))))
		for _, c := range p.Sets {
			Expect(c.After.Spec.Selector.MatchLabels).NotTo(HaveKey(hashLabel))
		}
	})

	It("ends with it, and with its machines", func() {
		end := rest(booted(rest(v)))
		s := end.Sets[0]
		Expect(s.Object.Spec.Selector.MatchLabels).To(HaveKey(hashLabel))
		Expect(s.Machines).To(HaveLen(2))
		Expect(s.Machines).To(HaveEach(HaveField("Labels", HaveKeyWithValue(hashLabel, s.Object.Labels[hashLabel]))))
	})

	It("is not one that selects by it", func() {
		unlabeled := func(s *mcm.MachineSet) { s.Labels = map[string]string{"name": "d"} }
		Expect(New(viewOf(newDeployment(1), of("new", 1, "r", unlabeled))).Sets).To(BeEmpty())
	})

	It("does not get it while it is being deleted, or invalid", func() {
		goes(v.Sets[0].Object)
		Expect(New(v).Machines).To(BeEmpty())
		v.Sets[0].Object.DeletionTimestamp, v.Sets[0].Object.Spec.Selector = nil, nil
		Expect(New(v).Machines).To(BeEmpty())
	})
})

// drawnTemplate draws one of few templates.
func drawnTemplate(t *rapid.T) (c mcm.MachineTemplateSpec) {
	word := rapid.SampledFrom([]string{"", "", "a", "b"})
	c.Labels = map[string]string{"name": "d"}
	for _, key := range []string{"more", hashLabel} {
		if value := word.Draw(t, key); value != "" {
			c.Labels[key] = value
		}
	}
	if value := word.Draw(t, "annotation"); value != "" {
		c.Annotations = map[string]string{"a": value}
	} else if rapid.Bool().Draw(t, "empty") {
		c.Annotations = map[string]string{}
	}
	c.Spec.Class = mcm.ClassSpec{Kind: word.Draw(t, "kind"), Name: word.Draw(t, "class"), APIGroup: word.Draw(t, "group")}
	c.Spec.ProviderID = word.Draw(t, "provider")
	c.Spec.NodeTemplateSpec.Labels = map[string]string{"zone": word.Draw(t, "zone")}
	if rapid.Bool().Draw(t, "configured") {
		c.Spec.MachineConfiguration = &mcm.MachineConfiguration{MaxEvictRetries: ptr.To(rapid.Int32Range(0, 2).Draw(t, "retries"))}
	}
	return c
}

var _ = Describe("Templates are compared as by machine-controller-manager", func() {
	It("T1: hashes", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			c := drawnTemplate(t)
			var collisions *int32
			if rapid.Bool().Draw(t, "collided") {
				collisions = ptr.To(rapid.Int32Range(0, 9).Draw(t, "collisions"))
			}
			if ours, theirs := HashOf(c, collisions), fmt.Sprint(controller.ComputeHash(&c, collisions)); ours != theirs {
				t.Fatalf("%s, theirs %s", ours, theirs)
			}
		})
	})

	It("T3: the newest set", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			d := newDeployment(1)
			d.Spec.Template = drawnTemplate(t)
			delete(d.Spec.Template.Labels, hashLabel) // with it, machine-controller-manager misses other labels
			var sets, theirs []*mcm.MachineSet
			for i := range rapid.IntRange(0, 4).Draw(t, "sets") {
				s := newSet(fmt.Sprint("s", i), 1)
				s.CreationTimestamp = at(-time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * time.Hour)
				if s.Spec.Template = drawnTemplate(t); rapid.Bool().Draw(t, "same") {
					s.Spec.Template = *d.Spec.Template.DeepCopy()
				}
				sets, theirs = append(sets, s), append(theirs, s)
			}
			if ours, theirs := NewestOf(d, sets...), controller.FindNewMachineSet(stockOf(d), theirs); ours != theirs {
				t.Fatalf("%v, theirs %v", ours, theirs)
			}
		})
	})
})
