// SPDX-License-Identifier: Apache-2.0

//go:build !race

package lens_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	machineclient "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/pkg/lens"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/mcm"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var machinesResource = machinev1alpha1.SchemeGroupVersion.WithResource("machines")

// throughLens is how our binary gives the controllers their view; stock gives them the plain one.
func throughLens(ctx context.Context, inner versioned.Interface) mcm.Lens {
	return lens.New(ctx, inner, lens.Options{})
}

var stock func(context.Context, versioned.Interface) mcm.Lens

// pool is a MachineDeployment whose controllers look at it through a lens, or not.
type pool struct {
	*storm.World
	user    versioned.Interface
	process *storm.Process
	makers  *storm.Process
	// creates are the machines that the controllers have asked for.
	creates int
}

func newPool(o sim.Options, wrap func(context.Context, versioned.Interface) mcm.Lens) *pool {
	return onWorld(storm.NewWorld(o), wrap)
}

func onWorld(w *storm.World, wrap func(context.Context, versioned.Interface) mcm.Lens) *pool {
	p := &pool{World: w}
	p.user = versioned.NewForConfigOrDie(p.ConfigFor("user"))
	p.process = p.Start("controllers", controllers(wrap))
	p.startMachines()
	return p
}

// controllers are machine-controller-manager's.
func controllers(wrap func(context.Context, versioned.Interface) mcm.Lens) storm.Program {
	return func(ctx context.Context, config *rest.Config) error {
		return mcm.RunControllers(ctx, storm.Control(config), storm.Target(config), wrap)
	}
}

// startMachines starts what makes the VMs.
func (p *pool) startMachines() {
	p.makers = p.Start("machines", func(ctx context.Context, config *rest.Config) error {
		return mcm.Machines{
			Boot:  func(*machinev1alpha1.Machine) time.Duration { return 20 * time.Second },
			Drain: func(*machinev1alpha1.Machine) time.Duration { return 5 * time.Second },
		}.Run(ctx, storm.Control(config), storm.Target(config))
	})
}

func (p *pool) deployments() machineclient.MachineDeploymentInterface {
	return p.user.MachineV1alpha1().MachineDeployments(mcm.Namespace)
}

func (p *pool) patch(format string, args ...any) {
	GinkgoHelper()
	world.Patch(p.deployments(), "pool", format, args...)
}

func (p *pool) scale(replicas int) {
	GinkgoHelper()
	p.patch(`{"spec":{"replicas":%d}}`, replicas)
}

func (p *pool) settle() {
	GinkgoHelper()
	Expect(p.Settle(time.Minute, 4*time.Hour)).To(Succeed())
}

// capAt refuses machines from that number on, so that a run away ends.
func (p *pool) capAt(limit int) {
	p.OnWrite(func(w sim.Write) error {
		if w.Verb != "create" || w.Resource != "machines" {
			return nil
		}
		if p.creates++; p.creates > limit {
			return apierrors.NewForbidden(machineResource, "", fmt.Errorf("enough: %d", limit))
		}
		return nil
	})
}

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

const (
	few, many = 4, 7
	limit     = 1000 // machines made in one round, after which it is stopped
)

// scaleRounds scales a pool up and down again and counts what was made for the three machines wanted in addition.
func scaleRounds(rounds int, late time.Duration, write time.Duration, wrap func(context.Context, versioned.Interface) mcm.Lens) surplus {
	var result surplus
	storm.Bubble(suite, func() {
		p := newPool(sim.Options{Seed: 1}, wrap)
		defer p.End()
		p.capAt(limit)
		p.Latency(write / 2)
		world.Create(p.deployments(), fixture.MachineDeployment("pool", few))
		p.settle()
		if late > 0 {
			p.Lag("machines", sim.Constantly(late), "controllers")
		}
		for range rounds {
			p.creates = 0
			result.rounds++
			p.scale(many)
			p.settle()
			made := min(p.creates, limit)
			result.capped = result.capped || made == limit
			if made > many-few {
				result.bad++
			}
			result.worst = max(result.worst, made)
			if result.capped {
				break // from now on, what is missing is refused, too
			}
			Expect(p.Objects(machinesResource)).To(HaveLen(many))
			p.scale(few)
			p.settle()
			Expect(p.Objects(machinesResource)).To(HaveLen(few))
		}
	})
	return result
}

var _ = Describe("Over-creation", func() {
	It("is what stock machine-controller-manager does when its watch is late, and not behind the lens", func() {
		table := &strings.Builder{}
		fmt.Fprintf(table, "\nScaling %d -> %d: rounds with more than the %d machines wanted\n\n%-38s %-48s %s\n", few, many, many-few, "", "stock", "behind the lens")
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
			plain := scaleRounds(row.rounds, row.late, row.write, stock)
			ours := scaleRounds(row.rounds, row.late, row.write, throughLens)
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
