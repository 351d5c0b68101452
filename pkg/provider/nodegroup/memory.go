// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"cmp"
	"fmt"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
)

// Indices of the informers' stores.
const (
	byOwner    = "nodegroup-owner"    // uid of the controlling owner
	byNode     = "nodegroup-node"     // name of a Machine's Node
	byInstance = "nodegroup-instance" // last part of a Machine's provider id
	byProvider = "nodegroup-provider" // provider id of a Node
)

// memory is all that answers are made of: what the informers hold, and over it what we wrote and they have not seen.
type memory struct {
	namespace                                   string
	deployments, sets, machines, classes, nodes cache.Indexer
	clock                                       clock.PassiveClock
	written                                     pendingWrites
	named                                       recent
	shown                                       shown
	sighted                                     sighted
	freed                                       freed
}

// group is the MachineDeployment of that name, as new as it is known.
func (m *memory) group(id string) (Group, error) {
	d, ok := m.deployment(id)
	if !ok {
		return Group{}, status.Errorf(codes.NotFound, "no MachineDeployment is named %q", id)
	}
	return NewGroup(d)
}

func (m *memory) deployment(name string) (*v1alpha1.MachineDeployment, bool) {
	found, ok, _ := m.deployments.GetByKey(m.namespace + "/" + name)
	if !ok {
		m.written.forget(name)
		return nil, false
	}
	return m.written.newer(found.(*v1alpha1.MachineDeployment)), true
}

// groups are all of them, always in the same order: where the caller finds two alike, it takes the first.
func (m *memory) groups() []Group {
	var all []Group
	for _, o := range m.deployments.List() {
		if g, err := NewGroup(m.written.newer(o.(*v1alpha1.MachineDeployment))); err == nil {
			all = append(all, g)
		}
	}
	slices.SortFunc(all, func(a, b Group) int { return cmp.Compare(a.Deployment.Name, b.Deployment.Name) })
	return all
}

// members are the machines of a group, sorted by name.
func (m *memory) members(g Group) []Member {
	named, now := names(g.Deployment), m.clock.Now()
	var all []Member
	for _, set := range owned[*v1alpha1.MachineSet](m.sets, g.Deployment) {
		for _, machine := range owned[*v1alpha1.Machine](m.machines, set) {
			gone := named[machine.Name] || m.named.has(machine.Name, now)
			all = append(all, NewMember(machine, set.Name, m.node(machine), gone, now))
		}
	}
	slices.SortFunc(all, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// wrote remembers an answer of the API server.
func (m *memory) wrote(d *v1alpha1.MachineDeployment) {
	now := m.clock.Now()
	m.written.note(d, now)
	m.named.note(names(d), now)
}

// forget what is known of objects that are gone. It is called again and again: what a call under way has noted since goes the next time.
func (m *memory) forget() {
	missing := func(store cache.Indexer) func(string) bool {
		return func(name string) bool {
			_, there, _ := store.GetByKey(m.namespace + "/" + name)
			return !there
		}
	}
	m.written.forgetIf(missing(m.deployments))
	m.shown.forgetIf(missing(m.deployments))
	m.sighted.forgetIf(missing(m.deployments))
	m.freed.forgetIf(missing(m.machines))
	m.named.note(nil, m.clock.Now())
}

// behind is the name of a MachineDeployment of which the informer should have seen our write long ago; empty where there is
// none.
func (m *memory) behind() string {
	for name, at := range m.written.all() {
		d, ok := m.deployment(name)
		if ok && m.written.holds(d) && m.clock.Since(at) > unseenFor {
			return name
		}
	}
	return ""
}

// alive are the names of those machines of a group that nobody has begun to delete.
func (m *memory) alive(g Group) map[string]bool {
	all := map[string]bool{}
	for _, set := range owned[*v1alpha1.MachineSet](m.sets, g.Deployment) {
		for _, machine := range owned[*v1alpha1.Machine](m.machines, set) {
			if machine.DeletionTimestamp == nil {
				all[machine.Name] = true
			}
		}
	}
	return all
}

func owned[T any](index cache.Indexer, owner metav1.Object) []T {
	return indexed[T](index, byOwner, string(owner.GetUID()))
}

func indexed[T any](index cache.Indexer, by, value string) []T {
	found, err := index.ByIndex(by, value)
	if err != nil {
		panic(err) // the index is ours
	}
	all := make([]T, 0, len(found))
	for _, o := range found {
		all = append(all, o.(T))
	}
	return all
}

// home is the group that a Machine belongs to; an error where it is none.
func (m *memory) home(machine *v1alpha1.Machine) (Group, error) {
	set, ok := m.owner(m.sets, machine, "MachineSet")
	if !ok {
		return Group{}, status.Errorf(codes.NotFound, "machine %s is of no MachineSet", machine.Name)
	}
	d, ok := m.owner(m.deployments, set, "MachineDeployment")
	if !ok {
		return Group{}, status.Errorf(codes.NotFound, "machine %s is of no MachineDeployment", machine.Name)
	}
	return m.group(d.GetName())
}

func (m *memory) owner(index cache.Indexer, of metav1.Object, kind string) (metav1.Object, bool) {
	ref := metav1.GetControllerOf(of)
	if ref == nil || ref.Kind != kind {
		return nil, false
	}
	found, ok, _ := index.GetByKey(m.namespace + "/" + ref.Name)
	if !ok {
		return nil, false
	}
	owner := found.(metav1.Object)
	return owner, owner.GetUID() == ref.UID
}

// homeOf is the group that a call's Node belongs to, false where it belongs to none: it is unknown, or in reserve.
func (m *memory) homeOf(node *pb.ExternalGrpcNode) (Group, bool) {
	machine, err := m.machine(node.GetProviderID(), node.GetName())
	if machine == nil || err != nil {
		return Group{}, false
	}
	_, reserve := node.GetAnnotations()[v1alpha1.ReserveAnnotation]
	if !reserve || marked(machine) {
		m.freed.forget(machine.Name)
	}
	if marked(machine) || reserve && !m.freed.stuck(machine.Name, m.clock.Now()) {
		return Group{}, false
	}
	g, err := m.home(machine)
	return g, err == nil
}

// going are the names of the machines behind the Nodes that a call wants deleted. Of what is gone there is no name.
func (m *memory) going(g Group, nodes []*pb.ExternalGrpcNode) (map[string]bool, error) {
	going := map[string]bool{}
	for _, node := range nodes {
		machine, err := m.machine(node.GetProviderID(), node.GetName())
		if err != nil {
			return nil, err
		}
		if machine == nil {
			if _, there := m.nodeNamed(node.GetName()); there {
				return nil, status.Errorf(codes.NotFound, "no machine stands behind node %s", node.GetName())
			}
			continue
		}
		home, err := m.home(machine)
		if err != nil {
			return nil, err
		}
		if home.Deployment.UID != g.Deployment.UID {
			return nil, status.Errorf(codes.InvalidArgument, "machine %s is of %s and not of %s", machine.Name, home.Deployment.Name, g.Deployment.Name)
		}
		going[machine.Name] = true
	}
	return going, nil
}

// ownerIndexer indexes by the controlling owner.
func ownerIndexer() cache.Indexers {
	return cache.Indexers{byOwner: func(o any) ([]string, error) {
		object, ok := o.(metav1.Object)
		if !ok {
			return nil, fmt.Errorf("index %T: no object", o)
		}
		if ref := metav1.GetControllerOfNoCopy(object); ref != nil {
			return []string{string(ref.UID)}, nil
		}
		return nil, nil
	}}
}

// machineIndexer indexes by owner, Node and instance.
func machineIndexer() cache.Indexers {
	all := ownerIndexer()
	all[byNode] = func(o any) ([]string, error) { return some(o.(*v1alpha1.Machine).Labels[mcm.NodeLabelKey]), nil }
	all[byInstance] = func(o any) ([]string, error) { return some(instance(o.(*v1alpha1.Machine).Spec.ProviderID)), nil }
	return all
}

// nodeIndexer indexes by provider id.
func nodeIndexer() cache.Indexers {
	return cache.Indexers{byProvider: func(o any) ([]string, error) { return some(o.(*corev1.Node).Spec.ProviderID), nil }}
}

func some(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}
