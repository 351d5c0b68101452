// SPDX-License-Identifier: Apache-2.0

package plan

import (
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Group is a MachineDeployment with bounds.
type Group struct {
	Deployment *v1alpha1.MachineDeployment
	Bounds     v1alpha1.Bounds
}

// NewGroup returns an error, with a gRPC code, if the MachineDeployment is not a group.
func NewGroup(d *v1alpha1.MachineDeployment) (Group, error) {
	text, bounded := d.Annotations[v1alpha1.BoundsAnnotation]
	switch {
	case d.DeletionTimestamp != nil:
		return Group{}, status.Errorf(codes.NotFound, "MachineDeployment %s is being deleted", d.Name)
	case !bounded:
		return Group{}, status.Errorf(codes.NotFound, "MachineDeployment %s has no annotation %s", d.Name, v1alpha1.BoundsAnnotation)
	}
	bounds, err := v1alpha1.ParseBounds(text)
	if err != nil {
		return Group{}, status.Errorf(codes.FailedPrecondition, "MachineDeployment %s: %v", d.Name, err)
	}
	return Group{Deployment: d, Bounds: bounds}, nil
}

// Replicas is the target size: machines for workload, including growth that is still to be split
// over zones.
func (g Group) Replicas() int32 { return pool.Requested(g.Deployment) }

// Max is how many machines an autoscaler may have in the group: max without the machines that are
// dedicated, which its own pods cannot use. Replicas come first, so it is at least min.
func (g Group) Max() int32 {
	dedicated := pool.Dedicated(pool.Dedications(g.Deployment, int(g.Bounds.Min)))
	return max(g.Bounds.Max-int32(dedicated), min(g.Replicas(), g.Bounds.Max))
}

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
