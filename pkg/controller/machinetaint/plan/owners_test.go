// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
	"github.com/evenkeel/evenkeel/test/fixture"
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

// owned is a pool whose field is absent where excess is below 0, with its witness, what was recorded of it and who writes it.
func owned(excess int32, recorded, owners string, entries ...metav1.ManagedFieldsEntry) plan.View {
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
	return plan.View{Now: at(60).Time, Deployment: d}
}

const gitops = `["gitops"]`

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
