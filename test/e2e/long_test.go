// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/localcluster"
)

var _ = Describe("In the long run, a pool", Label("long"), func() {
	It("survives an outage of its zone of three minutes in which a machine fails", func(ctx context.Context) {
		p := newPool(ctx, "long-outage", 3, repairedAfter(5*time.Second))
		p.settles(ctx, 3)
		setFault(ctx, "zones", p.name, "outage: true")
		victim := namesOf(p.machines(ctx))[0]
		setFault(ctx, "machines", victim, "dead: true")
		p.scale(ctx, 5)
		p.never(ctx, 3*time.Minute, "a machine made in a zone that can make none", func(serving int) bool { return serving > 3 })
		setFault(ctx, "zones", p.name, "")
		p.settles(ctx, 5)
	})

	It("survives an outage of the API server of two minutes while it grows", Serial, func(ctx context.Context) {
		p := newPool(ctx, "long-apiserver", 3)
		p.settles(ctx, 3)
		kept := namesOf(p.machines(ctx))
		p.scale(ctx, 12)
		Expect(cluster.Process(localcluster.APIServer).Kill()).To(Succeed())
		sleep(ctx, 2*time.Minute)
		Expect(cluster.Process(localcluster.APIServer).Start()).To(Succeed())
		p.settlesWithRestarts(ctx, 12)
		Expect(namesOf(p.machines(ctx))).To(ContainElements(kept), "no machine was given up for our own outage")
	})

	It("always ends with the desired numbers, after ten minutes of scaling, failing machines, outages and kills", Serial, func(ctx context.Context) {
		chance := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 1))
		p := newPool(ctx, "soak", 5, repairedAfter(5*time.Second))
		p.settles(ctx, 5)
		wanted, end := int32(5), time.Now().Add(10*time.Minute)
		for time.Now().Before(end) {
			switch chance.IntN(5) {
			case 0, 1:
				wanted = chance.Int32N(20)
				By(fmt.Sprintf("scaling to %d", wanted))
				p.scale(ctx, wanted)
			case 2:
				if names := namesOf(p.machines(ctx)); len(names) > 0 {
					victim := names[chance.IntN(len(names))]
					By("letting " + victim + " die")
					setFault(ctx, "machines", victim, "dead: true")
				}
			case 3:
				By("taking the zone's capacity away for a while")
				setFault(ctx, "zones", p.name, "outage: true")
				sleep(ctx, time.Duration(chance.Int64N(int64(10*time.Second))))
				setFault(ctx, "zones", p.name, "")
			case 4:
				process := []string{mcm, machineController}[chance.IntN(2)]
				By("killing " + process)
				Expect(cluster.Process(process).Kill()).To(Succeed())
				Expect(cluster.Process(process).Start()).To(Succeed())
			}
			sleep(ctx, time.Duration(chance.Int64N(int64(15*time.Second))))
		}
		p.settlesWithRestarts(ctx, wanted)
		p.never(ctx, time.Minute, "a change at rest", func(serving int) bool { return serving != int(wanted) })
	})
})

// never looks at how many machines serve, for a while, and fails when it sees what must not be.
func (p pool) never(ctx context.Context, during time.Duration, what string, seen func(serving int) bool) {
	GinkgoHelper()
	Consistently(func(g Gomega) {
		list, err := p.machines(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(seen(len(serving(list)))).To(BeFalse(), "%s: %d serve", what, len(serving(list)))
	}, during, time.Second).Should(Succeed())
}

// sleep lets time pass: the length of an outage is part of the story, not a wait for something to happen.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
