// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	mcmcodes "github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/evenkeel/evenkeel/pkg/pool"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
)

// placeholder is the prefix of the id of an instance whose Node has not registered. The name of its
// Machine follows.
const placeholder = "requested://"

// Classes of errors that cluster-autoscaler distinguishes.
const (
	classExhausted int32 = 1
	classOther     int32 = 99
)

// Member is one machine of a group.
type Member struct {
	pool.Machine
	// Gone reports whether the machine is being deleted, even if the stores do not show that yet.
	Gone bool
}

// Name returns the name of the Machine.
func (m Member) Name() string { return m.Object.Name }

// ID returns the provider id of its Node, or a placeholder.
func (m Member) ID() string {
	if m.Node != nil && m.Node.Spec.ProviderID != "" {
		return m.Node.Spec.ProviderID
	}
	return placeholder + m.Name()
}

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

// Registered reports whether its Node has ever registered.
func (m Member) Registered() bool {
	switch m.Phase() {
	case "", mcm.MachinePending, mcm.MachineCrashLoopBackOff:
		return m.Node != nil
	}
	return true
}

// instance returns the machine for the protocol.
func (m Member) instance() *pb.Instance {
	status := &pb.InstanceStatus{}
	switch {
	case m.Leaving():
		status.InstanceState = pb.InstanceStatus_instanceDeleting
	case m.Registered():
		status.InstanceState = pb.InstanceStatus_instanceRunning
	default:
		status.InstanceState, status.ErrorInfo = pb.InstanceStatus_instanceCreating, m.failure()
	}
	return &pb.Instance{Id: m.ID(), Status: status}
}

// failure returns why the machine cannot be created. It is nil if machine-controller-manager tries
// again within seconds, because the caller would give up the group.
func (m Member) failure() *pb.InstanceErrorInfo {
	code, failed := pool.Failure(m.Object)
	if !failed {
		return nil
	}
	class := classOther
	if code == mcmcodes.ResourceExhausted {
		class = classExhausted
	}
	message := strings.ToValidUTF8(m.Object.Status.LastOperation.Description, "?")
	return &pb.InstanceErrorInfo{ErrorCode: code.String(), ErrorMessage: message, InstanceErrorClass: class}
}
