// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"slices"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
)

// findMachine returns the Machine of a Node in a request, or of a placeholder, and nil if there is
// none. The provider id decides. Node names are reused where they come from addresses, so a name
// alone may find the successor of the machine that the caller means. A provider id and a name of
// different machines are an error.
func (m *memory) findMachine(providerID, name string) (*v1alpha1.Machine, error) {
	if providerID == "" {
		return atMostOne(m.withName(name), name)
	}
	found := m.withID(providerID)
	if name != "" {
		if len(found) == 0 && len(m.withName(name)) == 0 {
			return nil, nil
		}
		found = slices.DeleteFunc(found, func(o *v1alpha1.Machine) bool {
			return o.Labels[mcm.NodeLabelKey] != name && plan.Placeholder+o.Name != name
		})
		if len(found) == 0 {
			return nil, status.Errorf(codes.FailedPrecondition, "provider id %s and node name %s belong to different machines", providerID, name)
		}
	}
	if len(found) > 1 {
		found = slices.DeleteFunc(found, func(o *v1alpha1.Machine) bool { return o.Spec.ProviderID != providerID })
	}
	return atMostOne(found, providerID)
}

func atMostOne(found []*v1alpha1.Machine, by string) (*v1alpha1.Machine, error) {
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return found[0], nil
	}
	return nil, status.Errorf(codes.FailedPrecondition, "%d machines match %s", len(found), by)
}

// withID returns the Machines of a provider id, which is the Machine's own or that of its Node.
func (m *memory) withID(id string) []*v1alpha1.Machine {
	if name, ok := strings.CutPrefix(id, plan.Placeholder); ok {
		return m.machineNamed(name)
	}
	if found := stores.Indexed[*v1alpha1.Machine](m.kinds.Machines, stores.ByInstance, pool.InstanceID(id)); len(found) > 0 {
		return found
	}
	var all []*v1alpha1.Machine
	for _, node := range stores.Indexed[*corev1.Node](m.kinds.Nodes, target.ByProviderID, id) {
		all = append(all, m.withName(node.Name)...)
	}
	return all
}

// withName returns the Machines with this Node name, without those that the Node's provider id
// excludes.
func (m *memory) withName(name string) []*v1alpha1.Machine {
	if name, ok := strings.CutPrefix(name, plan.Placeholder); ok {
		return m.machineNamed(name)
	}
	all := stores.Indexed[*v1alpha1.Machine](m.kinds.Machines, stores.ByNode, name)
	if node := m.source.Node(name); node != nil {
		all = slices.DeleteFunc(all, func(o *v1alpha1.Machine) bool { return !pool.IsNodeOf(o, node) })
	}
	return all
}

func (m *memory) machineNamed(name string) []*v1alpha1.Machine {
	if found := stores.Find[v1alpha1.Machine](m.kinds.Machines, m.namespace+"/"+name); found != nil {
		return []*v1alpha1.Machine{found}
	}
	return nil
}
