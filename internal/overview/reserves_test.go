// SPDX-License-Identifier: Apache-2.0

package overview_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

func (w *world) reserve(name string, change ...func(*v1alpha1.Reserve)) {
	r := &v1alpha1.Reserve{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, CreationTimestamp: ago(time.Hour)}}
	for _, c := range change {
		c(r)
	}
	w.Reserves = append(w.Reserves, r)
}

func reserveSays(status metav1.ConditionStatus, reason, message string) func(*v1alpha1.Reserve) {
	return func(r *v1alpha1.Reserve) {
		r.Status.Conditions = []metav1.Condition{says(v1alpha1.ConditionReady, status, reason, message)}
	}
}

var _ = Describe("Reserves", func() {
	It("are as their status describes them, by name", func() {
		w := newWorld()
		w.reserve("office", reserveSays(metav1.ConditionFalse, "Growing", "2 of 5"), func(r *v1alpha1.Reserve) {
			r.Status.DesiredReplicas, r.Status.Replicas, r.Status.ReadyReplicas, r.Status.ActiveSchedules = 5, 3, 2, []string{"day"}
			r.Status.NextChange = &v1alpha1.ReserveChange{Time: ago(-time.Hour), DesiredReplicas: 1}
		})
		w.reserve("night", reserveSays(metav1.ConditionTrue, "NotRequested", "none"))
		v := New(w.Objects)
		Expect(v.Reserves).To(Equal([]Reserve{
			{Namespace: "default", Name: "night", Ready: Condition{Status: "True", Reason: "NotRequested", Message: "none"}},
			{
				Namespace: "default", Name: "office", Wanted: 5, Current: 3, ReadyMachines: 2, Active: []string{"day"},
				Next: &Change{At: ago(-time.Hour).Time, Wanted: 1}, Ready: Condition{Status: "False", Reason: "Growing", Message: "2 of 5"},
			},
		}))
		Expect(v.Troubles).To(BeEmpty())
	})

	DescribeTable("have problems",
		func(change func(*v1alpha1.Reserve), want ...any) {
			w := newWorld()
			w.reserve("office", change)
			Expect(New(w.Objects).Troubles).To(HaveExactElements(want...))
		},
		Entry("none while machines boot", reserveSays(metav1.ConditionFalse, "Growing", "1 of 2")),
		Entry("where there is no room", reserveSays(metav1.ConditionFalse, "NoRoom", "no room for 2"),
			Trouble{Object: "reserve/default/office", What: "no room for 2", Do: "raise max in the bounds, select more MachineDeployments, or request less"}),
		Entry("where no controller looks at them", func(*v1alpha1.Reserve) {}, HaveField("What", "no controller reports on it")),
		Entry("none while they are new", func(r *v1alpha1.Reserve) { r.CreationTimestamp = ago(time.Second) }),
	)
})
