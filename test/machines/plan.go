// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/provider/virtual"
)

// state is what the records and the faults say.
type state struct {
	vms    map[string]virtual.VM
	faults virtual.Faults
}

// readState reads the ConfigMaps of a namespace. A record that cannot be read is no machine, and faults that
// cannot be read are the last ones. To read them again does not help.
func readState(configs []*corev1.ConfigMap, last virtual.Faults) (state, error) {
	s := state{vms: map[string]virtual.VM{}}
	var errs []error
	for _, c := range configs {
		switch _, record := c.Labels[virtual.RecordLabel]; {
		case record:
			v, err := virtual.FromRecord(c)
			if errs = append(errs, err); err == nil && v.Hardware.Real {
				s.vms[v.Name] = v
			}
		case c.Name == virtual.FaultsConfigMap:
			faults, err := virtual.ParseFaults(c.Data)
			if errs = append(errs, err); err != nil {
				faults = last
			}
			s.faults = faults
		}
	}
	return s, errors.Join(errs...)
}

// harm is what happens to a machine that runs.
type harm struct{ cut, halted bool }

// plan is what to do.
type plan struct {
	boot []virtual.VM
	// end contains machines by name: whether they are forgotten.
	end    map[string]bool
	suffer map[string]harm
	// again is in how long the next one boots, 0 if none does.
	again time.Duration
}

// newPlan decides what to do with machines, of which some run with these provider ids.
func newPlan(s state, running map[string]string, now time.Time) plan {
	p := plan{end: map[string]bool{}, suffer: map[string]harm{}}
	for name, id := range running {
		v, recorded := s.vms[name]
		if dead := v.Dead || s.fault(v).Dead; !recorded || dead || v.ProviderID() != id {
			p.end[name] = !recorded || id != "" && v.ProviderID() != id
		}
	}
	for name, v := range s.vms {
		fault := s.fault(v)
		switch _, runs := running[name]; {
		case v.Dead || fault.Dead:
		case runs:
			if _, ends := p.end[name]; !ends {
				p.suffer[name] = harm{cut: fault.Ready == corev1.ConditionUnknown, halted: fault.Ready == corev1.ConditionFalse}
			}
		case fault.Ready != "": // as a played machine, it does not register
		default:
			if left := v.RegistersAt(fault).Sub(now); left <= 0 {
				p.boot = append(p.boot, v)
			} else if p.again == 0 || left < p.again {
				p.again = left
			}
		}
	}
	return p
}

func (s state) fault(v virtual.VM) virtual.Fault {
	return s.faults.ForMachine(v.Hardware.Zone, v.Class, v.Name)
}
