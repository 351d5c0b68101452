// SPDX-License-Identifier: Apache-2.0

//go:build !race

package lens_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/mcm"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// twinPool is a pool with two instances of the controllers, of which one leads, or two for a moment.
type twinPool struct {
	*reservePool
	twins []*storm.Process
	mu    sync.Mutex
}

func newTwinPool(o sim.Options) *twinPool {
	w := storm.NewApart(o)
	p := &twinPool{reservePool: &reservePool{pool: &pool{World: w}}}
	p.user = versioned.NewForConfigOrDie(p.ConfigFor("user"))
	look := func(ctx context.Context, inner versioned.Interface) mcm.Lens { return throughViews(ctx, inner, p.bear) }
	first, second := p.Twins("controllers", controllers(look))
	p.twins = []*storm.Process{first, second}
	p.startMachines()
	return p
}

// bear is asked by both instances.
func (p *twinPool) bear(b view.Creation) *api.Reserve {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reservePool.bear(b)
}

// restore puts a backup in the place of what the control cluster stores. Its watchers end, as our daemons do, and start anew.
func (p *twinPool) restore(backup *sim.Snapshot) {
	p.Control.Restore(backup)
	for _, process := range append([]*storm.Process{p.makers}, p.twins...) {
		process.CrashFor(20 * time.Second)
	}
}

var _ = Describe("Two instances of MCM's controllers and a reserve, in a storm", func() {
	It("come to rest with what is wanted, also after a backup was restored, and then write nothing", func() {
		storm.Seeds(suite, 6, func(seed uint64) {
			p := newTwinPool(sim.Options{Seed: seed})
			defer p.End()
			p.Require("lease lost", "restore")
			p.WatchLists(false, "controllers") // a list may be stale, a watch that begins with all that is stored is not
			p.Storm(rand.New(rand.NewPCG(seed, 0)), p.twins...)
			settled := func(wanted int) {
				GinkgoHelper()
				Expect(p.Settle(quiet, 12*time.Hour)).To(Succeed())
				serving, reserve := p.names()
				Expect(len(serving) + len(reserve)).To(Equal(wanted))
			}
			p.create(3, "2")
			settled(5)
			backup := p.Control.Snapshot()
			p.scale(5)
			settled(7)
			p.restore(backup)
			settled(5)
			p.patch(`{"spec":{"template":{"spec":{"nodeTemplate":{"metadata":{"labels":{"new":"label"}}}}}}}`)
			settled(5)
			for _, m := range p.machines() {
				Expect(m.Spec.NodeTemplateSpec.Labels).To(HaveKey("new"), "a write was forgotten")
			}

			p.Calm()
			settled(5)
			since := len(p.Writes())
			time.Sleep(24 * time.Hour)
			Expect(storm.Loud(p.Writes()[since:])).To(BeEmpty())
		})
	})
})
