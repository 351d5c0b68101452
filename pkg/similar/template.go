// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"cmp"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// Template is what a fresh machine of a MachineDeployment offers. This package never changes a
// template.
type Template struct {
	// Name of the MachineDeployment. It is unique among the templates that are grouped.
	Name        string
	Capacity    corev1.ResourceList
	Allocatable corev1.ResourceList
	// Free is what DaemonSets leave of Allocatable. Resources that Allocatable lacks do not count.
	Free   corev1.ResourceList
	Labels map[string]string
	// Taints are those that every machine of the MachineDeployment has, so that pods must tolerate
	// them.
	Taints []corev1.Taint
	// Estimated reports whether the template does not come from a real machine. Allocatable and
	// Free are then the capacity; see [Completed].
	Estimated bool
}

// amount returns thousandths, as cluster-autoscaler compares them; zero for a missing resource.
func amount(l corev1.ResourceList, name corev1.ResourceName) float64 {
	q, ok := l[name]
	if !ok {
		return 0
	}
	return milliValue(q)
}

// milliValue does not overflow, unlike MilliValue for a quantity above 9e15, and Value for one above
// 9e18.
func milliValue(q resource.Quantity) float64 {
	if whole, ok := q.AsInt64(); ok {
		return float64(whole) * 1000
	}
	if v := q.AsApproximateFloat64(); math.Abs(v) > math.MaxInt64/1000 {
		return v * 1000
	}
	return float64(q.MilliValue())
}

// within reports whether two amounts differ by at most a part of the larger one. Equal amounts
// always do, whatever the ratio; therefore dividing templates ends even with a ratio that is not a
// number.
func within(x, y, ratio float64) bool {
	return x == y || max(x, y)-min(x, y) <= max(x, y)*ratio
}

const (
	// usualPods is the default limit of pods of a kubelet.
	usualPods = 110
	// A MachineClass names GPUs in this way; a Node names them by vendor.
	classGPU, nodeGPU corev1.ResourceName = "gpu", "nvidia.com/gpu"
)

// FromClass estimates a template from the nodeTemplate of a MachineClass and the labels of the
// MachineDeployment's own node template; false if the class has no nodeTemplate.
func FromClass(name string, class *v1alpha1.NodeTemplate, labels map[string]string) (Template, bool) {
	if class == nil {
		return Template{}, false
	}
	capacity := ClassCapacity(class)
	return Template{
		Name:        name,
		Capacity:    capacity,
		Allocatable: capacity,
		Free:        capacity,
		Labels:      classLabels(class, labels),
		Estimated:   true,
	}, true
}

// ClassCapacity returns what a machine has for pods according to the nodeTemplate of its
// MachineClass, by the names that Nodes use.
func ClassCapacity(class *v1alpha1.NodeTemplate) corev1.ResourceList {
	capacity := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(usualPods, resource.DecimalSI)}
	maps.Copy(capacity, class.Capacity)
	if gpus, ok := capacity[classGPU]; ok {
		delete(capacity, classGPU)
		if _, named := capacity[nodeGPU]; !named && !gpus.IsZero() {
			capacity[nodeGPU] = gpus
		}
	}
	maps.Copy(capacity, class.VirtualCapacity)
	return capacity
}

// classLabels returns the labels that a kubelet and a cloud add to every Node, overridden by the
// pool's own.
func classLabels(class *v1alpha1.NodeTemplate, labels map[string]string) map[string]string {
	all := map[string]string{corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}
	if class.Architecture != nil && *class.Architecture != "" {
		all[corev1.LabelArchStable] = *class.Architecture
	}
	for label, value := range map[string]string{
		corev1.LabelInstanceTypeStable: class.InstanceType,
		corev1.LabelTopologyRegion:     class.Region,
		corev1.LabelTopologyZone:       class.Zone,
	} {
		if value != "" {
			all[label] = value
		}
	}
	maps.Copy(all, labels)
	return all
}

// Completed fills in the allocatable and free resources of each estimated template from a real
// machine of the same kind. Otherwise, a zone without machines would never be similar to one that
// has some: a MachineClass does not contain what a kubelet reserves and what DaemonSets use. The
// sources are the templates of the same capacity, memory within the ratio, and the same labels, if
// they all belong to one group. Otherwise it is unknown which of them the next machine will
// resemble, and the template stays as it is.
func Completed(templates []Template, o Options) []Template {
	seen := make([]Template, 0, len(templates))
	for _, t := range templates {
		if !t.Estimated {
			seen = append(seen, t)
		}
	}
	if len(seen) == 0 || len(seen) == len(templates) {
		return templates
	}
	lenders := lendersByKind(seen, o)
	k := keys{options: o}
	completed := slices.Clone(templates)
	for i, t := range templates {
		if !t.Estimated {
			continue
		}
		k.key = k.key[:0]
		k.addKind(t)
		if from, ok := chooseLender(t, lenders[string(k.key)], o); ok {
			completed[i].Allocatable, completed[i].Free = from.Allocatable, from.Free
		}
	}
	return completed
}

// lender is a template of a real machine and the part that it belongs to.
type lender struct {
	Template
	memory float64
	part   int
}

func lendersByKind(seen []Template, o Options) map[string][]lender {
	k := keys{options: o}
	all := map[string][]lender{}
	for part, members := range partition(seen, o) {
		for _, member := range members {
			t := seen[member]
			k.key = k.key[:0]
			k.addKind(t)
			all[string(k.key)] = append(all[string(k.key)], lender{t, memory(t), part})
		}
	}
	return all
}

// chooseLender returns the one nearest in memory, then the first by name.
func chooseLender(t Template, all []lender, o Options) (lender, bool) {
	wanted := memory(t)
	var best lender
	found := false
	for _, l := range all {
		if !within(wanted, l.memory, o.MemoryRatio) {
			continue
		}
		if found && l.part != best.part {
			return lender{}, false
		}
		if !found || cmp.Or(cmp.Compare(distance(l.memory, wanted), distance(best.memory, wanted)), cmp.Compare(l.Name, best.Name)) < 0 {
			best, found = l, true
		}
	}
	return best, found
}

func memory(t Template) float64 { return amount(t.Capacity, corev1.ResourceMemory) }

func distance(x, y float64) float64 { return max(x, y) - min(x, y) }
