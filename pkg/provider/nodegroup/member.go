// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	mcmcodes "github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/evenkeel/evenkeel/pkg/pool"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/pkg/signs"
)

// placeholder begins the id of an instance whose Node has not registered; the name of its Machine follows.
const placeholder = "requested://"

// Classes of errors that cluster-autoscaler tells apart.
const (
	classExhausted int32 = 1
	classOther     int32 = 99
)

// Member is one machine of a group.
type Member struct {
	pool.Machine
	// Gone reports whether the machine goes, though what the stores hold does not show that yet.
	Gone bool
}

// Name is that of the Machine.
func (m Member) Name() string { return m.Object.Name }

// ID is the provider id of its Node, or a placeholder.
func (m Member) ID() string {
	if m.Node != nil && m.Node.Spec.ProviderID != "" {
		return m.Node.Spec.ProviderID
	}
	return placeholder + m.Name()
}

// Leaving reports whether replicas do not count the machine any more: it is on its way out, or has failed. Unless it is preserved,
// machine-controller-manager replaces a failed one, whatever replicas are.
func (m Member) Leaving() bool {
	return m.Gone || m.Machine.Leaving() || m.Phase() == mcm.MachineFailed && !m.Preserved
}

// Serves reports whether replicas count the machine.
func (m Member) Serves() bool { return !m.Reserve() && !m.Leaving() }

// Counted reports whether machine-controller-manager counts the machine as one of its MachineSet.
func (m Member) Counted() bool { return m.Phase() != mcm.MachineTerminating }

// Up reports whether its Node has registered, or did once.
func (m Member) Up() bool {
	switch m.Phase() {
	case "", mcm.MachinePending, mcm.MachineCrashLoopBackOff:
		return m.Node != nil
	}
	return true
}

// instance is the machine as the caller gets it.
func (m Member) instance() *pb.Instance {
	status := &pb.InstanceStatus{}
	switch {
	case m.Leaving():
		status.InstanceState = pb.InstanceStatus_instanceDeleting
	case m.Up():
		status.InstanceState = pb.InstanceStatus_instanceRunning
	default:
		status.InstanceState, status.ErrorInfo = pb.InstanceStatus_instanceCreating, m.failure()
	}
	return &pb.Instance{Id: m.ID(), Status: status}
}

// failure is why the machine cannot be made. It is nil for what machine-controller-manager tries again within seconds: the caller
// would give up a group for it.
func (m Member) failure() *pb.InstanceErrorInfo {
	code, failed := signs.Failure(m.Object)
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
