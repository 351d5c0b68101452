// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	mcmcodes "github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
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
	Name string
	// Set is the name of the MachineSet that owns it.
	Set string
	// ID is the provider id of its Node, or a placeholder.
	ID string
	// Reserve says that the Machine carries the reserve mark.
	Reserve bool
	// Leaving says that it is on its way out, whoever sent it; replicas count it no more.
	Leaving bool
	// Counted says that machine-controller-manager counts it as one of its MachineSet.
	Counted bool
	// Preserved says that somebody wants it kept.
	Preserved bool
	// Up says that its Node has registered, or did once.
	Up bool
	// Failure says why it cannot be made; nil where nothing is wrong, or where it is tried again within seconds.
	Failure *Failure
}

// Failure is why a machine cannot be made.
type Failure struct {
	Code, Message string
	// Exhausted says that there is no capacity or quota left.
	Exhausted bool
}

// NewMember looks at a Machine and its Node, which is nil while there is none. Named says that the MachineDeployment names
// it for deletion.
func NewMember(m *mcm.Machine, set string, node *corev1.Node, named bool, now time.Time) Member {
	expiry := m.Status.CurrentStatus.PreserveExpiryTime
	member := Member{
		Name: m.Name, Set: set, ID: placeholder + m.Name,
		Reserve:   marked(m),
		Counted:   m.Status.CurrentStatus.Phase != mcm.MachineTerminating,
		Preserved: expiry != nil && expiry.After(now),
		Up:        node != nil || wasUp(m.Status.CurrentStatus.Phase),
	}
	member.Leaving = named || leaves(m, member.Preserved)
	if node != nil && node.Spec.ProviderID != "" {
		member.ID = node.Spec.ProviderID
	}
	if !member.Up && !member.Leaving {
		member.Failure = failure(m)
	}
	return member
}

func marked(m *mcm.Machine) bool {
	_, reserve := m.Annotations[v1alpha1.ReserveAnnotation]
	return reserve
}

// wasUp tells from the phase alone.
func wasUp(phase mcm.MachinePhase) bool {
	switch phase {
	case "", mcm.MachinePending, mcm.MachineCrashLoopBackOff:
		return false
	}
	return true
}

// leaves says that the machine goes. A failed one is replaced by machine-controller-manager whatever replicas are, unless it
// is preserved.
func leaves(m *mcm.Machine, preserved bool) bool {
	switch phase := m.Status.CurrentStatus.Phase; {
	case m.DeletionTimestamp != nil, phase == mcm.MachineTerminating:
		return true
	case phase == mcm.MachineFailed:
		return !preserved
	}
	return signs.Condemned(m)
}

// failure is nil for what machine-controller-manager tries again within seconds: the caller would give up a group for it.
func failure(m *mcm.Machine) *Failure {
	code, failed := signs.Failure(m)
	if !failed {
		return nil
	}
	return &Failure{Code: code.String(), Message: m.Status.LastOperation.Description, Exhausted: code == mcmcodes.ResourceExhausted}
}

// Serves says that replicas count the machine: it is one of those that workload may have.
func (m Member) Serves() bool { return !m.Reserve && !m.Leaving }

// instance is the machine as it is told.
func (m Member) instance() *pb.Instance {
	told := &pb.InstanceStatus{}
	switch {
	case m.Leaving:
		told.InstanceState = pb.InstanceStatus_instanceDeleting
	case m.Up:
		told.InstanceState = pb.InstanceStatus_instanceRunning
	default:
		told.InstanceState = pb.InstanceStatus_instanceCreating
		told.ErrorInfo = m.Failure.message()
	}
	return &pb.Instance{Id: m.ID, Status: told}
}

func (f *Failure) message() *pb.InstanceErrorInfo {
	if f == nil {
		return nil
	}
	class := classOther
	if f.Exhausted {
		class = classExhausted
	}
	return &pb.InstanceErrorInfo{ErrorCode: f.Code, ErrorMessage: strings.ToValidUTF8(f.Message, "?"), InstanceErrorClass: class}
}
