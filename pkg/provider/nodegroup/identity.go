// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"slices"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// machine returns the Machine behind a Node of a call, or behind a placeholder, and nil if there is none. The provider id
// decides. Node names are reused where they come from addresses, so a name alone may find the successor of the machine that the
// caller means. A provider id and a name of different machines are an error.
func (m *memory) machine(providerID, name string) (*v1alpha1.Machine, error) {
	if providerID == "" {
		return only(m.withName(name), name)
	}
	found := m.withID(providerID)
	if name != "" {
		if len(found) == 0 && len(m.withName(name)) == 0 {
			return nil, nil
		}
		found = slices.DeleteFunc(found, func(o *v1alpha1.Machine) bool {
			return o.Labels[mcm.NodeLabelKey] != name && placeholder+o.Name != name
		})
		if len(found) == 0 {
			return nil, status.Errorf(codes.FailedPrecondition, "provider id %s and node name %s belong to different machines", providerID, name)
		}
	}
	if len(found) > 1 {
		found = slices.DeleteFunc(found, func(o *v1alpha1.Machine) bool { return o.Spec.ProviderID != providerID })
	}
	return only(found, providerID)
}

func only(found []*v1alpha1.Machine, by string) (*v1alpha1.Machine, error) {
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
	if name, ok := strings.CutPrefix(id, placeholder); ok {
		return m.machineNamed(name)
	}
	if found := indexed[*v1alpha1.Machine](m.machines, byInstance, instance(id)); len(found) > 0 {
		return found
	}
	var all []*v1alpha1.Machine
	for _, node := range indexed[*corev1.Node](m.nodes, byProvider, id) {
		all = append(all, m.withName(node.Name)...)
	}
	return all
}

// withName returns the Machines that name a Node as theirs, without those that its provider id rules out.
func (m *memory) withName(name string) []*v1alpha1.Machine {
	if name, ok := strings.CutPrefix(name, placeholder); ok {
		return m.machineNamed(name)
	}
	all := indexed[*v1alpha1.Machine](m.machines, byNode, name)
	node, ok := m.nodeNamed(name)
	if !ok {
		return all
	}
	return slices.DeleteFunc(all, func(o *v1alpha1.Machine) bool { return differ(o.Spec.ProviderID, node.Spec.ProviderID) })
}

func (m *memory) machineNamed(name string) []*v1alpha1.Machine {
	found, ok, _ := m.machines.GetByKey(m.namespace + "/" + name)
	if !ok {
		return nil
	}
	return []*v1alpha1.Machine{found.(*v1alpha1.Machine)}
}

// node returns the Node of a Machine, and nil if it has not registered. A Node that has the provider id of another Machine is
// that one's, whatever its name.
func (m *memory) node(machine *v1alpha1.Machine) *corev1.Node {
	node, ok := m.nodeNamed(machine.Labels[mcm.NodeLabelKey])
	if !ok {
		return nil
	}
	owners := indexed[*v1alpha1.Machine](m.machines, byInstance, instance(node.Spec.ProviderID))
	if len(owners) > 0 && !slices.ContainsFunc(owners, func(o *v1alpha1.Machine) bool { return o.Name == machine.Name }) {
		return nil
	}
	return node
}

func (m *memory) nodeNamed(name string) (*corev1.Node, bool) {
	found, ok, _ := m.nodes.GetByKey(name)
	if !ok {
		return nil, false
	}
	return found.(*corev1.Node), true
}

// instance returns the last part of a provider id, which names the machine to its cloud. The rest of it may differ between Machine
// and Node: on AWS the Machine's has the region where the Node's has the zone.
func instance(id string) string { return id[strings.LastIndexByte(id, '/')+1:] }

// differ reports whether two provider ids belong to different machines. Ids of different schemes cannot be compared.
func differ(a, b string) bool {
	return a != "" && b != "" && scheme(a) == scheme(b) && instance(a) != instance(b)
}

func scheme(id string) string {
	before, _, found := strings.Cut(id, "://")
	if !found {
		return ""
	}
	return before
}
