// SPDX-License-Identifier: Apache-2.0

//go:build !race

package lens_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// census follows the machines that are not leaving, write by write.
type census struct {
	live       map[string]bool
	most, made int
}

func (c *census) follow(w sim.Write) error {
	if w.Resource != "machines" || w.NoOp() {
		return nil
	}
	switch w.Verb {
	case "create":
		c.live[w.Name] = true
		c.made++
	case "delete":
		delete(c.live, w.Name)
	}
	c.most = max(c.most, len(c.live))
	return nil
}

// phase begins to count anew.
func (c *census) phase() {
	c.most, c.made = len(c.live), 0
}

// quiet is longer than MCM waits between two attempts at anything. It looks at everything every ten
// minutes, and waits up to 1,000 seconds after a failure; under faults, several attempts fail in a row.
const quiet = 30 * time.Minute

var _ = Describe("MCM's controllers behind the lens, in a storm", func() {
	It("make no machine and remove none beyond what is wanted, come to rest, and then write nothing", func() {
		over := map[int]int{}
		storm.Seeds(suite, 6, func(seed uint64) {
			p := onWorld(storm.NewApart(sim.Options{Seed: seed}), throughLens)
			defer p.End()
			c := &census{live: map[string]bool{}}
			p.AfterWrite(c.follow)
			p.Storm(rand.New(rand.NewPCG(seed, 0)), p.process)
			settled := func(wanted int) {
				GinkgoHelper()
				Expect(p.Settle(quiet, 12*time.Hour)).To(Succeed())
				Expect(c.live).To(HaveLen(wanted))
				Expect(p.Objects(machinesResource)).To(HaveLen(wanted))
			}

			world.Create(p.deployments(), fixture.MachineDeployment("pool", 4))
			settled(4)
			for _, wanted := range []int{7, 2, 5} {
				before := len(c.live)
				c.phase()
				p.scale(wanted)
				settled(wanted)
				Expect(c.made).To(Equal(max(0, wanted-before)), "%d -> %d", before, wanted)
			}

			c.phase()
			p.patch(`{"spec":{"template":{"spec":{"class":{"name":"other"}}}}}`)
			settled(5)
			over[c.most-5]++

			p.Calm()
			settled(5)
			since := len(p.Writes())
			time.Sleep(24 * time.Hour)
			Expect(storm.Loud(p.Writes()[since:])).To(BeEmpty())
		})
		AddReportEntry("machines beyond replicas in a rollout with maxSurge 1: rollouts", ReportEntryVisibilityAlways, fmt.Sprint(over))
	})

	It("end the same wherever they are killed, with a watch later than any write waits", func() {
		made := 0
		Expect(storm.CrashPoints(suite, storm.Scenario{
			Options: sim.Options{Seed: 1},
			Story: func(w *storm.World) {
				p := onWorld(w, throughLens)
				c := &census{live: map[string]bool{}}
				w.AfterWrite(c.follow)
				defer func() { made = c.made }()
				w.Lag("machines", sim.Constantly(3*time.Second), "controllers")
				world.Create(p.deployments(), fixture.MachineDeployment("pool", 4))
				Expect(w.Settle(quiet, 12*time.Hour)).To(Succeed())
				p.scale(7)
				Expect(w.Settle(quiet, 12*time.Hour)).To(Succeed())
			},
			End: func(w *storm.World) any {
				return fmt.Sprintf("%d machines, %d made", len(w.Objects(machinesResource)), made)
			},
		}, "controllers")).To(Succeed())
		Expect(made).To(Equal(7))
	})
})
