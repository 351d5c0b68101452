// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/internal/fixture"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

var _ = Describe("A view of a snapshot", func() {
	read := pool.Machine{Object: fixture.Machine("m", func(m *mcm.Machine) {
		m.Annotations = map[string]string{machine.ReserveAnnotation: "marked", machineutils.MachinePriority: "5"}
		m.Spec.ProviderID, m.Status.CurrentStatus.Phase = "virtual:///m", mcm.MachineRunning
	}), Set: "set", Pods: 2, Pinned: true, Preserved: true, Named: true}

	It("has its numbers and its machines", func() {
		noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		v := reserve.ViewOf(pool.Snapshot{
			Now: noon, Replicas: 9, Workload: 3, Applied: pool.Applied{Excess: 2, Max: 8}, Machines: []pool.Machine{read},
			Wishes: pool.Wishes{Bounds: &machine.Bounds{Min: 1, Max: 7}}, Rollout: pool.Rollout{Set: "set", Replacing: true},
		})
		Expect(v.Machines).To(Equal([]reserve.Machine{{
			Name: "m", Phase: mcm.MachineRunning, Set: "set", Reserve: true, HasProviderID: true, Priority: 5, SeenPriority: 5, Named: true,
			Preserved: true, Pods: 2, Pinned: true, Registered: true,
		}}))
		v.Machines = nil
		Expect(v).To(Equal(reserve.View{
			Replicas: 3, Min: 1, Max: 7, Applied: reserve.Applied{Excess: 2, Max: 8}, CurrentSet: "set", Rollout: true, SetReplicas: 1, Now: noon,
		}))
		Expect(reserve.ViewOf(pool.Snapshot{}).Max).To(Equal(reserve.Unbounded))
	})

	It("has what is dedicated, and which machines are claimed", func() {
		s := pool.Snapshot{Requested: 3, Workload: 3, Machines: []pool.Machine{read}, Deployment: &machine.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{machine.DedicatedAnnotation: "shop=1", machine.ClaimedAnnotation: "3:m"},
		}}}
		v := reserve.ViewOf(s)
		Expect(v.Dedicated).To(Equal([]machine.Dedication{{Owner: "shop", Machines: 1}}))
		Expect(v.Machines[0].Claimed).To(BeTrue())
		s.Workload = 2
		Expect(reserve.ViewOf(s).Machines[0].Claimed).To(BeFalse())
	})

	It("counts a machine as serving where a pod does not tolerate the taint", func() {
		occupied := read
		occupied.NonTolerating = 1
		Expect(reserve.MachineOf(occupied).Reserve).To(BeFalse())
	})

	It("counts a machine as busy whose pods cannot be seen", func() {
		unseen := read
		unseen.Pods, unseen.Unseen = 0, true
		Expect(reserve.MachineOf(unseen).Busy()).To(BeTrue())
	})
})

var _ = It("The order of release is that of the plan", func() {
	rapid.Check(GinkgoTB(), func(t *rapid.T) {
		v := drawView(t)
		for i := range v.Machines {
			v.Machines[i].Returned = true
		}
		v.Machines = slices.Clone(v.Machines)
		var want []string
		for _, move := range reserve.NewPlan(v).Moves {
			if !move.Reserve {
				want = append(want, move.Name)
			}
		}
		if got := reserve.ReleaseOrder(v, v.Replicas); !slices.Equal(got, want) {
			t.Fatalf("plan releases %v, order is %v", want, got)
		}
	})
})
