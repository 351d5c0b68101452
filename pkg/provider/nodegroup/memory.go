// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"cmp"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// memory is the source of all answers: what the informers hold, and our writes that they have not
// seen.
type memory struct {
	namespace   string
	deployments cache.Indexer
	kinds       stores.Kinds
	source      pool.Source
	clock       clock.PassiveClock
	written     *written.Cache[*v1alpha1.MachineDeployment]
	recentNames recentNames
	lastNodes   lastNodes
	callerView  callerView
	// staleMarks are about Machines without the reserve mark whose Nodes carry it, failures about
	// those that cannot be created, reports about groups with such failures.
	staleMarks, failures, reports machineTimes
}

// findGroup returns the newest known MachineDeployment with this name.
func (m *memory) findGroup(id string) (plan.Group, error) {
	d := stores.Find[v1alpha1.MachineDeployment](m.deployments, m.namespace+"/"+id)
	if d == nil {
		return plan.Group{}, status.Errorf(codes.NotFound, "no MachineDeployment is named %q", id)
	}
	return plan.NewGroup(m.written.Newest(d))
}

// allGroups returns all groups, always in the same order: of two equal ones, the caller takes the
// first.
func (m *memory) allGroups() []plan.Group {
	var all []plan.Group
	for _, o := range m.deployments.List() {
		if g, err := plan.NewGroup(m.written.Newest(o.(*v1alpha1.MachineDeployment))); err == nil {
			all = append(all, g)
		}
	}
	slices.SortFunc(all, func(a, b plan.Group) int { return cmp.Compare(a.Deployment.Name, b.Deployment.Name) })
	return all
}

// outline reads a group and its machines, but neither its rollout nor its pods.
func (m *memory) outline(g plan.Group) pool.Snapshot {
	return pool.Outline(g.Deployment, m.source, m.clock.Now())
}

// snapshot reads a group with its machines and its rollout, but not its pods.
func (m *memory) snapshot(g plan.Group) pool.Snapshot {
	return pool.Read(g.Deployment, m.source, m.clock.Now())
}

// members returns the machines of a group, sorted by name.
func (m *memory) members(s pool.Snapshot) []plan.Member {
	all := make([]plan.Member, 0, len(s.Machines))
	for _, machine := range s.Machines {
		all = append(all, plan.Member{Machine: machine, Gone: m.recentNames.contains(machine.Object.Name, s.Now)})
	}
	return all
}

// instances returns the machines of a group for the protocol, without those in reserve. Failures are
// reported with pauses, where machines fail one after the other.
func (m *memory) instances(g plan.Group) (all []*pb.Instance) {
	var failed []*pb.Instance
	for _, member := range m.members(m.outline(g)) {
		if member.Reserve() {
			continue
		}
		is := m.instance(member)
		if all = append(all, is); is.Status.ErrorInfo != nil {
			failed = append(failed, is)
		}
	}
	group := g.Deployment.Name
	switch {
	case len(failed) == 0:
		m.reports.forget(group)
	case m.reports.pausing(group, m.clock.Now()):
		for _, is := range failed {
			is.Status.ErrorInfo = nil
		}
	}
	return all
}

// instance returns a machine for the protocol. A failure is reported for a while: a caller that has
// not removed the machine by then cannot, because of min or a rollout.
func (m *memory) instance(member plan.Member) *pb.Instance {
	is := instance(member)
	if is.Status.ErrorInfo == nil {
		m.failures.forget(member.Name())
	} else if m.failures.overdue(member.Name(), m.clock.Now()) {
		is.Status.ErrorInfo = nil
	}
	return is
}

// recordWrite remembers an object that the API server returned.
func (m *memory) recordWrite(d *v1alpha1.MachineDeployment) {
	m.written.Record(d)
	m.recentNames.addNames(pool.Named(d), m.clock.Now())
}

// forget removes what is known about objects that no longer exist. It runs repeatedly, so the next
// run removes what a concurrent call noted.
func (m *memory) forget() {
	missing := func(store cache.Indexer) func(string) bool {
		return func(name string) bool {
			_, there, _ := store.GetByKey(m.namespace + "/" + name)
			return !there
		}
	}
	m.lastNodes.forgetIf(missing(m.deployments))
	m.callerView.forgetIf(missing(m.deployments))
	m.staleMarks.forgetIf(missing(m.kinds.Machines))
	m.failures.forgetIf(missing(m.kinds.Machines))
	m.reports.forgetIf(missing(m.deployments))
	m.recentNames.addNames(nil, m.clock.Now())
}

// liveMachines returns the names of the machines of a group that are not being deleted.
func (m *memory) liveMachines(g plan.Group) map[string]bool {
	all := map[string]bool{}
	for _, machine := range m.outline(g).Machines {
		if machine.Object.DeletionTimestamp == nil {
			all[machine.Object.Name] = true
		}
	}
	return all
}

// mayOwn reports whether a Machine belongs to a group, or may, because its MachineSet is not known
// yet.
func (m *memory) mayOwn(g plan.Group, machine *v1alpha1.Machine) bool {
	set := stores.Controller[v1alpha1.MachineSet](m.kinds.Sets, machine)
	return set == nil || metav1.IsControlledBy(set, g.Deployment)
}

// groupOf returns the group of a Machine, or an error if it has none.
func (m *memory) groupOf(machine *v1alpha1.Machine) (plan.Group, error) {
	set := stores.Controller[v1alpha1.MachineSet](m.kinds.Sets, machine)
	if set == nil {
		return plan.Group{}, status.Errorf(codes.NotFound, "machine %s has no MachineSet", machine.Name)
	}
	d := stores.Controller[v1alpha1.MachineDeployment](m.deployments, set)
	if d == nil {
		return plan.Group{}, status.Errorf(codes.NotFound, "machine %s has no MachineDeployment", machine.Name)
	}
	return m.findGroup(d.Name)
}

// groupOfNode returns the group of the Node in a request. It is false if the Node is unknown or in
// reserve.
func (m *memory) groupOfNode(node *pb.ExternalGrpcNode) (plan.Group, bool) {
	machine, err := m.findMachine(node.GetProviderID(), node.GetName())
	if machine == nil || err != nil {
		return plan.Group{}, false
	}
	_, reserve := node.GetAnnotations()[v1alpha1.ReserveAnnotation]
	if !reserve || pool.Marked(machine) {
		m.staleMarks.forget(machine.Name)
	}
	if pool.Marked(machine) || reserve && !m.staleMarks.overdue(machine.Name, m.clock.Now()) {
		return plan.Group{}, false
	}
	g, err := m.groupOf(machine)
	return g, err == nil
}

// machinesToDelete returns the names of the machines of the Nodes that a call deletes, and the Nodes
// that are unknown, like their machines.
func (m *memory) machinesToDelete(g plan.Group, nodes []*pb.ExternalGrpcNode) (going map[string]bool, unknown []*pb.ExternalGrpcNode, err error) {
	going = map[string]bool{}
	for _, node := range nodes {
		machine, err := m.findMachine(node.GetProviderID(), node.GetName())
		if err != nil {
			return nil, nil, err
		}
		if machine == nil {
			if m.source.Node(node.GetName()) != nil {
				return nil, nil, status.Errorf(codes.NotFound, "node %s has no machine", node.GetName())
			}
			unknown = append(unknown, node)
			continue
		}
		home, err := m.groupOf(machine)
		if err != nil {
			return nil, nil, err
		}
		if home.Deployment.UID != g.Deployment.UID {
			return nil, nil, status.Errorf(codes.InvalidArgument, "machine %s belongs to %s, not to %s", machine.Name, home.Deployment.Name, g.Deployment.Name)
		}
		going[machine.Name] = true
	}
	return going, unknown, nil
}
