// SPDX-License-Identifier: Apache-2.0

//go:build !race

package oracle_test

import (
	"fmt"
	"strings"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/oracle"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/manager"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

const (
	few, many = 4, 7
	limit     = 1000 // machines made in one round, after which it is stopped
)

// surplus is how the rounds of a scenario went.
type surplus struct {
	rounds, bad, worst int
	capped             bool
}

func (s surplus) String() string {
	most := fmt.Sprint(s.worst)
	if s.capped {
		most = ">= " + most
	}
	return fmt.Sprintf("%2d of %2d rounds, at most %s machines made", s.bad, s.rounds, most)
}

// scaleRounds scales a MachineDeployment up and down again and counts what was made for the three machines
// wanted in addition.
func scaleRounds(rounds int, late, write time.Duration, program storm.Program) (result surplus) {
	storm.Bubble(suite, func() {
		w, created := storm.NewWorld(sim.Options{Seed: 1}), 0
		defer w.End()
		w.OnWrite(func(one sim.Write) error {
			if one.Verb != "create" || one.Resource != "machines" {
				return nil
			}
			if created++; created > limit {
				return apierrors.NewForbidden(mcmapi.Resource("machines"), "", fmt.Errorf("enough: %d", limit))
			}
			return nil
		})
		user := versioned.NewForConfigOrDie(w.ConfigFor("user")).MachineV1alpha1().MachineDeployments(fixture.Namespace)
		waker := world.NewWaker(w)
		cloud := &world.Cloud{Waker: waker, Boot: 20 * time.Second, Drain: 5 * time.Second}
		w.Start("cloud", world.Actor{Waker: waker, Delay: time.Second, Reconcile: cloud.Reconcile}.Run)
		w.Start("controllers", program)
		w.Latency(write / 2)
		settled := func() { Expect(w.Settle(11*time.Minute, 8*time.Hour)).To(Succeed()) }
		machines := func() int { return len(w.Objects(mcmapi.SchemeGroupVersion.WithResource("machines"))) }
		world.Create(user, fixture.MachineDeployment("pool", few))
		settled()
		if late > 0 {
			w.Lag("machines", sim.Constantly(late), "controllers")
		}
		for ; result.rounds < rounds && !result.capped; result.rounds++ {
			created = 0
			world.Patch(user, "pool", `{"spec":{"replicas":%d}}`, many)
			settled()
			made := min(created, limit)
			result.capped = made == limit // from now on, what is missing is refused, too
			if made > many-few {
				result.bad++
			}
			result.worst = max(result.worst, made)
			if !result.capped {
				Expect(machines()).To(Equal(many))
				world.Patch(user, "pool", `{"spec":{"replicas":%d}}`, few)
				settled()
				Expect(machines()).To(Equal(few))
			}
		}
	})
	return result
}

var _ = Describe("Over-creation", func() {
	It("is what stock machine-controller-manager does when its watch is late, and not what ours does", func() {
		table := &strings.Builder{}
		fmt.Fprintf(table, "\nScaling %d -> %d: rounds with more than the %d machines wanted\n\n%-38s %-48s %s\n", few, many, many-few, "", "stock", "Evenkeel")
		for _, row := range []struct {
			name        string
			rounds      int
			late, write time.Duration
		}{
			{"watch at once, writes in microseconds", 15, 0, 0},
			{"watch at once, writes take 5 ms", 15, 0, 5 * time.Millisecond},
			{"watch 10 ms late, writes take 5 ms", 15, 10 * time.Millisecond, 5 * time.Millisecond},
			{"watch 50 ms late, writes take 5 ms", 15, 50 * time.Millisecond, 5 * time.Millisecond},
			{"watch 5 s late, writes take 5 ms", 3, 5 * time.Second, 5 * time.Millisecond},
		} {
			plain := scaleRounds(row.rounds, row.late, row.write, oracle.Stock.Program)
			ours := scaleRounds(row.rounds, row.late, row.write, manager.Program(machinetaint.Settings{}))
			fmt.Fprintf(table, "%-38s %-48s %s\n", row.name, plain, ours)
			Expect(ours.bad).To(BeZero(), row.name)
			Expect(ours.worst).To(Equal(many-few), row.name)
			if row.late >= 50*time.Millisecond {
				Expect(plain.bad).NotTo(BeZero(), "the comparison compares nothing: "+row.name)
			}
		}
		AddReportEntry("over-creation", ReportEntryVisibilityAlways, table.String())
	})
})
