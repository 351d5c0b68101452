// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
)

var _ = Describe("The mark of a machine that was created to serve", func() {
	created := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	retiring := func(now time.Time) plan.View {
		v := owned(-1, "", "")
		v.Now, v.Deployment.Spec.Replicas, v.Deployment.Spec.ExcessReplicas = now, 0, ptr.To[int32](1)
		v.Deployment.Annotations = map[string]string{api.AppliedExcessAnnotation: "1"}
		m := fixture.Machine("m")
		m.CreationTimestamp, m.Spec.ProviderID, m.Status.CurrentStatus.Phase = metav1.NewTime(created), "sim:///m", mcmapi.MachinePending
		m.Annotations = map[string]string{"machinepriority.machine.sapcloud.io": "2"}
		v.Machines = []plan.Machine{{Machine: pool.Machine{Object: m}, SeenPriority: 2}}
		return v
	}

	It("is later than its creation by more than clocks may differ, also within the same second", func() {
		first := pool.ClockSkew + time.Second
		for after, since := range map[time.Duration]time.Duration{0: first, 900 * time.Millisecond: first, 5 * time.Second: first, time.Minute: time.Minute} {
			v := retiring(created.Add(after))
			p := plan.New(v)
			Expect(p.Machines).To(ConsistOf(And(HaveField("Name", "m"), HaveField("Mark", plan.Hold))))
			mark, err := api.ParseReserve(v.Changed(p.Machines[0]).Annotations[api.ReserveAnnotation])
			Expect(err).NotTo(HaveOccurred())
			Expect(mark.Since).To(Equal(created.Add(since)))
		}
	})

	It("keeps a smaller excess from being applied where Nodes are seen, and not where there is no target cluster (6)", func() {
		v := retiring(created.Add(time.Minute))
		v.Machines[0].Object = v.Changed(plan.New(v).Machines[0])
		v.Deployment.Spec.ExcessReplicas = ptr.To[int32](0)
		Expect(plan.New(v).Rule.Applied.Excess).To(Equal(1))
		v.Targetless = true
		Expect(plan.New(v).Rule.Applied.Excess).To(BeZero())
	})
})
