// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"fmt"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/pkg/reserve"
)

// kinds are the machines that the walk puts together: every mark with every phase, and what else tells them apart.
var kinds = func() []Machine {
	var all []Machine
	for _, reserve := range []bool{false, true} {
		m := running(reserve)
		all = append(all, m, with(m, func(m *Machine) { m.First = true }),
			with(m, func(m *Machine) { m.Named = true }),
			with(m, func(m *Machine) { m.Protected = true }),
			with(m, func(m *Machine) { m.Phase, m.Protected = mcm.MachineFailed, true }),
			with(m, func(m *Machine) { m.Deleted = true }),
			with(m, func(m *Machine) { m.HasProviderID, m.Registered, m.Phase = false, false, "" }),
			with(m, func(m *Machine) { m.Pods = 1 }))
		for _, phase := range []mcm.MachinePhase{mcm.MachinePending, mcm.MachineUnknown, mcm.MachineFailed,
			mcm.MachineCrashLoopBackOff, mcm.MachineTerminating, mcm.MachineAvailable} {
			all = append(all, with(m, func(m *Machine) { m.Phase = phase }))
		}
	}
	return append(all, with(running(false), func(m *Machine) { m.Phase, m.Pods = mcm.MachineUnknown, 1 }))
}()

func with(m Machine, change func(*Machine)) Machine {
	change(&m)
	return m
}

// states calls visit with every choice of up to n kinds; the order is the machines' age.
func states(n int, chosen []Machine, from int, visit func([]Machine)) {
	visit(chosen)
	if n == 0 {
		return
	}
	for i, m := range kinds[from:] {
		states(n-1, append(chosen[:len(chosen):len(chosen)], m), from+i, visit)
	}
}

// excuse says whether the facts bear out why a plan does not have S = R and V = X.
func excuse(w *world, p Plan) bool {
	var odd int
	for _, m := range w.view.Machines {
		if m.Protected || m.First || m.Reserve && m.Busy() {
			odd++
		}
	}
	r := p.Summary
	switch {
	case r.Serving == w.view.Replicas && r.Reserve == wanted(w.view, w.view.Replicas) && r.Ready == r.Reserve:
		return true
	case r.Reason == Complete || r.Reason == NotWanted || r.Reason == AtMax:
		return false
	case r.Reason == NotReady:
		return r.Ready < r.Reserve && odd > 0
	}
	return odd > 0
}

var _ = Describe("Every small state", func() {
	It("comes to rest with S = R and V = X, or says why not", func() {
		began, walked, seen := time.Now(), 0, 0
		states(4, nil, 0, func(machines []Machine) {
			for _, most := range []int{Unbounded, 4} {
				for n := range 4 * 3 * 3 {
					if seen++; seen%*every == 0 {
						walked++
						walk(machines, n%4, n/4%3, n/12, most)
					}
				}
			}
		})
		AddReportEntry("walked", fmt.Sprintf("%d of %d states in %s", walked, seen, time.Since(began).Round(time.Millisecond)))
		Expect(walked).To(BeNumerically(">=", seen/(*every)))
	})
})

func walk(machines []Machine, r, x, a, most int) {
	w := newWorld(r, x, a, most)
	for _, m := range machines {
		w.add(m)
	}
	plan, rested := w.settle()
	if rested && excuse(w, plan) && w.broken == nil {
		return
	}
	var from strings.Builder
	for _, m := range machines {
		fmt.Fprintf(&from, "  %+v\n", m)
	}
	Fail(fmt.Sprintf("R %d, X %d, A %d, max %d\n%s\n%s\nrested %t, broken %v\n%+v\n%+v", r, x, a, most, from.String(),
		strings.Join(w.log, "\n"), rested, w.broken, plan, w.view))
}
