// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

// present counts the machines that take the place of a replica. A machine that is being deleted does
// so until it is Terminating: only then is another one created in its place.
func (s *set) present() (n int) {
	for _, m := range s.machines {
		if !isTerminating(m) {
			n++
		}
	}
	return n
}

// missing returns how many machines there are too few; it is negative if there are too many.
func (s *set) missing() int { return int(s.Object.Spec.Replicas) - s.present() }

// creation returns how many of the missing machines to create now, and which of them are in reserve.
func (s *set) creation(missing int) Creation {
	c := Creation{Set: s.Object, Count: s.creatable(missing)}
	if s.of != nil {
		s.of.addRoles(&c)
	}
	return c
}

// creatable returns how many of the missing machines to create now.
func (s *set) creatable(missing int) int {
	if _, disabled := s.Object.Labels[machineutils.LabelKeyMachineSetScaleUpDisabled]; disabled || pool.Frozen(s.Object) {
		return 0
	}
	return min(missing, Burst)
}

// victims returns the machines to delete: those beyond replicas, those that were named for deletion
// when replicas were changed, and those that have failed.
func (s *set) victims(preserve map[types.UID]string) []Deletion {
	var victims []Deletion
	chosen := map[types.UID]bool{}
	choose := func(m *mcm.Machine, why Reason) {
		if !chosen[m.UID] && len(victims) < Burst {
			chosen[m.UID] = true
			victims = append(victims, Deletion{s.Object, m, why})
		}
	}
	staying := s.deletable()
	for _, m := range s.surplus(staying) {
		choose(m, Surplus)
	}
	for _, m := range staying {
		switch {
		case s.isNamed(m), s.isNamedSpare(m):
			choose(m, Named)
		case s.isSpare(m):
			choose(m, Surplus)
		case s.isDrained(m):
			choose(m, Drained)
		}
	}
	for _, m := range staying {
		if isFailed(m) && !s.isProtected(m, preserve[m.UID]) {
			choose(m, Failed)
		}
	}
	return victims
}

// deletable returns the machines that may be deleted: not those that are leaving already, nor those
// that were updated in place and moved here, which the number of replicas does not include yet.
func (s *set) deletable() []*mcm.Machine {
	return slices.DeleteFunc(slices.Clone(s.machines), func(m *mcm.Machine) bool {
		return m.DeletionTimestamp != nil || isTerminating(m) || m.Labels[mcm.LabelKeyNodeUpdateResult] == mcm.LabelValueNodeUpdateSuccessful
	})
}

// surplus returns those of the machines that are beyond replicas, the first to go first.
func (s *set) surplus(machines []*mcm.Machine) []*mcm.Machine {
	n := max(0, len(machines)-int(s.Object.Spec.Replicas))
	if s.of != nil && s.of.kept != nil {
		return s.surplusBesideReserve(machines, n)
	}
	return firstToGo(machines, s.Now)[:n]
}

// isNamed reports whether a machine was named for deletion, no later than a client that names
// machines changed replicas.
func (s *set) isNamed(m *mcm.Machine) bool {
	changed, _ := time.Parse(time.RFC3339, s.Object.Annotations[machineutils.LastDeploymentReplicaChangeByScalerTime]) // without it, any mark is later
	marked, isMarked := markOf(m)
	return isMarked && machineutils.IsMachineTriggeredForDeletion(m) && !marked.After(changed)
}

func isTerminating(m *mcm.Machine) bool {
	return m.Status.CurrentStatus.Phase == mcm.MachineTerminating
}
