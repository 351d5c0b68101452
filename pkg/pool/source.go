// SPDX-License-Identifier: Apache-2.0

package pool

import (
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
}

// Objects are the objects of a [List]. None of them is changed.
type Objects struct {
	Sets     []*mcm.MachineSet
	Machines []*mcm.Machine
	Classes  []*mcm.MachineClass
	Nodes    []*corev1.Node
	Pods     []*corev1.Pod
}

// List is a Source with objects that were read before.
type List struct {
	sets     map[types.UID][]*mcm.MachineSet
	machines map[types.UID][]*mcm.Machine
	classes  map[types.NamespacedName]*mcm.MachineClass
	nodes    map[string]*corev1.Node
	pods     map[string][]*corev1.Pod
}

// NewList returns a source of these objects and no others.
func NewList(o Objects) *List {
	l := &List{
		sets: controlled(o.Sets), machines: controlled(o.Machines),
		classes: map[types.NamespacedName]*mcm.MachineClass{}, nodes: map[string]*corev1.Node{}, pods: map[string][]*corev1.Pod{},
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
