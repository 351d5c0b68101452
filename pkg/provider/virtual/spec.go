// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The maximum number of pods on a Node unless the class defines it. It is a kubelet's default.
const defaultPods = "110"

// Spec is the providerSpec of a MachineClass.
type Spec struct {
	Hardware
	// BootDelay is the time from CreateMachine to the registration of the Node. Default 0.
	BootDelay Delay
	// Quota is the maximum number of machines of this class. Beyond it, CreateMachine fails with
	// ResourceExhausted. By default, there is none.
	Quota *int
}

// Hardware describes a machine. The record of the machine contains it, so that it outlives changes
// of the class.
type Hardware struct {
	Zone         string `json:"zone"`
	Region       string `json:"region"`
	InstanceType string `json:"instanceType"`
	// Architecture is amd64 (default) or arm64.
	Architecture string `json:"architecture"`
	// Capacity contains at least cpu and memory, and 110 pods unless it defines another number.
	Capacity corev1.ResourceList `json:"capacity"`
	// Allocatable is what Capacity leaves for pods. Resources that it does not contain are as in
	// Capacity.
	Allocatable corev1.ResourceList `json:"allocatable"`
	// StartupTaint is on the Node from its registration until another component removes it; the
	// driver never does.
	StartupTaint *corev1.Taint `json:"startupTaint,omitempty"`
	// TaintsAtRegistration is false if MCM adds the template's taints, which takes some seconds, as
	// in clouds whose kubelets do not know them. Default true.
	TaintsAtRegistration bool `json:"taintsAtRegistration"`
	// Real is whether the machine has a kubelet. A program beside this one boots it then, and its
	// Node is the kubelet's.
	Real bool `json:"real,omitempty"`
}

// ParseSpec parses a providerSpec. Its errors name the field and the expected value.
func ParseSpec(raw []byte) (Spec, error) {
	s := Spec{Hardware: Hardware{Architecture: "amd64", TaintsAtRegistration: true}}
	var capacity, allocatable named[corev1.ResourceName, quantity]
	var taint startupTaint
	err := object{
		"zone": &s.Zone, "region": &s.Region, "instanceType": &s.InstanceType, "architecture": &s.Architecture,
		"capacity": &capacity, "allocatable": &allocatable,
		"bootDelay": &s.BootDelay, "quota": &s.Quota,
		"startupTaint": &taint, "taintsAtRegistration": &s.TaintsAtRegistration, "real": &s.Real,
	}.decode(raw)
	if err != nil {
		return Spec{}, atPath("providerSpec", err)
	}
	s.StartupTaint = taint.taint
	s.Capacity, s.Allocatable = resources(capacity), resources(allocatable)
	if err := s.complete(); err != nil {
		return Spec{}, atPath("providerSpec", err)
	}
	return s, nil
}

// complete sets defaults, and checks fields that depend on each other.
func (s *Spec) complete() error {
	if _, said := s.Capacity[corev1.ResourcePods]; !said {
		s.Capacity[corev1.ResourcePods] = resource.MustParse(defaultPods)
	}
	for name, amount := range s.Allocatable {
		total, had := s.Capacity[name]
		if !had || amount.Cmp(total) > 0 {
			return atPath("allocatable", atPath(string(name), fmt.Errorf("%s is more than the capacity, %s", amount.String(), total.String())))
		}
	}
	for name, amount := range s.Capacity {
		if _, said := s.Allocatable[name]; !said {
			s.Allocatable[name] = amount.DeepCopy()
		}
	}
	return errors.Join(
		labelled("zone", s.Zone), labelled("region", s.Region), labelled("instanceType", s.InstanceType),
		checkOneOf("architecture", s.Architecture, "amd64", "arm64"),
		positive(s.Capacity, corev1.ResourceCPU), positive(s.Capacity, corev1.ResourceMemory),
		s.checkQuota(),
	)
}

func (s *Spec) checkQuota() error {
	if s.Quota != nil && *s.Quota < 0 {
		return atPath("quota", errors.New("must not be negative"))
	}
	return nil
}

// labelled checks a value that becomes a label of the Node.
func labelled(name, value string) error {
	if value == "" {
		return atPath(name, errors.New("is required"))
	}
	if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
		return atPath(name, fmt.Errorf("%q becomes a label: %s", value, strings.Join(problems, ", ")))
	}
	return nil
}

func checkOneOf(name, value string, known ...string) error {
	for _, k := range known {
		if value == k {
			return nil
		}
	}
	return atPath(name, fmt.Errorf("%q is unknown, known are %s", value, strings.Join(known, ", ")))
}

func positive(list corev1.ResourceList, name corev1.ResourceName) error {
	if amount := list[name]; amount.Sign() <= 0 {
		return atPath("capacity", atPath(string(name), errors.New("is required and must be more than zero")))
	}
	return nil
}

func resources(list named[corev1.ResourceName, quantity]) corev1.ResourceList {
	made := corev1.ResourceList{}
	for name, amount := range list {
		made[name] = amount.Quantity
	}
	return made
}

type quantity struct{ resource.Quantity }

func (q *quantity) decode(raw []byte) error {
	if strictly(raw, &q.Quantity) != nil || q.Sign() < 0 {
		return fmt.Errorf("%s must be a quantity such as 500m or 16Gi and not negative", raw)
	}
	return nil
}

type startupTaint struct{ taint *corev1.Taint }

func (t *startupTaint) decode(raw []byte) error {
	taint := new(corev1.Taint)
	if err := (object{"key": &taint.Key, "value": &taint.Value, "effect": &taint.Effect}).decode(raw); err != nil {
		return err
	}
	t.taint = taint
	if problems := validation.IsQualifiedName(taint.Key); len(problems) > 0 {
		return atPath("key", fmt.Errorf("%q: %s", taint.Key, strings.Join(problems, ", ")))
	}
	if problems := validation.IsValidLabelValue(taint.Value); len(problems) > 0 {
		return atPath("value", fmt.Errorf("%q: %s", taint.Value, strings.Join(problems, ", ")))
	}
	return checkOneOf("effect", string(taint.Effect),
		string(corev1.TaintEffectNoSchedule), string(corev1.TaintEffectPreferNoSchedule), string(corev1.TaintEffectNoExecute))
}
