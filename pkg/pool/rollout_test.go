// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

const (
	rolling  = mcm.RollingUpdateMachineDeploymentStrategyType
	recreate = mcm.RecreateMachineDeploymentStrategyType

	auto   mcm.MachineDeploymentStrategyType = "InPlaceUpdate, Auto"
	manual mcm.MachineDeploymentStrategyType = "InPlaceUpdate, Manual"
	// undecided updates machines in place, and does not set who selects them.
	undecided = mcm.InPlaceUpdateMachineDeploymentStrategyType
	// formerlyManual replaces machines, and still has the field that an update in place had.
	formerlyManual mcm.MachineDeploymentStrategyType = "RollingUpdate, formerly Manual"
)

func updatedBy(strategy mcm.MachineDeploymentStrategyType, paused bool) *machine.MachineDeployment {
	d := &machine.MachineDeployment{}
	d.Spec.Template.Spec.Class.Name = "new"
	d.Spec.Paused, d.Spec.Strategy.Type = paused, strategy
	if strategy == auto || strategy == manual {
		d.Spec.Strategy.Type, d.Spec.Strategy.InPlaceUpdate = mcm.InPlaceUpdateMachineDeploymentStrategyType, &mcm.InPlaceUpdateMachineDeployment{OrchestrationType: mcm.OrchestrationTypeAuto}
	}
	if strategy == formerlyManual {
		d.Spec.Strategy.Type, d.Spec.Strategy.InPlaceUpdate = rolling, &mcm.InPlaceUpdateMachineDeployment{}
	}
	if strategy == manual || strategy == formerlyManual {
		d.Spec.Strategy.InPlaceUpdate.OrchestrationType = mcm.OrchestrationTypeManual
	}
	return d
}

// sets are "new" and "old" with so many replicas each; one below 0 is not there.
func sets(fresh, old int32) (all []*mcm.MachineSet) {
	for name, replicas := range map[string]int32{"new": fresh, "old": old} {
		if replicas >= 0 {
			set := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
			set.Spec.Replicas, set.Spec.Template.Spec.Class.Name = replicas, name
			all = append(all, set)
		}
	}
	return all
}

var _ = DescribeTable("A rollout",
	func(strategy mcm.MachineDeploymentStrategyType, paused bool, fresh, old, staying int, want pool.Rollout) {
		sets, machines := sets(int32(fresh), int32(old)), map[string]int{"old": staying}
		Expect(pool.RolloutOf(updatedBy(strategy, paused), sets, machines)).To(Equal(want))
	},
	Entry("is none without a MachineSet", rolling, false, -1, -1, 0, pool.Rollout{}),
	Entry("is none with one MachineSet", rolling, false, 3, -1, 0, pool.Rollout{Set: "new"}),
	Entry("is none beside an old MachineSet that is not in use", rolling, false, 3, 0, 0, pool.Rollout{Set: "new"}),
	Entry("is none while paused without machines", rolling, true, 0, -1, 0, pool.Rollout{Set: "new"}),
	Entry("continues while the old MachineSet still asks for its last machine", rolling, false, 3, 1, 0, pool.Rollout{Set: "new", Replacing: true, Spread: true}),
	Entry("begins when the template is edited", rolling, false, -1, 3, 3, pool.Rollout{Replacing: true}),
	Entry("begins when there is a new MachineSet", rolling, false, 0, 3, 3, pool.Rollout{Set: "new", Replacing: true}),
	Entry("continues with machines of both", rolling, false, 2, 1, 1, pool.Rollout{Set: "new", Replacing: true, Spread: true}),
	Entry("continues while the last old machine stays", rolling, false, 3, 0, 1, pool.Rollout{Set: "new", Replacing: true, Spread: true}),
	Entry("is none while paused before it began, and the old MachineSet counts", rolling, true, -1, 3, 3, pool.Rollout{Set: "old"}),
	Entry("is none while paused, though the new MachineSet is there", rolling, true, 0, 3, 3, pool.Rollout{Set: "old"}),
	Entry("is one while paused in its middle", rolling, true, 2, 1, 1, pool.Rollout{Set: "new", Replacing: true, Spread: true}),
	Entry("is one while all are recreated", recreate, false, -1, 0, 3, pool.Rollout{Replacing: true}),
	Entry("is none while all are still to be recreated, and it is paused", recreate, true, -1, 3, 3, pool.Rollout{Set: "old"}),
	Entry("is one in place from the beginning, if machine-controller-manager selects machines", auto, false, 0, 3, 3, pool.Rollout{Set: "new", Replacing: true}),
	Entry("is none in place while people have yet to update a machine", manual, false, 0, 3, 3, pool.Rollout{Set: "old"}),
	Entry("is one in place once people have updated a machine", manual, false, 1, 2, 2, pool.Rollout{Set: "new", Replacing: true, Spread: true}),
	Entry("is one in place from the beginning, if it is not set who selects machines", undecided, false, 0, 3, 3, pool.Rollout{Set: "new", Replacing: true}),
	Entry("is one from the beginning, though people had updated machines in place before", formerlyManual, false, 0, 3, 3, pool.Rollout{Set: "new", Replacing: true}),
	Entry("ends in place with the last machine", manual, false, 3, 0, 0, pool.Rollout{Set: "new"}),
)
