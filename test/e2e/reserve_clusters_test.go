// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/test/localcluster"
)

// rates are Gardener's.
var rates = []string{"--kube-api-qps=150", "--kube-api-burst=200"}

// another is a cluster beside that of the suite, until the end of the spec.
func another(ctx context.Context, o localcluster.Options) *localcluster.Cluster {
	GinkgoHelper()
	o.Out, o.UnsafeNoFsync, o.Fresh = GinkgoWriter, true, true
	c, err := localcluster.Start(ctx, o)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(c.Reset()).To(Succeed()) })
	return c
}

// moveTo has all helpers speak to other clusters until the end of the spec, which has to be Serial.
func moveTo(seed, target *localcluster.Cluster) {
	GinkgoHelper()
	before := config
	connectTo(seed.Config())
	kube = kubernetes.NewForConfigOrDie(target.Config())
	DeferCleanup(func() { connectTo(before) })
}

func runProgram(ctx context.Context, c *localcluster.Cluster, program localcluster.Program) {
	GinkgoHelper()
	_, err := c.RunProgram(ctx, program)
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("In the long run, a reserve", Label("long", "ours"), Serial, func() {
	It("has its Machines in one cluster and its Nodes in another", func(ctx context.Context) {
		apart(ctx, "e2e-apart")
		p := newPool(ctx, "apart", 2, excess(1))
		p.rests(ctx, 2, 1, "Complete")
		p.work(ctx, 2)
		p.scale(ctx, 3)
		p.moreWork(ctx, 3)
		p.rests(ctx, 3, 1, "Complete")
		Expect(p.busy(ctx)).To(ConsistOf(p.serving(ctx)))
		p.want(ctx, 0)
		p.rests(ctx, 3, 0, "")
		Expect(p.busy(ctx)).To(ConsistOf(p.serving(ctx)))
	})

	It("is removed before stock machine-controller-manager takes over, which then deletes nothing", func(ctx context.Context) {
		c := another(ctx, localcluster.Options{Name: "e2e-leaving"})
		Expect(c.Apply(ctx, "kubernetes/crds", "kubernetes/policies")).To(Succeed())
		runProgram(ctx, c, localcluster.Program{Name: machineController, Flags: rates})
		runProgram(ctx, c, localcluster.Program{Name: mcm, Flags: rates})
		moveTo(c, c)
		p := newPool(ctx, "leaving", 3, excess(2))
		p.rests(ctx, 3, 2, "Complete")
		p.work(ctx, 3)
		busy := p.busy(ctx)

		runProgram(ctx, c, localcluster.Program{Name: mcm, Flags: slices.Concat(rates, []string{"--drain-reserve"})})
		p.rests(ctx, 3, 0, "")
		Expect(p.busy(ctx)).To(Equal(busy))

		runProgram(ctx, c, localcluster.Program{Name: mcm, Package: stockMCM, Binary: "stock-" + mcm, Flags: rates})
		sleep(ctx, 30*time.Second)
		p.settles(ctx, 3)
		Expect(p.busy(ctx)).To(Equal(busy))
		p.scale(ctx, 4)
		p.settles(ctx, 4)
		Expect(p.busy(ctx)).To(Equal(busy))
	})
})
