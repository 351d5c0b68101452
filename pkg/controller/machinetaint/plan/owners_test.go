// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/fixture"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
)

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

// owned is a pool whose field is nil where excess is below 0, with what was recorded of it and who writes it.
func owned(excess int32, recorded, owners string, entries ...metav1.ManagedFieldsEntry) plan.View {
	plain := fixture.MachineDeployment("pool", 3)
	d := &api.MachineDeployment{ObjectMeta: plain.ObjectMeta, Spec: api.MachineDeploymentSpec{StockMachineDeploymentSpec: plain.Spec}}
	d.ManagedFields, d.Annotations = entries, map[string]string{}
	if excess >= 0 {
		d.Spec.ExcessReplicas = &excess
	}
	for key, value := range map[string]string{api.WantedExcessAnnotation: recorded, api.ExcessOwnersAnnotation: owners} {
		if value != "" {
			d.Annotations[key] = value
		}
	}
	return plan.View{Now: at(60).Time, Deployment: d}
}

const gitopsAt5 = `[{"manager":"gitops","operation":"Apply","time":"2026-11-22T09:00:05Z"}]`
const gitopsAt0 = `[{"manager":"gitops","operation":"Apply","time":"2026-11-22T09:00:00Z"}]`

var _ = Describe("The owner of spec.excessReplicas", func() {
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	none := int32(-1)

	It("is recorded beside what it asks for, and again when it writes", func() {
		p := plan.New(owned(2, "", "", entry("gitops", apply, 0, claim), entry("autoscaler", update, 5, noClaim)))
		Expect(p.Deployment.Annotations).To(And(HaveKeyWithValue(api.WantedExcessAnnotation, "2"), HaveKeyWithValue(api.ExcessOwnersAnnotation, gitopsAt0)))
		p = plan.New(owned(2, "2", gitopsAt0, entry("gitops", apply, 0, claim), entry("autoscaler", update, 9, noClaim)))
		Expect(p.Deployment.Annotations).NotTo(HaveKey(api.ExcessOwnersAnnotation))
		p = plan.New(owned(2, "2", gitopsAt0, entry("gitops", apply, 7, claim)))
		Expect(p.Deployment.Annotations).To(HaveKeyWithValue(api.ExcessOwnersAnnotation, ContainSubstring("09:00:07")))
	})

	It("is recorded no more once it asks for 0, which leaves nothing to restore", func() {
		v := owned(0, "2", gitopsAt0, entry("gitops", apply, 9, claim))
		Expect(plan.New(v).Deployment.Annotations).To(And(HaveKeyWithValue(api.WantedExcessAnnotation, ""), HaveKeyWithValue(api.ExcessOwnersAnnotation, "")))
		Expect(plan.New(owned(0, "", "", entry("gitops", apply, 9, claim))).Idle).To(BeTrue())
	})

	DescribeTable("means 0 by letting go of the field; whoever else drops it means nothing",
		func(v plan.View, letGo bool) {
			p := plan.New(v)
			if !letGo {
				Expect(p.Deployment.Restored).To(BeTrue())
				Expect(p.Deployment.AbandonedBy).To(BeEmpty())
				Expect(p.Deployment.Field).To(HaveValue(BeEquivalentTo(2)))
				Expect(p.Report.Message).To(ContainSubstring("0 of 2 in reserve"))
				return
			}
			Expect(p.Deployment.Field).To(BeNil())
			Expect(p.Deployment.AbandonedBy).To(Equal("gitops"))
			Expect(p.Deployment.Annotations).To(And(HaveKeyWithValue(api.WantedExcessAnnotation, ""), HaveKeyWithValue(api.ExcessOwnersAnnotation, "")))
			Expect(p.Report.Message).To(ContainSubstring("0 of 0 in reserve"))
		},
		Entry("an apply without the field", owned(none, "2", gitopsAt0, entry("gitops", apply, 9, noClaim)), true),
		Entry("an apply without the field, and a later write of another", owned(none, "2", gitopsAt0, entry("gitops", apply, 9, noClaim), entry("autoscaler", update, 12, noClaim)), true),
		Entry("an update of the owner", owned(none, "2", `[{"manager":"gitops","operation":"Update","time":"2026-11-22T09:00:00Z"}]`, entry("gitops", update, 9, noClaim), entry("autoscaler", update, 5, noClaim)), true),
		Entry("an update of the owner, and what this process wrote meanwhile", owned(none, "2", `[{"manager":"gitops","operation":"Update","time":"2026-11-22T09:00:00Z"}]`, entry("gitops", update, 9, noClaim), entry("machine-controller-manager", update, 10, noClaim)), true),
		Entry("an apply of one who owned nothing else, and so leaves no entry", owned(none, "2", gitopsAt0), true),
		Entry("such an apply, after others wrote", owned(none, "2", `[{"manager":"gitops","operation":"Apply","time":"2026-11-22T09:00:05Z"}]`, entry("autoscaler", update, 4, noClaim)), true),
		Entry("no entry of the owner, but a later write of another", owned(none, "2", gitopsAt0, entry("autoscaler", update, 9, noClaim)), false),
		Entry("no entry of the owner, but a write of another within its second", owned(none, "2", gitopsAt0, entry("autoscaler", update, 0, noClaim)), false),
		Entry("no entry of an owner that updated", owned(none, "2", `[{"manager":"gitops","operation":"Update","time":"2026-11-22T09:00:00Z"}]`), false),
		Entry("one of several owners", owned(none, "2", `[{"manager":"kubectl","operation":"Update","time":"2026-11-22T09:00:00Z"},`+gitopsAt0[1:], entry("gitops", apply, 9, noClaim)), true),
		Entry("a client that does not know the field", owned(none, "2", gitopsAt0, entry("gitops", apply, 0, noClaim), entry("autoscaler", update, 9, noClaim)), false),
		Entry("a client that does not know it, after the owner updated something else", owned(none, "2", `[{"manager":"gitops","operation":"Update","time":"2026-11-22T09:00:00Z"}]`, entry("gitops", update, 7, noClaim), entry("autoscaler", update, 9, noClaim)), false),
		Entry("a client that does not know it, within the second of an update of the owner", owned(none, "2", `[{"manager":"gitops","operation":"Update","time":"2026-11-22T09:00:00Z"}]`, entry("gitops", update, 9, noClaim), entry("autoscaler", update, 9, noClaim)), false),
		Entry("an apply of one who owned nothing else, and has updated something before", owned(none, "2", gitopsAt5, entry("gitops", update, 2, noClaim)), true),
		Entry("an update of something else by an owner that applied", owned(none, "2", gitopsAt0, entry("gitops", update, 9, noClaim)), false),
		Entry("such an apply, after another applied before", owned(none, "2", gitopsAt5, entry("kubectl", apply, 2, noClaim)), true),
		Entry("an entry of the owner from before it was seen to own the field", owned(none, "2", gitopsAt5, entry("gitops", apply, 2, noClaim)), false),
		Entry("an entry without a time", owned(none, "2", gitopsAt0, entry("gitops", apply, 0, noClaim), func() metav1.ManagedFieldsEntry {
			e := entry("gitops", apply, 9, noClaim)
			e.Time = nil
			return e
		}()), false),
		Entry("a write that leaves no trace", owned(none, "2", gitopsAt0, entry("gitops", apply, 0, noClaim)), false),
		Entry("an API server that does not keep the field", owned(none, "2", gitopsAt0, entry("gitops", apply, 9, claim)), false),
		Entry("a status written by the owner", owned(none, "2", gitopsAt0, entry("gitops", apply, 0, noClaim), func() metav1.ManagedFieldsEntry {
			e := entry("gitops", apply, 9, noClaim)
			e.Subresource = "status"
			return e
		}()), false),
		Entry("without a record of the owner, as from before it was kept", owned(none, "2", "", entry("gitops", apply, 9, noClaim)), false),
		Entry("with a record that is garbage", owned(none, "2", "gitops", entry("gitops", apply, 9, noClaim)), false),
	)

	It("gets a restored field back, so that an apply without it leaves a trace", func() {
		v := owned(2, "2", `[{"manager":"gone","operation":"Update","time":"2026-11-22T09:00:00Z"},`+gitopsAt0[1:], entry("gitops", apply, 0, noClaim), entry("machine-controller-manager", update, 9, claim))
		p := plan.New(v)
		Expect(p.Deployment.Field).To(BeNil())
		Expect(p.Deployment.Annotations).NotTo(Or(HaveKey(api.WantedExcessAnnotation), HaveKey(api.ExcessOwnersAnnotation)))
		managed := p.Deployment.Managed
		Expect(managed).To(HaveLen(3))
		Expect(managed[0]).To(And(HaveField("Manager", "gitops"), HaveField("FieldsV1.Raw", MatchJSON(`{"f:spec":{"f:replicas":{},"f:excessReplicas":{}}}`))))
		Expect(managed[1].FieldsV1.GetRawBytes()).To(MatchJSON(`{"f:spec":{"f:paused":{}}}`), "and alone: an apply without it removes it")
		Expect(managed[2]).To(And(HaveField("Manager", "gone"), HaveField("Time", HaveValue(Equal(at(8)))), HaveField("APIVersion", "machine.sapcloud.io/v1alpha1"), HaveField("FieldsV1.Raw", MatchJSON(`{"f:spec":{"f:excessReplicas":{}}}`))))
		Expect(v.Deployment.ManagedFields[0].FieldsV1.GetRawString()).To(Equal(noClaim), "the view stays as it was")
	})

	It("gives up a restored field also by an apply in the second in which it was restored", func() {
		restored := plan.New(owned(2, "2", gitopsAt0, entry("machine-controller-manager", update, 9, claim)))
		managed := restored.Deployment.Managed
		given := plan.New(owned(2, "2", gitopsAt0, managed...))
		record := given.Deployment.Annotations[api.ExcessOwnersAnnotation]
		p := plan.New(owned(none, "2", record, managed[0], entry("gitops", apply, 9, noClaim)))
		Expect(p.Deployment.AbandonedBy).To(Equal("gitops"))
	})

	It("stays recorded while bounds are invalid", func() {
		v := owned(2, "2", gitopsAt0, entry("gitops", apply, 0, claim))
		v.Deployment.Annotations[api.BoundsAnnotation] = "many"
		Expect(plan.New(v).Deployment.Annotations).NotTo(Or(HaveKey(api.WantedExcessAnnotation), HaveKey(api.ExcessOwnersAnnotation)))
	})

	It("means 0 also by letting go of a field that this controller had restored", func() {
		p := plan.New(owned(2, "2", gitopsAt0, entry("machine-controller-manager", update, 5, claim), entry("gitops", apply, 9, noClaim)))
		Expect(p.Deployment.AbandonedBy).To(Equal("gitops"))
		Expect(p.Report.Message).To(ContainSubstring("0 of 0 in reserve"))
	})

	It("does not let go by an update that leaves a restored field alone", func() {
		p := plan.New(owned(2, "2", `[{"manager":"gitops","operation":"Update","time":"2026-11-22T09:00:00Z"}]`,
			entry("machine-controller-manager", update, 5, claim), entry("gitops", update, 9, noClaim)))
		Expect(p.Deployment.AbandonedBy).To(BeEmpty())
		Expect(p.Report.Message).To(ContainSubstring("0 of 2 in reserve"))
	})

	It("does not let go while another client claims the field", func() {
		p := plan.New(owned(3, "2", gitopsAt0, entry("kubectl-edit", update, 9, claim), entry("gitops", apply, 9, noClaim)))
		Expect(p.Deployment.AbandonedBy).To(BeEmpty())
		Expect(p.Deployment.Annotations).To(HaveKeyWithValue(api.WantedExcessAnnotation, "3"))
	})
})

var _ = Describe("A field that shows what bounds come to", func() {
	// contested is a pool whose bounds ask for 2, and whose field says something else.
	contested := func(field int32, m plan.Memory, now int) plan.View {
		v := owned(field, "2", "", entry("gitops", metav1.ManagedFieldsOperationApply, 9, claim))
		v.Deployment.Annotations[api.BoundsAnnotation] = "1:9:2"
		v.Memory, v.Now = m, at(now).Time
		return v
	}

	It("is written over at once, then ever more rarely, and the condition names who writes it", func() {
		var m plan.Memory
		now, writes := 0, []int{}
		for ; now < 4*3600; now++ { // another client writes it back within a second
			p := plan.New(contested(5, m, now))
			m = p.Memory
			if p.Deployment.Field != nil {
				writes = append(writes, now)
			} else {
				Expect(p.Again).To(And(BeNumerically(">", 0), BeNumerically("<=", time.Hour)))
			}
			if now > 0 {
				Expect(p.Report.Message).To(ContainSubstring("spec.excessReplicas is written by gitops and has no effect"))
			}
		}
		Expect(writes).To(Equal([]int{0, 60, 180, 420, 900, 1860, 3780, 7380, 10980}))
	})

	It("is written over once an hour, however often it was before", func() {
		for _, writes := range []int{6, 30, 60, 100, 1000} {
			p := plan.New(contested(5, plan.Memory{FieldConflict: plan.FieldConflict{Writes: writes}}, 0))
			Expect(p.Memory.FieldConflict.Until).To(BeTemporally("==", at(3600).Time), "%d", writes)
		}
	})

	It("is at rest again once no one has written it for as long", func() {
		p := plan.New(contested(5, plan.Memory{}, 0))
		Expect(p.Deployment.Field).To(HaveValue(BeEquivalentTo(2)))
		Expect(p.Report.Message).NotTo(ContainSubstring("no effect"), "the first time may be an oversight")
		p = plan.New(contested(2, p.Memory, 59))
		Expect(p.Memory.FieldConflict.Writes).To(Equal(1))
		p = plan.New(contested(2, p.Memory, 60))
		Expect(p.Memory.FieldConflict).To(BeZero())
	})

	It("follows bounds at once, whatever others wrote before", func() {
		v := contested(2, plan.Memory{FieldConflict: plan.FieldConflict{Writes: 3, Until: at(3600).Time}}, 0)
		v.Deployment.Annotations[api.BoundsAnnotation] = "1:9:4"
		Expect(plan.New(v).Deployment.Field).To(HaveValue(BeEquivalentTo(4)))
	})
})
