// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"fmt"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	mcmcodes "github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/evenkeel/evenkeel/pkg/pool"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
)

// Classes of errors that cluster-autoscaler distinguishes.
const (
	classExhausted int32 = 1
	classOther     int32 = 99
)

// maxErrorText is the length of an error message in characters. The caller shows no more, and takes
// no answer of more than 4 MiB: it would do nothing for the whole cluster.
const maxErrorText = 500

// message returns a group for the protocol. It always has both bounds, since the caller takes them
// from any answer, and could empty a group without a min.
func message(g plan.Group) *pb.NodeGroup {
	return &pb.NodeGroup{
		Id: g.Deployment.Name, MinSize: g.Bounds.Min, MaxSize: g.Max(),
		Debug: fmt.Sprintf("MachineDeployment %s/%s, bounds %s", g.Deployment.Namespace, g.Deployment.Name, g.Bounds),
	}
}

// instance returns a machine for the protocol.
func instance(m plan.Member) *pb.Instance {
	status := &pb.InstanceStatus{}
	switch {
	case m.Leaving():
		status.InstanceState = pb.InstanceStatus_instanceDeleting
	case hasRegistered(m):
		status.InstanceState = pb.InstanceStatus_instanceRunning
	default:
		status.InstanceState, status.ErrorInfo = pb.InstanceStatus_instanceCreating, failure(m)
	}
	return &pb.Instance{Id: instanceID(m), Status: status}
}

// instanceID returns the provider id of a machine's Node, or a placeholder.
func instanceID(m plan.Member) string {
	if m.Node != nil && m.Node.Spec.ProviderID != "" {
		return m.Node.Spec.ProviderID
	}
	return plan.Placeholder + m.Name()
}

// hasRegistered reports whether the Node of a machine has ever registered.
func hasRegistered(m plan.Member) bool {
	switch m.Phase() {
	case "", mcm.MachinePending, mcm.MachineCrashLoopBackOff:
		return m.Node != nil
	}
	return true
}

// failure returns why a machine cannot be created. It is nil if machine-controller-manager tries
// again within seconds, because the caller would give up the group.
func failure(m plan.Member) *pb.InstanceErrorInfo {
	code, failed := pool.Failure(m.Object)
	if !failed {
		return nil
	}
	class := classOther
	if code == mcmcodes.ResourceExhausted {
		class = classExhausted
	}
	text := strings.ToValidUTF8(fmt.Sprintf("%.*s", maxErrorText, m.Object.Status.LastOperation.Description), "?")
	return &pb.InstanceErrorInfo{ErrorCode: code.String(), ErrorMessage: text, InstanceErrorClass: class}
}
