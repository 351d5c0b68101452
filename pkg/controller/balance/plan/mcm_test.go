// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	machinepool "github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

// mcm makes, releases and removes machines of a member as its replicas and its share ask.
func (w *world) mcm(m *Member) {
	replicas := int(m.Object.Spec.Replicas)
	if n, err := v1alpha1.ParseAppliedReplicas(m.Object.Annotations[v1alpha1.AppliedReplicasAnnotation]); err == nil {
		replicas = int(n)
	}
	excess := 0
	if f := m.Object.Spec.ExcessReplicas; f != nil {
		excess = int(*f)
	}
	if n, err := v1alpha1.ParseShare(m.Object.Annotations[v1alpha1.ShareAnnotation]); err == nil {
		excess = int(n)
	}
	replicas, excess = min(max(0, replicas), 100), min(max(0, excess), 100) // more is requested only where that makes no sense
	var leaving []Machine
	m.Machines = slices.DeleteFunc(m.Machines, func(x Machine) bool {
		gone := x.Object.DeletionTimestamp
		if gone != nil && w.Now.Sub(gone.Time) < w.draining {
			leaving = append(leaving, x)
		}
		return gone != nil
	})
	defer func() { m.Machines = append(m.Machines, leaving...) }()
	for i := range m.Machines {
		w.grow(m, m.Machines[i].Object)
	}
	serving := 0
	for _, x := range m.Machines {
		if !pendingTaker(x) {
			serving++
		}
	}
	for i := range m.Machines {
		if x := m.Machines[i]; serving < replicas && pendingTaker(x) && x.Object.Status.CurrentStatus.Phase == mcm.MachineRunning {
			delete(m.Machines[i].Object.Annotations, v1alpha1.ReserveAnnotation)
			serving++
		}
	}
	for len(m.Machines) < replicas+excess {
		w.born++
		x := NewMachine(fmt.Sprintf("%s-n%d", m.Object.Name, w.born), bornAt(w.Now), phase(mcm.MachinePending))
		if serving >= replicas {
			inReserve(&x)
		} else {
			serving++
		}
		m.Machines = append(m.Machines, x)
		w.grow(m, x.Object)
	}
	for len(m.Machines) > replicas+excess {
		m.Machines = slices.Delete(m.Machines, w.first(m, serving > replicas), w.first(m, serving > replicas)+1)
	}
}

// first is the machine that goes first: what does not run, then the reserve, then the newest.
func (w *world) first(m *Member, serving bool) int {
	best, rank := 0, -1
	for i, x := range m.Machines {
		r := i
		if x.Object.Status.CurrentStatus.Phase != mcm.MachineRunning {
			r += 1000
		}
		if pendingTaker(x) != serving {
			r += 100
		}
		if r > rank {
			best, rank = i, r
		}
	}
	return best
}

func (w *world) grow(m *Member, o *mcm.Machine) {
	s := &o.Status
	switch {
	case s.CurrentStatus.Phase == mcm.MachineRunning:
	case w.out[m.Object.Name]:
		x := Machine{Machine: machinepool.Machine{Object: o}}
		exhausted(&x)
	case w.Now.Sub(o.CreationTimestamp.Time) >= boot:
		s.CurrentStatus = mcm.CurrentStatus{Phase: mcm.MachineRunning, LastUpdateTime: metav1.NewTime(w.Now)}
		s.LastOperation = mcm.LastOperation{Type: mcm.MachineOperationCreate, State: mcm.MachineStateSuccessful, LastUpdateTime: metav1.NewTime(w.Now)}
		w.made++
	}
}

// drain lets a machine go and its pods wait.
func (w *world) drain(m *Member, i int) {
	now := metav1.NewTime(w.Now)
	m.Machines[i].Object.DeletionTimestamp = &now
	w.Waiting = append(w.Waiting, m.Machines[i].Workload...)
	m.Machines[i].Workload = nil
}
