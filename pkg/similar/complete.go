// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

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
