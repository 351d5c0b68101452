// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const (
	// FaultsConfigMap, in the namespace of the machines, contains the faults under FaultsKey.
	FaultsConfigMap = "virtual-provider"
	FaultsKey       = "faults.yaml"
)

// Faults contains the present faults of zones, MachineClasses and single machines, by name.
type Faults struct {
	Zones, Classes, Machines named[string, Fault]
	Registry                 Registry
}

// Registry is what the registry of real machines is like. The zero value is without bounds.
type Registry struct {
	// Bandwidth of a connection, in bytes per second, and what each request waits.
	Bandwidth int64
	Latency   time.Duration
	// Down is whether every request fails.
	Down bool
}

func (r *Registry) decode(raw []byte) error {
	var bandwidth quantity
	var latency duration
	err := object{"bandwidth": &bandwidth, "latency": &latency, "down": &r.Down}.decode(raw)
	r.Bandwidth, r.Latency = bandwidth.Value(), time.Duration(latency)
	return err
}

// Fault is the fault of one machine. The zero value means none.
type Fault struct {
	// Outage: no machine can be created; ResourceExhausted.
	Outage bool
	// CreateError is the result of CreateMachine; codes.OK for none. It takes precedence over
	// Outage.
	CreateError codes.Code
	// ExtraBootDelay prolongs boots, including those in progress, while the fault lasts.
	ExtraBootDelay time.Duration
	// Ready, if Unknown or False, cuts the Node off: kwok releases it. A machine that is still
	// booting does not register.
	Ready corev1.ConditionStatus
	// Dead machines never come back, even after the fault is removed.
	Dead bool
	// Conditions of the Node, such as DiskPressure.
	Conditions map[corev1.NodeConditionType]corev1.ConditionStatus
	// StuckDelete: DeleteMachine does nothing and returns DeadlineExceeded.
	StuckDelete bool
}

// ForMachine combines the faults that apply to one machine. A fault of the machine takes precedence
// over one of its class, and that over one of its zone.
func (f Faults) ForMachine(zone, class, machine string) Fault {
	var sum Fault
	for _, level := range []Fault{f.Zones[zone], f.Classes[class], f.Machines[machine]} {
		sum = sum.overriddenBy(level)
	}
	return sum
}

// overriddenBy returns the fault, overridden by a more specific one.
func (f Fault) overriddenBy(narrower Fault) Fault {
	f.Outage = f.Outage || narrower.Outage
	f.Dead = f.Dead || narrower.Dead
	f.StuckDelete = f.StuckDelete || narrower.StuckDelete
	if narrower.CreateError != codes.OK {
		f.CreateError = narrower.CreateError
	}
	if narrower.ExtraBootDelay != 0 {
		f.ExtraBootDelay = narrower.ExtraBootDelay
	}
	if narrower.Ready != "" {
		f.Ready = narrower.Ready
	}
	if len(narrower.Conditions) > 0 {
		merged := map[corev1.NodeConditionType]corev1.ConditionStatus{}
		maps.Copy(merged, f.Conditions)
		maps.Copy(merged, narrower.Conditions)
		f.Conditions = merged
	}
	return f
}

// create returns the code with which CreateMachine fails.
func (f Fault) create() codes.Code {
	if f.CreateError == codes.OK && f.Outage {
		return codes.ResourceExhausted
	}
	return f.CreateError
}

// ParseFaults parses the data of the ConfigMap. Without data, or without the key, there are no
// faults.
func ParseFaults(data map[string]string) (Faults, error) {
	for key := range data {
		if key != FaultsKey {
			return Faults{}, atPath(key, fmt.Errorf("unknown key, write %s", FaultsKey))
		}
	}
	raw, err := yaml.YAMLToJSONStrict([]byte(data[FaultsKey]))
	if err != nil {
		return Faults{}, atPath(FaultsKey, err)
	}
	var f Faults
	if string(raw) == "null" {
		return f, nil
	}
	err = object{"zones": &f.Zones, "classes": &f.Classes, "machines": &f.Machines, "registry": &f.Registry}.decode(raw)
	return f, atPath(FaultsKey, err)
}

func (f *Fault) decode(raw []byte) error {
	var create code
	var extra duration
	var ready status
	var conditions named[corev1.NodeConditionType, status]
	err := object{
		"outage": &f.Outage, "createError": &create, "extraBootDelay": &extra, "ready": &ready,
		"dead": &f.Dead, "conditions": &conditions, "stuckDelete": &f.StuckDelete,
	}.decode(raw)
	if err != nil {
		return err
	}
	if ready == status(corev1.ConditionTrue) {
		return atPath("ready", errors.New("must be Unknown or False; a node without a fault is Ready"))
	}
	if _, said := conditions[corev1.NodeReady]; said {
		return atPath("conditions", atPath(string(corev1.NodeReady), errors.New("write it as the field ready")))
	}
	f.CreateError, f.ExtraBootDelay, f.Ready = codes.Code(create), time.Duration(extra), corev1.ConditionStatus(ready)
	f.Conditions = map[corev1.NodeConditionType]corev1.ConditionStatus{}
	for kind, value := range conditions {
		f.Conditions[kind] = corev1.ConditionStatus(value)
	}
	return nil
}

// status of a condition. YAML reads a bare True as a boolean, which is accepted, too.
type status corev1.ConditionStatus

func (s *status) decode(raw []byte) error {
	switch string(raw) {
	case `true`, `"True"`:
		*s = status(corev1.ConditionTrue)
	case `false`, `"False"`:
		*s = status(corev1.ConditionFalse)
	case `"Unknown"`:
		*s = status(corev1.ConditionUnknown)
	default:
		return fmt.Errorf("%s must be True, False or Unknown", raw)
	}
	return nil
}

type code codes.Code

func (c *code) decode(raw []byte) error {
	var name string
	if err := strictly(raw, &name); err != nil {
		return errors.New("must be the name of a machine code, such as Unavailable")
	}
	known := codes.StringToCode(name)
	if known.String() != name || known == codes.OK {
		return fmt.Errorf("%q is no machine code of an error, such as Unavailable, ResourceExhausted or Internal", name)
	}
	*c = code(known)
	return nil
}
