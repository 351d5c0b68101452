// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// fieldWrites are the changes of the field, and of the records about it.
func fieldWrites(p machinetaint.Plan) []string {
	c := p.Deployment
	all := []string{}
	if c.Field != nil {
		all = append(all, fmt.Sprintf("field=%d", *c.Field))
	}
	if c.Restored {
		all = append(all, "restored")
	}
	if c.Removed {
		all = append(all, "removed")
	}
	if c.Witness != nil {
		all = append(all, fmt.Sprintf("witness=%t", *c.Witness))
	}
	for _, key := range []string{api.WantedExcessAnnotation, api.ExcessOwnersAnnotation} {
		if text, written := c.Annotations[key]; written {
			all = append(all, short(key)+"="+text)
		}
	}
	return all
}

// bounded has bounds, a field that is absent where it is below 0, and a record of the field.
func bounded(bounds string, field int32, recorded string, change ...viewChange) machinetaint.View {
	return changed(owned(field, recorded, ""), append(change, note(api.BoundsAnnotation, bounds))...)
}

func unwitnessed(v *machinetaint.View) { v.Deployment.Spec.ReserveWitness = false }

func shared(n string) viewChange { return note(api.ShareAnnotation, n) }

var _ = DescribeTable("The field spec.excessReplicas",
	func(v machinetaint.View, written ...string) {
		if len(written) == 0 {
			Expect(fieldWrites(machinetaint.New(v))).To(BeEmpty())
			return
		}
		Expect(fieldWrites(machinetaint.New(v))).To(Equal(written))
	},
	Entry("is recorded", owned(2, "", ""), "witness=true", "wanted-excess=2"),
	Entry("is recorded again when it changes", owned(3, "2", ""), "wanted-excess=3"),
	Entry("is not recorded twice", owned(2, "2", "")),
	Entry("is recorded no more when it is 0", owned(0, "2", ""), "witness=false", "wanted-excess="),
	Entry("is restored when it vanishes with its witness", owned(-1, "2", ""), "field=2", "restored", "witness=true"),
	Entry("is restored to a value of several digits", owned(-1, "12", ""), "field=12", "restored", "witness=true"),
	Entry("is given up when it vanishes alone", changed(owned(-1, "2", ""), witness), "removed", "witness=false", "wanted-excess="),
	Entry("is given up with its owners", changed(owned(-1, "2", gitops), witness), "removed", "witness=false", "wanted-excess=", "excess-owners="),
	Entry("gets its witness back", changed(owned(2, "2", ""), unwitnessed), "witness=true"),
	Entry("has no witness where the API server does not store the field, whatever is left of it", changed(owned(2, "", ""), witness, func(v *machinetaint.View) { v.Pruned = true }), "witness=false", "wanted-excess=2"),
	Entry("that is absent and on no record needs no witness", changed(owned(-1, "", ""), witness), "witness=false"),
	Entry("that is absent has no owner, whatever the API server tracks", changed(owned(-1, "", "", entry("gitops", "Apply", 0, claim)), leftover)),
	Entry("is not restored where the API server does not store it", changed(owned(-1, "2", ""), pruned)),
	Entry("is recorded without a witness where the API server does not store that", changed(owned(2, "", ""), witnessPruned), "wanted-excess=2"),
	Entry("is restored without a witness where the API server does not store that", changed(owned(-1, "2", ""), witnessPruned), "field=2", "restored"),
	Entry("is not restored from a record of 0", changed(owned(-1, "0", "")), "wanted-excess="),
	Entry("is not restored from a record below 0", changed(owned(-1, "-1", "")), "wanted-excess="),
	Entry("is not restored from a record that cannot be read", changed(owned(-1, "many", "")), "wanted-excess="),
	Entry("is not restored from a record beyond its range", changed(owned(-1, "3000000000", "")), "wanted-excess="),
	Entry("with bounds that leave it the excess, is as without", bounded("1:9", 2, ""), "witness=true", "wanted-excess=2"),
	Entry("with bounds that leave it the excess, is given up as without", bounded("1:9", -1, "2", witness), "removed", "witness=false", "wanted-excess="),
	Entry("shows what bounds come to", bounded("1:9:2", -1, ""), "field=2", "witness=true", "wanted-excess=2"),
	Entry("shows what bounds come to within max", bounded("1:4:2", -1, ""), "field=1", "witness=true", "wanted-excess=1"),
	Entry("shows the share of a pool's excess", changed(owned(-1, "", ""), shared("4")), "field=4", "witness=true", "wanted-excess=4"),
	Entry("shows the share, not what bounds come to", bounded("1:9:2", -1, "", shared("4")), "field=4", "witness=true", "wanted-excess=4"),
	Entry("that shows it already is recorded", bounded("1:9:2", 2, ""), "witness=true", "wanted-excess=2"),
	Entry("that shows it already, and is recorded, stays", bounded("1:9:2", 2, "2")),
	Entry("that vanishes is written again", bounded("1:9:2", -1, "2"), "field=2", "restored", "witness=true"),
	Entry("that vanishes alone is written again, too, since bounds count", bounded("1:9:2", -1, "2", witness), "field=2", "restored"),
	Entry("shows 0, which is no record", bounded("1:9:0", 2, "2"), "field=0", "witness=false", "wanted-excess="),
	Entry("shows 0 already", changed(bounded("1:9:0", 0, "2"), leftover), "witness=false", "wanted-excess="),
	Entry("shows nothing where the API server does not store it", bounded("1:9:2", -1, "2", pruned), "wanted-excess="),
	Entry("keeps its owners on record only while it is theirs", changed(owned(2, "2", gitops), note(api.BoundsAnnotation, "1:9:2")), "excess-owners="),
	Entry("stays as it is while bounds are invalid, also if it vanished with its witness", bounded("many", -1, "2")),
	Entry("stays as it is while bounds are invalid, also if it vanished alone", bounded("many", -1, "2", witness)),
)

var _ = DescribeTable("A value in a field that shows what bounds come to",
	func(v machinetaint.View, conflicts int) {
		p := machinetaint.New(v)
		Expect(p.Deployment.Field).To(HaveValue(BeEquivalentTo(2)))
		Expect(p.Memory.FieldConflict.Writes).To(Equal(conflicts))
	},
	Entry("is another client's", bounded("1:9:2", 5, "2"), 1),
	Entry("is another client's, also before anything was recorded", bounded("1:9:2", 5, ""), 1),
	Entry("is another client's, also if it is one", bounded("1:9:2", 1, ""), 1),
	Entry("is another client's if it is 0 and was not before", bounded("1:9:2", 0, "1"), 1),
	Entry("has no owner if it is 0, as it was", bounded("1:9:2", 0, ""), 0),
	Entry("is ours if it is the recorded one", bounded("1:9:2", 1, "1"), 0),
	Entry("has no owner if it vanished", bounded("1:9:2", -1, "1"), 0),
)

var _ = Describe("A conflict about the field", func() {
	fought := func(field int32, entries ...metav1.ManagedFieldsEntry) machinetaint.View {
		v := changed(owned(field, "2", "", entries...), note(api.BoundsAnnotation, "1:9:2"))
		v.Memory.FieldConflict = machinetaint.FieldConflict{Writes: 1, Until: v.Now}
		return v
	}

	It("is with the client that wrote the field last", func() {
		older, newer := entry("gitops", "Apply", 3, claim), entry("kubectl", "Update", 9, claim)
		Expect(machinetaint.New(fought(5, older, newer)).Report.Message).To(ContainSubstring("kubectl writes spec.excessReplicas, which has no effect"))
		Expect(machinetaint.New(fought(5)).Report.Message).To(ContainSubstring("another client writes spec.excessReplicas, which has no effect"))
		Expect(machinetaint.New(fought(5, entry("gitops", "Apply", 3, noClaim))).Report.Message).To(ContainSubstring("another client writes spec.excessReplicas"))
	})

	It("doubles the delay of the next write", func() {
		p := machinetaint.New(fought(5))
		Expect(p.Memory.FieldConflict).To(Equal(machinetaint.FieldConflict{Writes: 2, Until: at(60 + 120).Time}))
		Expect(p.Deployment.Field).To(HaveValue(BeEquivalentTo(2)))
	})

	It("is remembered while bounds cannot be read", func() {
		v := fought(5)
		v.Deployment.Annotations[api.BoundsAnnotation] = "many"
		v.Memory.FieldConflict.Until = at(3600).Time
		Expect(machinetaint.New(v).Memory.FieldConflict).To(Equal(v.Memory.FieldConflict))
	})

	It("is over if the field shows what it should when the delay ends", func() {
		v := fought(2)
		Expect(machinetaint.New(v).Memory.FieldConflict).To(BeZero())
		v.Memory.FieldConflict.Until = at(61).Time
		Expect(machinetaint.New(v).Memory.FieldConflict).To(Equal(v.Memory.FieldConflict))
		Expect(machinetaint.New(v).Report.Message).NotTo(ContainSubstring("no effect"))
	})
})

var _ = Describe("The record of who owns the field", func() {
	recorded := func(entries ...metav1.ManagedFieldsEntry) []string {
		owners, err := api.ParseExcessOwners(machinetaint.New(owned(2, "", "[]", entries...)).Deployment.Annotations[api.ExcessOwnersAnnotation])
		if len(owners) > 0 {
			Expect(err).NotTo(HaveOccurred())
		}
		return owners
	}

	It("has those who applied it, by name", func() {
		Expect(recorded(entry("b", "Apply", 3, claim), entry("a", "Apply", 9, claim), entry("c", "Update", 1, claim), entry("d", "Apply", 9, noClaim))).To(Equal([]string{"a", "b"}))
	})

	It("has eight of them", func() {
		var all []metav1.ManagedFieldsEntry
		for i := range 10 {
			all = append(all, entry(fmt.Sprintf("m%d", i), "Apply", i, claim))
		}
		Expect(recorded(all...)).To(HaveLen(8))
		all = append(all, entry(machinetaint.FieldManager, "Update", 20, claim))
		v := owned(2, "2", `["a","b"]`, all...)
		Expect(api.ParseExcessOwners(machinetaint.New(v).Deployment.Annotations[api.ExcessOwnersAnnotation])).To(HaveLen(8))
	})

	It("has no client whose fields cannot be read, or that has none, nor this one", func() {
		twice := entry("twice", "Apply", 1, `{"f:spec":{"f:excessReplicas":{}},"f:spec":[]}`)
		empty, garbage, status := entry("empty", "Apply", 1, claim), entry("garbage", "Apply", 1, "{"), entry("status", "Apply", 1, claim)
		empty.FieldsV1, status.Subresource = nil, "status"
		Expect(recorded(empty, twice, garbage, status, entry(machinetaint.FieldManager, "Apply", 1, claim), entry("gitops", "Apply", 1, claim))).To(Equal([]string{"gitops"}))
	})

	It("is not written again when they write again", func() {
		Expect(fieldWrites(machinetaint.New(owned(2, "2", gitops, entry("gitops", "Apply", 9, claim))))).To(BeEmpty())
	})

	It("ends when another client owns the field", func() {
		Expect(fieldWrites(machinetaint.New(owned(2, "2", gitops, entry("kubectl-edit", "Update", 9, claim), entry("gitops", "Apply", 0, noClaim))))).To(Equal([]string{"excess-owners="}))
	})

	It("is replaced if it cannot be read, as one of an earlier release", func() {
		earlier := `[{"manager":"gitops","operation":"Apply","time":"2026-11-22T09:00:00Z"}]`
		Expect(fieldWrites(machinetaint.New(owned(2, "2", earlier, entry("gitops", "Apply", 0, claim))))).To(Equal([]string{"excess-owners=" + gitops}))
	})
})

var _ = Describe("A restored field", func() {
	const ours = machinetaint.FieldManager
	managed := func(entries ...metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return machinetaint.New(owned(2, "2", gitops, entries...)).Deployment.Managed
	}
	text := func(e metav1.ManagedFieldsEntry) string { return e.FieldsV1.GetRawString() }

	It("is given back, so that an apply without it removes it", func() {
		v := owned(2, "2", `["gitops","gone"]`, entry("gitops", "Apply", 0, noClaim), entry(ours, "Update", 9, claim))
		p := machinetaint.New(v)
		Expect(fieldWrites(p)).To(BeEmpty())
		all := p.Deployment.Managed
		Expect(all).To(HaveLen(3))
		Expect(text(all[0])).To(MatchJSON(`{"f:spec":{"f:replicas":{},"f:excessReplicas":{}}}`))
		Expect(text(all[1])).To(MatchJSON(`{"f:spec":{"f:paused":{}}}`), "and this process no longer owns it")
		Expect(all[2]).To(Equal(metav1.ManagedFieldsEntry{
			Manager: "gone", Operation: "Apply", Time: ptr.To(at(60)), APIVersion: "machine.sapcloud.io/v1alpha1", FieldsType: "FieldsV1",
			FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:excessReplicas":{}}}`)},
		}))
		Expect(text(v.Deployment.ManagedFields[0])).To(Equal(noClaim), "the view stays as it was")
	})

	It("is given to the owner's entry of an apply to the object itself", func() {
		status := entry("gitops", "Apply", 5, noClaim)
		status.Subresource = "status"
		all := managed(entry(ours, "Update", 9, claim), status, entry("gitops", "Update", 5, noClaim), entry("gitops", "Apply", 0, noClaim))
		Expect(all).To(HaveLen(4))
		for i, is := range []bool{false, false, false, true} {
			Expect(strings.Contains(text(all[i]), "f:excessReplicas")).To(Equal(is), "%d", i)
		}
	})

	It("belongs to its owners alone, also to those who have applied it again", func() {
		p := machinetaint.New(owned(2, "2", gitops, entry(ours, "Update", 9, claim), entry("flux", "Apply", 10, claim), entry("kubectl-edit", "Update", 3, claim)))
		Expect(fieldWrites(p)).To(Equal([]string{`excess-owners=["flux","gitops"]`}))
		all := p.Deployment.Managed
		Expect(all).To(HaveLen(4))
		Expect(text(all[0])).NotTo(ContainSubstring("excessReplicas"))
		for _, e := range all[1:] {
			Expect(text(e)).To(ContainSubstring("excessReplicas"), e.Manager)
		}
	})

	It("stays with an owner that has it", func() {
		Expect(managed(entry("gitops", "Apply", 0, claim))).To(BeNil())
		status := entry(ours, "Update", 9, claim)
		status.Subresource = "status"
		Expect(managed(entry("gitops", "Apply", 0, claim), status)).To(BeNil())
	})

	It("leaves fields as they are that cannot be read", func() {
		all := managed(entry(ours, "Update", 9, claim), entry("gitops", "Apply", 0, "{"))
		Expect(text(all[1])).To(Equal("{"))
	})

	It("is not given back if no owner of it is known", func() {
		Expect(machinetaint.New(owned(2, "2", "", entry(ours, "Update", 9, claim))).Deployment.Managed).To(BeNil())
	})
})

// at is so many seconds after the beginning.
func at(seconds int) metav1.Time {
	return metav1.Time{Time: time.Date(2026, 11, 22, 9, 0, seconds, 0, time.UTC)}
}

const (
	claim   = `{"f:spec":{"f:excessReplicas":{},"f:paused":{}}}`
	noClaim = `{"f:spec":{"f:replicas":{}}}`
)

func entry(manager string, operation metav1.ManagedFieldsOperationType, seconds int, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, Time: ptr.To(at(seconds)), FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}}
}

// owned is a pool whose field is absent where excess is below 0, with its witness, what was recorded of it and who writes it.
func owned(excess int32, recorded, owners string, entries ...metav1.ManagedFieldsEntry) machinetaint.View {
	plain := fixture.MachineDeployment("pool", 3)
	d := &api.MachineDeployment{ObjectMeta: plain.ObjectMeta, Spec: api.MachineDeploymentSpec{StockMachineDeploymentSpec: plain.Spec}}
	d.ManagedFields, d.Annotations = entries, map[string]string{}
	if excess >= 0 {
		d.Spec.ExcessReplicas, d.Spec.ReserveWitness = &excess, recorded != ""
	}
	for key, value := range map[string]string{api.WantedExcessAnnotation: recorded, api.ExcessOwnersAnnotation: owners} {
		if value != "" {
			d.Annotations[key] = value
		}
	}
	return machinetaint.View{Now: at(60).Time, Deployment: d}
}

const gitops = `["gitops"]`

var _ = Describe("A field that shows what bounds come to", func() {
	// contested is a pool whose bounds ask for 2, and whose field says something else.
	contested := func(field int32, m machinetaint.Memory, now int) machinetaint.View {
		v := owned(field, "2", "", entry("gitops", metav1.ManagedFieldsOperationApply, 9, claim))
		v.Deployment.Annotations[api.BoundsAnnotation] = "1:9:2"
		v.Memory, v.Now = m, at(now).Time
		return v
	}

	It("is written over at once, then ever more rarely, and the condition names who writes it", func() {
		var m machinetaint.Memory
		now, writes := 0, []int{}
		for ; now < 4*3600; now++ { // another client writes it back within a second
			p := machinetaint.New(contested(5, m, now))
			m = p.Memory
			if p.Deployment.Field != nil {
				writes = append(writes, now)
			} else {
				Expect(p.Again).To(And(BeNumerically(">", 0), BeNumerically("<=", time.Hour)))
			}
			if now > 0 {
				Expect(p.Report.Message).To(ContainSubstring("gitops writes spec.excessReplicas, which has no effect"))
			}
		}
		Expect(writes).To(Equal([]int{0, 60, 180, 420, 900, 1860, 3780, 7380, 10980}))
	})

	It("is written over once an hour, however often it was before", func() {
		for _, writes := range []int{6, 30, 60, 100, 1000} {
			p := machinetaint.New(contested(5, machinetaint.Memory{FieldConflict: machinetaint.FieldConflict{Writes: writes}}, 0))
			Expect(p.Memory.FieldConflict.Until).To(BeTemporally("==", at(3600).Time), "%d", writes)
		}
	})

	It("is at rest again once no one has written it for as long", func() {
		p := machinetaint.New(contested(5, machinetaint.Memory{}, 0))
		Expect(p.Deployment.Field).To(HaveValue(BeEquivalentTo(2)))
		Expect(p.Report.Message).NotTo(ContainSubstring("no effect"), "the first time may be an oversight")
		p = machinetaint.New(contested(2, p.Memory, 59))
		Expect(p.Memory.FieldConflict.Writes).To(Equal(1))
		p = machinetaint.New(contested(2, p.Memory, 60))
		Expect(p.Memory.FieldConflict).To(BeZero())
	})

	It("follows bounds at once, whatever others wrote before", func() {
		v := contested(2, machinetaint.Memory{FieldConflict: machinetaint.FieldConflict{Writes: 3, Until: at(3600).Time}}, 0)
		v.Deployment.Annotations[api.BoundsAnnotation] = "1:9:4"
		Expect(machinetaint.New(v).Deployment.Field).To(HaveValue(BeEquivalentTo(4)))
	})
})
