// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"cmp"
	"slices"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
	"github.com/evenkeel/evenkeel/pkg/similar"
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

// template returns a fresh Node of a group, false if no template is known.
func (m *memory) template(g plan.Group, reserved corev1.ResourceList) (*corev1.Node, bool) {
	own := m.modelOf(g)
	var others []plan.Model
	if own.Node == nil {
		for _, other := range m.allGroups() {
			others = append(others, m.modelOf(other))
		}
	}
	return plan.NewTemplate(own, others, reserved)
}

func (m *memory) modelOf(g plan.Group) plan.Model {
	template := g.Deployment.Spec.Template.Spec
	model := plan.Model{Group: g.Deployment.Name, Extra: template.NodeTemplateSpec, Node: m.exampleNode(g)}
	if class := m.source.Class(m.namespace, template.Class.Name); class != nil {
		model.Class = class.NodeTemplate
	}
	return model
}

// exampleNode returns a Node of a group's present class that can serve as a template: the most
// recently changed one, otherwise the oldest.
func (m *memory) exampleNode(g plan.Group) *corev1.Node {
	class, now := g.Deployment.Spec.Template.Spec.Class.Name, m.clock.Now()
	if node := m.lastNodes.nodeOf(g.Deployment.Name, class); node != nil {
		return node
	}
	var fit []*corev1.Node
	for _, machine := range m.outline(g).Machines {
		if machine.Node != nil && machine.Object.Spec.Class.Name == class && (similar.Candidate{Node: machine.Node, Reserve: machine.Marked()}).Fit(now) {
			fit = append(fit, machine.Node)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return slices.MinFunc(fit, func(a, b *corev1.Node) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

// rememberNode keeps a Node as the template of its group, for the time when the group has no Node.
func (m *memory) rememberNode(o any) {
	node, ok := o.(*corev1.Node)
	if !ok || !(similar.Candidate{Node: node}).Fit(m.clock.Now()) {
		return
	}
	machine, err := m.findMachine(node.Spec.ProviderID, node.Name)
	if machine == nil || err != nil || pool.Marked(machine) {
		return
	}
	if g, err := m.groupOf(machine); err == nil {
		m.lastNodes.remember(g.Deployment.Name, templateNode{node, machine.Spec.Class.Name})
	}
}

// addHandlers remembers names when they leave the annotation, and Nodes that can serve as
// templates.
func (m *memory) addHandlers(deployments, nodes cache.SharedIndexInformer) error {
	if _, err := deployments.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, _ any) {
			if d, ok := before.(*v1alpha1.MachineDeployment); ok {
				m.recentNames.addNames(pool.Named(d), m.clock.Now()) // those that it no longer names
			}
		},
	}); err != nil {
		return err
	}
	_, err := nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: m.rememberNode, UpdateFunc: func(before, after any) { m.rememberNode(before); m.rememberNode(after) },
	})
	return err
}
