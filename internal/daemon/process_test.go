// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/evenkeel/evenkeel/test/running"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/front"
)

var _ = Describe("A process", func() {
	process := func(f *front.Front) *Process {
		return &Process{Name: "daemon", Namespace: "garden", Lease: "daemon", Kubeconfig: f.Kubeconfig(), QPS: 7, Burst: 9}
	}

	It("gives up a request of the election that is not answered, and is ready until it leads", func(ctx SpecContext) {
		f := running.InFront(sim.New(sim.Options{}), "us")
		asked := 0
		f.Hang(front.Silent, func(string) bool { asked++; return asked > 1 })
		p, led := process(f), false
		election := Election{LeaderElect: true, LeaseDuration: 3 * time.Second, RenewDeadline: time.Second, RetryPeriod: 200 * time.Millisecond}
		Expect(p.Elect(ctx, election, nil, func(context.Context) error {
			led = true
			return p.Ready.Check()
		})).To(Succeed())
		Expect(led).To(BeTrue())
	}, SpecTimeout(20*time.Second))

	It("has clients with its name and limits, which give up what is not answered", func() {
		p := process(running.InFront(sim.New(sim.Options{}), "us"))
		config, err := p.Connect(p.Kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		Expect(config.UserAgent).To(HaveSuffix("/daemon"))
		Expect(config.Timeout).To(Equal(time.Minute))
		Expect([]float32{config.QPS, float32(config.Burst)}).To(Equal([]float32{7, 9}))
	})

	It("fails where a part of its work ends, unless it was told to end", func(ctx SpecContext) {
		Expect(new(Process).Lead(ctx, func(context.Context) error { return nil })).NotTo(Succeed())
		told, tell := context.WithCancel(ctx)
		Expect(new(Process).Lead(told, func(context.Context) error { tell(); return nil })).To(Succeed())
	})
})

var _ = DescribeTable("The flags of an election", func(lock string, duration, deadline, retry time.Duration, valid bool) {
	e := Election{LeaderElect: true, ResourceLock: lock, LeaseDuration: duration, RenewDeadline: deadline, RetryPeriod: retry}
	Expect(e.Validate() == nil).To(Equal(valid))
	e.LeaderElect = false
	Expect(e.Validate()).To(Succeed(), "there is none")
},
	Entry("are valid", resourcelock.LeasesResourceLock, 15*time.Second, 10*time.Second, 2*time.Second, true),
	Entry("name another lock", "configmaps", 15*time.Second, 10*time.Second, 2*time.Second, false),
	Entry("let another one lead before a renewal fails", resourcelock.LeasesResourceLock, 10*time.Second, 10*time.Second, 2*time.Second, false),
	Entry("do so once a Lease has dropped the fraction of a second", resourcelock.LeasesResourceLock, 10500*time.Millisecond, 10200*time.Millisecond, 2*time.Second, false),
	Entry("leave time for no second try", resourcelock.LeasesResourceLock, 15*time.Second, 10*time.Second, 10*time.Second, false),
	Entry("never pause", resourcelock.LeasesResourceLock, 15*time.Second, 10*time.Second, time.Duration(0), false),
)

var _ = Describe("Readiness", func() {
	It("is given with full caches, or while another one leads", func() {
		var r Readiness
		Expect(r.Check()).NotTo(Succeed())
		r.Wait()
		Expect(r.Check()).To(Succeed())
		r.Lead()
		Expect(r.Check()).NotTo(Succeed())
		r.Filled()
		Expect(r.Check()).To(Succeed())
	})
})

var _ = Describe("The endpoint", func() {
	It("is loopback outside of pods unless a flag is set", func() {
		GinkgoT().Setenv("KUBERNETES_SERVICE_HOST", "")
		Expect(Endpoint("", "0.0.0.0", false, 1)).To(Equal("127.0.0.1:1"))
		Expect(Endpoint("", "0.0.0.0", true, 1)).To(Equal("0.0.0.0:1"))
		Expect(Endpoint("10.0.0.1", "0.0.0.0", true, 1)).To(Equal("10.0.0.1:1"))
		GinkgoT().Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
		Expect(Endpoint("", "127.0.0.1", false, 1)).To(Equal("0.0.0.0:1"))
	})
})
