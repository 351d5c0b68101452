// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/similar"
)

// Source finds objects by what they belong to, in any order. The stores of informers are sources,
// and so is a [List].
type Source interface {
	// Sets returns the MachineSets that a MachineDeployment controls, Machines those that a
	// MachineSet controls.
	Sets(deployment types.UID) []*mcm.MachineSet
	Machines(set types.UID) []*mcm.Machine
	// Class returns a MachineClass, nil if it does not exist.
	Class(namespace, name string) *mcm.MachineClass
	// Node returns a Node, nil if it does not exist.
	Node(name string) *corev1.Node
	// Pods returns the pods that are bound to a Node. Pods without a Node are left out.
	Pods(node string) []*corev1.Pod
	// Devices returns how many devices of a DeviceClass a Node has, or why that is not known.
	Devices(node, class string) (n int, unknown string)
}

// DeviceCounter counts devices for a [Source].
type DeviceCounter interface {
	Count(node, class string) (n int, unknown string)
}

// Objects are the objects of a [List]. None of them is changed.
type Objects struct {
	Sets     []*mcm.MachineSet
	Machines []*mcm.Machine
	Classes  []*mcm.MachineClass
	Nodes    []*corev1.Node
	Pods     []*corev1.Pod
	// Devices counts the devices of Nodes; nil if they are not known.
	Devices DeviceCounter
}

// List is a Source with objects that were read before.
type List struct {
	sets     map[types.UID][]*mcm.MachineSet
	machines map[types.UID][]*mcm.Machine
	classes  map[types.NamespacedName]*mcm.MachineClass
	nodes    map[string]*corev1.Node
	pods     map[string][]*corev1.Pod
	devices  DeviceCounter
}

// NewList returns a source of these objects and no others.
func NewList(o Objects) *List {
	l := &List{
		sets: controlled(o.Sets), machines: controlled(o.Machines),
		classes: map[types.NamespacedName]*mcm.MachineClass{}, nodes: map[string]*corev1.Node{}, pods: map[string][]*corev1.Pod{}, devices: o.Devices,
	}
	for _, c := range o.Classes {
		l.classes[types.NamespacedName{Namespace: c.Namespace, Name: c.Name}] = c
	}
	for _, n := range o.Nodes {
		l.nodes[n.Name] = n
	}
	for _, p := range o.Pods {
		if p.Spec.NodeName != "" {
			l.pods[p.Spec.NodeName] = append(l.pods[p.Spec.NodeName], p)
		}
	}
	return l
}

// controlled returns objects by the UID of their controller.
func controlled[T metav1.Object](objects []T) map[types.UID][]T {
	all := map[types.UID][]T{}
	for _, o := range objects {
		if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
			all[owner.UID] = append(all[owner.UID], o)
		}
	}
	return all
}

// Sets implements [Source].
func (l *List) Sets(deployment types.UID) []*mcm.MachineSet { return l.sets[deployment] }

// Machines implements [Source].
func (l *List) Machines(set types.UID) []*mcm.Machine { return l.machines[set] }

// Class implements [Source].
func (l *List) Class(namespace, name string) *mcm.MachineClass {
	return l.classes[types.NamespacedName{Namespace: namespace, Name: name}]
}

// Node implements [Source].
func (l *List) Node(name string) *corev1.Node { return l.nodes[name] }

// Pods implements [Source].
func (l *List) Pods(node string) []*corev1.Pod { return l.pods[node] }

// Devices implements [Source].
func (l *List) Devices(node, class string) (n int, unknown string) {
	if l.devices == nil {
		return 0, ""
	}
	return l.devices.Count(node, class)
}

// Snapshot is a MachineDeployment at one instant. Nothing in it is changed.
type Snapshot struct {
	Now        time.Time
	Deployment *machine.MachineDeployment
	// Accounting is where the reserve is counted now: Inclusive if spec.replicas includes reserve
	// machines.
	Accounting Accounting
	// Replicas is spec.replicas. Workload is R, the machines that workload may have, and Requested
	// is R plus the growth that is still to be split over zones. None is negative.
	Replicas, Workload, Requested int
	// Applied is A, the excess that is recorded.
	Applied Applied
	// Wishes are the places where an excess can be requested. WishesErr is an error about an
	// invalid one.
	Wishes    Wishes
	WishesErr error
	// Sets and Machines are the MachineSets and Machines of the MachineDeployment, sorted by name.
	Sets     []*mcm.MachineSet
	Machines []Machine

	// An outline contains neither the fields below nor the pods of machines.

	Rollout Rollout
	// Class is its MachineClass, nil if it does not exist.
	Class *mcm.MachineClass
	// Sample is a Node that shows what its machines offer, nil if there is none.
	Sample *corev1.Node
	// Allocatable is what one machine offers to pods; nil if that is unknown. It contains the devices
	// that an excess names.
	Allocatable corev1.ResourceList
	// Unknown is why Allocatable lacks devices that an excess names.
	Unknown Unknown
}

// Read reads a MachineDeployment.
func Read(d *machine.MachineDeployment, source Source, now time.Time) Snapshot {
	s := Outline(d, source, now)
	s.Complete(source)
	return s
}

// ReadReserve reads a MachineDeployment, but the pods only of machines with the reserve mark. It is
// enough to know which machines would be released, and much faster than Read where most machines
// serve.
func ReadReserve(d *machine.MachineDeployment, source Source, now time.Time) Snapshot {
	s := Outline(d, source, now)
	s.complete(source, Machine.Marked)
	return s
}

// Outline reads only what shows whether there is any trace of a reserve. Most MachineDeployments in
// most clusters have none, and a controller reads them whenever something about them changes.
func Outline(d *machine.MachineDeployment, source Source, now time.Time) Snapshot {
	a := AppliedOf(d, d.Spec.Replicas)
	s := Snapshot{
		Now: now, Deployment: d, Accounting: Additive,
		Replicas: max(0, int(d.Spec.Replicas)), Workload: max(0, int(a.Workload(d, d.Spec.Replicas))),
		Requested: int(a.requested(d)), Applied: a, Sets: slices.Clone(source.Sets(d.UID)),
	}
	if s.Applied.Counted > 0 {
		s.Accounting = Inclusive
	}
	s.Wishes, s.WishesErr = WishesOf(d)
	slices.SortFunc(s.Sets, func(a, b *mcm.MachineSet) int { return cmp.Compare(a.Name, b.Name) })
	named := Named(d)
	for _, set := range s.Sets {
		machines := source.Machines(set.UID)
		s.Machines = slices.Grow(s.Machines, len(machines))
		for _, m := range machines {
			_, isNamed := named[m.Name]
			s.Machines = append(s.Machines, outline(m, set.Name, isNamed, source, now))
		}
	}
	slices.SortFunc(s.Machines, func(a, b Machine) int { return cmp.Compare(a.Object.Name, b.Object.Name) })
	return s
}

func outline(m *mcm.Machine, set string, named bool, source Source, now time.Time) Machine {
	phase := m.Status.CurrentStatus.Phase
	one := Machine{Object: m, Set: set, Node: NodeOf(m, source), Named: named || Condemned(m), Preserved: Preserved(m, now)}
	one.Unseen = one.Node == nil && (Ready(phase) || phase == mcm.MachineUnknown)
	return one
}

// Complete reads what an outline lacks.
func (s *Snapshot) Complete(source Source) {
	s.complete(source, func(Machine) bool { return true })
}

// complete reads what an outline lacks, with the pods of those machines for which withPods is true.
func (s *Snapshot) complete(source Source, withPods func(Machine) bool) {
	staying := map[string]int{}
	for i := range s.Machines {
		m := &s.Machines[i]
		if withPods(*m) {
			m.countPods(source)
		}
		if m.Object.DeletionTimestamp == nil {
			staying[m.Set]++
		}
	}
	s.Rollout = RolloutOf(s.Deployment, s.Sets, staying)
	s.Class = source.Class(s.Deployment.Namespace, s.Deployment.Spec.Template.Spec.Class.Name)
	s.Sample = s.sample()
	s.Allocatable, s.Unknown = s.allocatable(), nil
	s.CountDevices(source, DeviceClasses(s.Deployment))
}

// sample prefers Nodes that serve, and repel no other pods than the node template does: those in
// reserve may lack devices, and a person may have tainted or cordoned a Node.
func (s *Snapshot) sample() *corev1.Node {
	var unusual, cordoned *corev1.Node
	foreign := func(t corev1.Taint) bool {
		return IsForeignTaint(t, s.Deployment.Spec.Template.Spec.NodeTemplateSpec.Spec.Taints)
	}
	for _, m := range s.Machines {
		switch {
		case m.Node == nil || m.Set != s.Rollout.Set || !NodeReady(m.Node):
		case m.Node.Spec.Unschedulable:
			cordoned = cmp.Or(cordoned, m.Node)
		case slices.ContainsFunc(m.Node.Spec.Taints, foreign), !(similar.Candidate{Node: m.Node, Reserve: m.Marked()}).Fit(s.Now):
			unusual = cmp.Or(unusual, m.Node)
		default:
			return m.Node
		}
	}
	return cmp.Or(unusual, cordoned)
}

func (s *Snapshot) allocatable() corev1.ResourceList {
	switch {
	case s.Sample == nil:
		return s.described()
	case (similar.Candidate{Node: s.Sample}).Fit(s.Now):
		return s.Sample.Status.Allocatable
	}
	return withDevices(s.Sample.Status.Allocatable, s.described())
}
