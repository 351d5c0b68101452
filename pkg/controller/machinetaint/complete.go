// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// startupTaint returns the key of a taint that keeps pods off a Node until something is there; empty if there is none.
func (m Machine) startupTaint() string {
	if m.Node == nil {
		return ""
	}
	for _, t := range m.Node.Spec.Taints {
		if v1alpha1.IsStartupTaint(t.Key) && t.Key != v1alpha1.RegistrationTaintKey { // the controller removes its own with this sync
			return t.Key
		}
	}
	return ""
}

// preparations returns how far each machine is prepared: what is asked for, and the devices that others of its
// MachineSet have.
func (v View) preparations() func(Machine) Preparation {
	offered := v.devices()
	return func(m Machine) (p Preparation) {
		if v.Settings.Preparation != nil {
			p = v.Settings.Preparation(m.Object.UID)
		}
		if m.Node == nil {
			return p
		}
		for name := range offered[m.Set] {
			amount := m.Node.Status.Allocatable[name]
			p.Missing = p.Missing || amount.IsZero()
		}
		return p
	}
}

// devices returns those that Nodes of each MachineSet offer. A Node offers none until its device plugins have started.
func (v View) devices() map[string]map[corev1.ResourceName]bool {
	all := map[string]map[corev1.ResourceName]bool{}
	for _, m := range v.Machines {
		if m.Node == nil || !pool.NodeReady(m.Node) {
			continue
		}
		for name, amount := range m.Node.Status.Allocatable {
			if !isDevice(name) || amount.IsZero() {
				continue
			}
			if all[m.Set] == nil {
				all[m.Set] = map[corev1.ResourceName]bool{}
			}
			all[m.Set][name] = true
		}
	}
	return all
}

// isDevice reports whether a device plugin, or something like it, offers a resource.
func isDevice(name corev1.ResourceName) bool {
	domain, _, qualified := strings.Cut(string(name), "/")
	return qualified && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}
