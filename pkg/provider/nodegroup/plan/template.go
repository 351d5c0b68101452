// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/similar"
)

// Model is what is known about the machines of one group.
type Model struct {
	Group string
	// Class is the nodeTemplate of the MachineClass, if any.
	Class *v1alpha1.NodeTemplate
	// Extra is the node template of the MachineDeployment, which adds to the class.
	Extra v1alpha1.NodeTemplateSpec
	// Node is an existing Node of the group that can serve as a template, if any.
	Node *corev1.Node
}

// NewTemplate returns a fresh Node of a group: like one of its own Nodes, otherwise like one of a
// group that differs only in the zone, otherwise from its class. It is false if none of these
// exists. The caller compares templates of different groups, whether they come from Nodes or from
// here, so the second way is better than the third.
func NewTemplate(m Model, others []Model, reserved corev1.ResourceList) (*corev1.Node, bool) {
	if m.Node != nil {
		return m.nodeLike(m.Node, m.zoneName()), true
	}
	for _, other := range others {
		if other.Node != nil && other.Group != m.Group && differInZoneOnly(m, other) {
			return m.nodeLike(other.Node, other.zoneName()), true
		}
	}
	estimate, ok := similar.FromClass(m.Group, m.Class, nil)
	if !ok {
		return nil, false
	}
	capacity := withHugePages(estimate.Capacity, estimate.Labels[corev1.LabelArchStable])
	return m.newNode(capacity, allocatable(capacity, reserved), withFormerNames(estimate.Labels)), true
}

func (m Model) zoneName() string {
	if m.Class == nil {
		return ""
	}
	return m.Class.Zone
}

// differInZoneOnly reports whether the machines of two groups differ only in the zone.
func differInZoneOnly(a, b Model) bool {
	if a.Class == nil || b.Class == nil || a.Class.Zone == "" || b.Class.Zone == "" {
		return false
	}
	x, y := *a.Class, *b.Class
	x.Zone, y.Zone = "", ""
	return equality.Semantic.DeepEqual(x, y) && equality.Semantic.DeepEqual(a.Extra.Spec.Taints, b.Extra.Spec.Taints) &&
		maps.Equal(replaceZone(a.Extra.Labels, a.zoneName(), ""), replaceZone(b.Extra.Labels, b.zoneName(), ""))
}

// replaceZone returns labels in which one zone replaces another, whatever the label.
func replaceZone(labels map[string]string, from, to string) map[string]string {
	all := map[string]string{}
	for label, value := range labels {
		if value == from {
			value = to
		}
		all[label] = value
	}
	return all
}

// nodeLike returns a fresh Node that resembles a Node of a zone.
func (m Model) nodeLike(node *corev1.Node, zone string) *corev1.Node {
	labels := replaceZone(node.Labels, zone, m.zoneName())
	maps.DeleteFunc(labels, func(label, _ string) bool { return machineSpecific(label) })
	return m.newNode(node.Status.Capacity, node.Status.Allocatable, labels)
}

// machineSpecific reports whether a label identifies the machine of a Node, or its state.
func machineSpecific(label string) bool {
	return label == "node.gardener.cloud/machine-name" || label == "alpha.eksctl.io/instance-id" || strings.HasPrefix(label, "node.machine.sapcloud.io/")
}

// withFormerNames adds two labels of a class under their former names: kube-controller-manager does
// so on every Node, and pods may select by them. The caller adds the third one, of the instance
// type.
func withFormerNames(labels map[string]string) map[string]string {
	all := maps.Clone(labels)
	all["beta.kubernetes.io/os"], all["beta.kubernetes.io/arch"] = labels[corev1.LabelOSStable], labels[corev1.LabelArchStable]
	return all
}

// newNode returns a Node that is ready for pods. It keeps the labels, and adds some.
func (m Model) newNode(capacity, allocatable corev1.ResourceList, labels map[string]string) *corev1.Node {
	maps.Copy(labels, m.Extra.Labels)
	name := m.Group + "-template"
	labels[corev1.LabelHostname] = name
	taints := slices.DeleteFunc(slices.Clone(m.Extra.Spec.Taints), func(t corev1.Taint) bool { return t.Key == v1alpha1.ReserveTaintKey })
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.NodeSpec{ProviderID: Placeholder + name, Taints: taints},
		Status:     corev1.NodeStatus{Capacity: capacity.DeepCopy(), Allocatable: allocatable.DeepCopy(), Conditions: healthyConditions()},
	}
}

// healthyConditions returns the conditions of a Node without problems.
func healthyConditions() []corev1.NodeCondition {
	all := []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, kind := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable} {
		all = append(all, corev1.NodeCondition{Type: kind, Status: corev1.ConditionFalse})
	}
	return all
}

// withHugePages adds what a Node of that architecture reports if it has no huge pages: the caller
// considers two groups similar only if they have the same resources.
func withHugePages(capacity corev1.ResourceList, arch string) corev1.ResourceList {
	all := capacity.DeepCopy()
	if arch != "amd64" {
		return all
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceHugePagesPrefix + "1Gi", corev1.ResourceHugePagesPrefix + "2Mi"} {
		if _, ok := all[name]; !ok {
			all[name] = resource.Quantity{Format: resource.DecimalSI}
		}
	}
	return all
}

// bracket is a part of a machine's capacity, and how much of it is reserved.
type bracket struct {
	size     int64
	promille int64
}

// What kubelets of managed clusters usually reserve: much of a small machine, little of a large
// one. If a template promises too much, the caller raises a group for pods that do not fit. In
// doubt, it promises too little.
var (
	cpuBrackets    = []bracket{{1000, 60}, {1000, 10}, {2000, 5}, {1 << 40, 2}} // millicores
	memoryBrackets = []bracket{{4 << 30, 250}, {4 << 30, 200}, {8 << 30, 100}, {112 << 30, 60}, {1 << 60, 20}}
	diskBrackets   = []bracket{{1 << 60, 100}} // below that a kubelet evicts pods
)

// evictionMemory is what a kubelet keeps free by evicting pods, by default.
const evictionMemory = 100 << 20

// allocatable returns what pods can use of a capacity: all except what is reserved, or what is
// usually reserved.
func allocatable(capacity, reserved corev1.ResourceList) corev1.ResourceList {
	all := capacity.DeepCopy()
	for name, q := range all {
		kept, said := reserved[name]
		if !said {
			kept = usualReservation(name, q)
		}
		if q.Sub(kept); q.Sign() < 0 {
			q = resource.Quantity{Format: q.Format}
		}
		all[name] = q
	}
	return all
}

// usualReservation returns what kubelets usually reserve of a capacity.
func usualReservation(name corev1.ResourceName, capacity resource.Quantity) resource.Quantity {
	switch name {
	case corev1.ResourceCPU:
		return *resource.NewMilliQuantity(reservedIn(capacity.MilliValue(), cpuBrackets), resource.DecimalSI)
	case corev1.ResourceMemory:
		return *resource.NewQuantity(reservedIn(capacity.Value(), memoryBrackets)+evictionMemory, resource.BinarySI)
	case corev1.ResourceEphemeralStorage:
		return *resource.NewQuantity(reservedIn(capacity.Value(), diskBrackets), resource.BinarySI)
	}
	return resource.Quantity{}
}

// reservedIn returns what is reserved of an amount, bracket by bracket.
func reservedIn(amount int64, brackets []bracket) int64 {
	kept := int64(0)
	for _, s := range brackets {
		part := max(0, min(amount, s.size))
		kept += part/1000*s.promille + part%1000*s.promille/1000
		amount -= part
	}
	return kept
}
