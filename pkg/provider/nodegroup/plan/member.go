// SPDX-License-Identifier: Apache-2.0

package plan

import (
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Placeholder is the prefix of the id of an instance whose Node has not registered. The name of its
// Machine follows.
const Placeholder = "requested://"

// Member is one machine of a group.
type Member struct {
	pool.Machine
	// Gone reports whether the machine is being deleted, even if the stores do not show that yet.
	Gone bool
}

// Name returns the name of the Machine.
func (m Member) Name() string { return m.Object.Name }

// Leaving reports whether replicas no longer count the machine: it is being deleted, or has failed.
// Unless it is preserved, machine-controller-manager replaces a failed machine, whatever replicas
// are.
func (m Member) Leaving() bool {
	return m.Gone || m.Machine.Leaving() || m.Phase() == mcm.MachineFailed && !m.Preserved
}

// Serves reports whether replicas count the machine.
func (m Member) Serves() bool { return !m.Reserve() && !m.Leaving() }

// Counted reports whether machine-controller-manager counts the machine as one of its MachineSet.
func (m Member) Counted() bool { return m.Phase() != mcm.MachineTerminating }
