// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/daemon"
	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// probed is the API server, as a program probes it.
func probed(config *rest.Config) *reachability.Cluster {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return reachability.New("control", probe(config), reachability.Options{})
}

// aware is the controller beside a probe of its API server, as in its process.
func aware(ctx context.Context, config *rest.Config) error {
	return besideProbe(ctx, config, probed(config))
}

// elected is the same, for as long as its process has the lease. It starts again after that.
func elected(ctx context.Context, config *rest.Config) error {
	leases := rest.CopyConfig(config)
	leases.QPS, leases.Timeout = -1, 5*time.Second
	client := kubernetes.NewForConfigOrDie(leases)
	for life := 1; ctx.Err() == nil; life++ {
		cluster := probed(config)
		lease := daemon.Lease{Namespace: ns, Name: "balancer", Identity: fmt.Sprint("balancer-", life), Renewed: cluster.WatchedUntil}
		_ = daemon.Elect(ctx, client, lease, func(ctx context.Context) error { return besideProbe(ctx, config, cluster) }) // it was lost
		time.Sleep(5 * time.Second)
	}
	return nil
}

func besideProbe(ctx context.Context, config *rest.Config, cluster *reachability.Cluster) error {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		ended <- cluster.Run(ctx)
	}()
	err := controller(Options{Cluster: cluster})(ctx, config)
	cancel()
	<-ended
	return err
}

var _ storm.Program = aware

// silencedEarly has the API server fall silent while the pods of one of two targets do not start, before they are late.
func (c *cluster) silencedEarly(program storm.Program) {
	GinkgoHelper()
	c.deploy("a", 0)
	c.deploy("b", 0)
	c.set(func() { c.out["a"] = true })
	c.Start("balancer", program)
	time.Sleep(time.Minute)
	c.balance("shop", 10, builders.Shares(50, 50), "a", "b")
	time.Sleep(20 * time.Second)
	Expect(c.sizes("a", "b")).To(Equal("5/5"))
	c.Silence(true, "balancer")
}

var _ = Describe("While the API server is silent", func() {
	It("no target falls behind whose pods have started meanwhile", func() {
		play(func(c *cluster) {
			c.silencedEarly(aware)
			c.set(func() { c.out["a"] = false })
			time.Sleep(10 * time.Minute)
			before := len(c.Writes())
			c.Silence(false, "balancer")
			time.Sleep(10 * time.Minute)
			Expect(c.sizes("a", "b")).To(Equal("5/5"))
			Expect(c.writes(before)).NotTo(ContainElement(HavePrefix("scale")))
		})
	})

	DescribeTable("no time passes for pods that could not start meanwhile, and that start afterwards", func(program storm.Program) {
		play(func(c *cluster) {
			c.silencedEarly(program)
			c.change("shop", func(b *v1alpha1.Balancer) { b.Spec.Policy.Fallback.StartupTimeoutSeconds = ptr.To[int32](300) })
			time.Sleep(10 * time.Minute)
			before := len(c.Writes())
			c.Silence(false, "balancer")
			time.Sleep(4 * time.Minute)
			c.set(func() { c.out["a"] = false })
			time.Sleep(10 * time.Minute)
			Expect(c.sizes("a", "b")).To(Equal("5/5"))
			Expect(c.writes(before)).NotTo(ContainElement(HavePrefix("scale")))
		})
	},
		Entry("where the process goes on", aware),
		Entry("where the process loses its lease", elected),
	)

	It("a target that went out of order is noticed once it answers, without another event", func() {
		play(func(c *cluster) {
			c.silencedEarly(aware)
			time.Sleep(10 * time.Minute)
			Expect(c.sizes("a", "b")).To(Equal("5/5"))
			c.Silence(false, "balancer")
			time.Sleep(3 * time.Minute)
			Expect(c.sizes("a", "b")).To(Equal("5/10"))
		})
	})
})
