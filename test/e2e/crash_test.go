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

// crowd is how many machines come up while a process is killed.
const crowd = 50

var _ = Describe("A process killed with -9 while 50 machines come up", Serial, func() {
	killed := uint64(0)
	kill := func(ctx context.Context, process string) {
		killed++
		chance := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), killed))
		p := newPool(ctx, fmt.Sprintf("killed-%d", killed), 0)
		p.settles(ctx, 0)
		p.scale(ctx, crowd)
		// A scale-up of this size takes some seconds; the moment is any of them.
		moment := time.Duration(chance.Int64N(int64(4 * time.Second)))
		By(fmt.Sprintf("killing %s after %s", process, moment))
		select {
		case <-time.After(moment):
		case <-ctx.Done():
		}
		Expect(cluster.Process(process).Kill()).To(Succeed())
		Expect(cluster.Process(process).Start()).To(Succeed())
		p.settlesWithRestarts(ctx, crowd)
		p.scale(ctx, 0)
		p.settlesWithRestarts(ctx, 0)
	}
	DescribeTable("leaves 50 machines, no orphan node and no orphan VM", kill,
		Entry(nil, mcm), Entry(nil, machineController))
	DescribeTable("leaves 50 machines, no orphan node and no orphan VM, for each part of the control plane", Label("long"), kill,
		Entry(nil, localcluster.Etcd), Entry(nil, localcluster.APIServer), Entry(nil, localcluster.ControllerManager),
		Entry(nil, localcluster.Scheduler), Entry(nil, localcluster.Kwok),
		Entry("again: "+mcm, mcm), Entry("again: "+machineController, machineController))
})

// settlesWithRestarts waits like settles, and starts what has ended, as a kubelet would: a controller that loses its
// lease ends itself.
func (p pool) settlesWithRestarts(ctx context.Context, replicas int32) {
	GinkgoHelper()
	Eventually(func() error {
		for _, process := range cluster.Processes() {
			if !process.Running() {
				if err := process.Start(); err != nil {
					return err
				}
			}
		}
		return p.settled(ctx, replicas)
	}, 10*time.Minute).Should(Succeed())
}
