// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"fmt"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
)

// Group is a MachineDeployment with bounds.
type Group struct {
	Deployment *v1alpha1.MachineDeployment
	Bounds     v1alpha1.Bounds
}

// NewGroup is an error, fit to be answered to a call, where the MachineDeployment is no group.
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

// Replicas is how many machines workload may have.
func (g Group) Replicas() int32 { return max(0, g.Deployment.Spec.Replicas) }

// message is the group as it is told. It always has both bounds, since the caller takes them from wherever it met the
// group last, and a group without a min could be emptied.
func (g Group) message() *pb.NodeGroup {
	return &pb.NodeGroup{
		Id: g.Deployment.Name, MinSize: g.Bounds.Min, MaxSize: g.Bounds.Max,
		Debug: fmt.Sprintf("MachineDeployment %s/%s, bounds %s", g.Deployment.Namespace, g.Deployment.Name, g.Bounds),
	}
}

// applied is how many machines machine-controller-manager is asked to run beyond replicas now, as the lens shows it.
func (g Group) applied() int64 {
	a, err := v1alpha1.ParseAppliedExcess(g.Deployment.Annotations[v1alpha1.AppliedExcessAnnotation])
	if err != nil {
		return 0
	}
	excess := int64(a.Machines)
	if a.Max != nil {
		excess = min(excess, max(0, int64(*a.Max)-int64(g.Replicas())))
	}
	return excess
}

// names are the machines that a MachineDeployment names for deletion, as machine-controller-manager reads them.
func names(d *v1alpha1.MachineDeployment) map[string]bool {
	all := map[string]bool{}
	for item := range strings.SplitSeq(d.Annotations[machineutils.TriggerDeletionByMCM], ",") {
		name, at, timed := strings.Cut(item, "~")
		if _, err := time.Parse(time.RFC3339, at); name != "" && (!timed || err == nil) {
			all[name] = true
		}
	}
	return all
}
