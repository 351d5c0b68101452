// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"
	"sync"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machineapi "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	reservesplan "github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
)

// spread is a plan of the controller of Reserves, as far as the model carries it out.
type spread struct {
	writes [4]wishWrite
	// broken is the law that the plan breaks.
	broken string
}

// knownWishes is what the controller knows. It decides from nothing else.
type knownWishes struct {
	wishes  [2]wish
	targets [2]target
}

// spreads remembers plans: most steps change nothing of what they depend on.
type spreads struct {
	mu  sync.RWMutex
	all map[knownWishes]*spread
}

// planFor returns the plan for what is known.
func (s *spreads) planFor(known knownWishes) *spread {
	s.mu.RLock()
	made := s.all[known]
	s.mu.RUnlock()
	if made != nil {
		return made
	}
	made = known.decide()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[known] = made
	return made
}

// conditions are the conditions that a MachineDeployment has.
var conditions = [...][]mcm.MachineDeploymentCondition{nil,
	{{Type: machineapi.ReserveReady, Status: mcm.ConditionTrue, Reason: reason.Complete}},
	{{Type: machineapi.ReserveReady, Status: mcm.ConditionFalse, Reason: reason.Growing}},
	{{Type: machineapi.ReserveReady, Status: mcm.ConditionFalse, Reason: reason.CannotBeMade}},
	{{Type: machineapi.ReserveReady, Status: mcm.ConditionStatus(reason.ReserveReady.Find(reason.AtMax).Status), Reason: reason.AtMax}},
}

// object returns the MachineDeployment.
func (t *target) object(i int) *machineapi.MachineDeployment {
	d := &machineapi.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name(i), Namespace: namespace, Annotations: map[string]string{
		machineapi.BoundsAnnotation: fmt.Sprintf("0:%d", t.limit)}}}
	d.Spec.Replicas, d.Spec.ExcessReplicas = baseReplicas, ptr.To(int32(t.own))
	if t.asked > 0 {
		d.Annotations[machineapi.RequestedExcessAnnotation] = machineapi.RequestedExcess{Reserve: wishNames[t.by-1], Machines: int32(t.asked)}.String()
	}
	if t.leaving {
		d.DeletionTimestamp = &metav1.Time{Time: earlier}
	}
	d.Status.Conditions = conditions[t.health]
	return d
}

// object returns the Reserve.
func (r *wish) object(i int) *v1alpha1.Reserve {
	o := &v1alpha1.Reserve{ObjectMeta: metav1.ObjectMeta{Name: wishNames[i], Namespace: namespace, UID: types.UID(wishNames[i])}}
	o.Spec.Replicas = int32(r.amount)
	o.Spec.Pools.Names = []string{name(0), name(1)}[:2-i]
	for p, one := range r.parts {
		if one.listed {
			o.Status.Pools = append(o.Status.Pools, v1alpha1.ReservePoolStatus{Name: name(p), DesiredReplicas: int32(one.machines), Blocked: one.blocked})
		}
	}
	return o
}

// decide makes a plan.
func (k knownWishes) decide() *spread {
	v := reservesplan.View{Now: now}
	for i := range k.wishes {
		if k.wishes[i].there {
			v.Reserves = append(v.Reserves, k.wishes[i].object(i))
		}
		if k.targets[i].there {
			v.Pools = append(v.Pools, reservesplan.Pool{Deployment: k.targets[i].object(i), Exist: int(k.targets[i].ready), Ready: int(k.targets[i].ready)})
		}
	}
	p := reservesplan.New(v)
	s := &spread{}
	for _, r := range p.Requests {
		one := wishWrite{pending: true}
		one.asked, one.by = requestOf(r.Text)
		s.writes[index(r.Deployment.Name)] = one
	}
	for _, d := range p.Decisions {
		i := slices.Index(wishNames[:], d.Reserve.Name)
		if parts := partsOf(d); parts != k.wishes[i].parts {
			s.writes[2+i] = wishWrite{pending: true, parts: parts}
		}
		if s.broken == "" {
			s.broken = k.misspread(d)
		}
	}
	return s
}

// requestOf parses the annotation requested-excess.
func requestOf(text string) (asked, by uint8) {
	if text == "" {
		return 0, 0
	}
	r, err := machineapi.ParseRequestedExcess(text)
	if err != nil {
		panic(err) // plans write only what can be parsed
	}
	return uint8(r.Machines), uint8(slices.Index(wishNames[:], r.Reserve) + 1)
}

// partsOf returns what the status contains after a decision.
func partsOf(d reservesplan.Decision) (parts [2]part) {
	for _, p := range reservesplan.NewStatus(d, now).Pools {
		parts[index(p.Name)] = part{listed: true, machines: uint8(p.DesiredReplicas), blocked: p.Blocked}
	}
	return parts
}
