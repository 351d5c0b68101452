// SPDX-License-Identifier: Apache-2.0

package capacitybuffer_test

import (
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	. "github.com/evenkeel/evenkeel/test/builders/capacitybuffer"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var _ = DescribeTable("A buffer is served as soon as a kind is seen after all others", func(late string) {
	const lag = 7 * time.Minute // all others are at rest by then, and the next look without an event comes later
	storm.Bubble(suite, func() {
		c := newCluster(sim.Options{Seed: 1})
		defer c.End()
		c.Start("buffers", controller)
		Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
		c.Lag(late, sim.Constantly(lag), "buffers")
		c.pool("a", 9)
		c.deploy("web", 10)
		c.create(percent("web", "web", 20))
		time.Sleep(lag - time.Minute)
		Expect(Standing(c.buffer("web"))).NotTo(HaveSuffix("Ready=Complete"))
		c.Lag(late, nil, "buffers") // of what is written from now on
		time.Sleep(2 * time.Minute)
		Expect(Standing(c.buffer("web"))).To(HaveSuffix("Ready=Complete"))
	})
},
	Entry(nil, "machinedeployments"),
	Entry(nil, "machinesets"),
	Entry(nil, "machines"),
	Entry(nil, "machineclasses"),
	Entry(nil, "deployments"),
	Entry(nil, "capacitybuffers"),
)

var _ = It("A sync that takes long is followed by a rest of four times as long, however often users change something", func() {
	storm.Bubble(suite, func() {
		c := newCluster(sim.Options{Seed: 1})
		defer c.End()
		c.pool("a", 9)
		c.deploy("web", 10)
		c.create(percent("web", "web", 20))
		var syncs atomic.Int32
		c.Start("buffers", slow(10*time.Second, &syncs))
		Expect(c.Settle(5*time.Minute, time.Hour)).To(Succeed())
		before := syncs.Load()
		for i := range int32(200) {
			c.scale("web", 10+i%2)
			time.Sleep(time.Second)
		}
		Expect(syncs.Load() - before).To(BeNumerically("~", 4, 1))
	})
})

var _ = Describe("After a silence, while watches have yet to catch up", func() {
	It("no machines are requested for a buffer that is gone", func() {
		storm.Bubble(suite, func() {
			c, _ := fifthOfWeb()
			defer c.End()
			before := len(c.Writes())
			c.Target.Silence(true, "buffers")
			time.Sleep(time.Minute)
			c.Lag("capacitybuffers", sim.Constantly(90*time.Second), "buffers")
			c.remove("web")
			c.scale("web", 50)
			c.Target.Silence(false, "buffers")
			time.Sleep(10 * time.Minute)
			Expect(c.writes(before)).To(ConsistOf("reserves capacity-buffers.a"))
		})
	})

	It("no room counts on a machine that accepts no pods any longer", func() {
		withFreeRoom(func(*cluster) {}, func(c *cluster) {
			before := len(c.Writes())
			c.Target.Silence(true, "buffers")
			time.Sleep(time.Minute)
			c.Lag("nodes", sim.Constantly(90*time.Second), "buffers")
			world.Patch(c.core.CoreV1().Nodes(), "serving", `{"spec":{"unschedulable":true}}`)
			c.Target.Silence(false, "buffers")
			time.Sleep(20 * time.Second)
			c.change("web", func(b *v1beta1.CapacityBuffer) { b.Spec.Percentage = ptr.To[int32](10) }) // its event arrives at once
			time.Sleep(time.Minute)
			Expect(c.writes(before)).To(BeEmpty())
			time.Sleep(time.Minute)
			Expect(c.sum()).To(Equal(1))
		})
	})

	It("no machines are requested of a MachineDeployment that is gone", func() {
		storm.Bubble(suite, func() {
			c, _ := fifthOfWeb()
			defer c.End()
			before := len(c.Writes())
			c.Control.Silence(true, "buffers")
			time.Sleep(time.Minute)
			c.Lag("machinedeployments", sim.Constantly(90*time.Second), "buffers")
			world.Delete(c.ours.MachineV1alpha1().MachineDeployments(Namespace), "a")
			c.scale("web", 50)
			c.Control.Silence(false, "buffers")
			time.Sleep(20 * time.Second)
			world.Create(c.ours.AutoscalingV1alpha1().Reserves(Namespace), &autoscaling.Reserve{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: Namespace}}) // its event arrives at once
			time.Sleep(time.Minute)
			Expect(c.writes(before)).To(BeEmpty())
			time.Sleep(10 * time.Minute)
			Expect(c.Objects(reserveGVR)).To(HaveLen(1))
		})
	})
})

var _ = It("The metrics count buffers of the strategy by their condition, chunks and writes", func() {
	storm.Bubble(suite, func() {
		c := newCluster(sim.Options{Seed: 1})
		defer c.End()
		c.pool("a", 9)
		c.deploy("web", 10)
		registry := prometheus.NewRegistry()
		c.create(percent("web", "web", 20))
		other := percent("other", "web", 50)
		other.Spec.ProvisioningStrategy = ptr.To(v1beta1.StrategyActive)
		c.create(other)
		c.Start("buffers", counting(registry))
		Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
		families, err := registry.Gather()
		Expect(err).NotTo(HaveOccurred())
		values := map[string]float64{}
		for _, f := range families {
			for _, m := range f.Metric {
				name := f.GetName()
				for _, label := range m.Label {
					name += " " + label.GetValue()
				}
				values[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
		Expect(values).To(And(
			HaveKeyWithValue("evenkeel_capacitybuffer_buffers true", 1.0), HaveKeyWithValue("evenkeel_capacitybuffer_buffers false", 0.0),
			HaveKeyWithValue("evenkeel_capacitybuffer_chunks", 2.0),
			HaveKeyWithValue("evenkeel_capacitybuffer_writes_total done reserve", 1.0), HaveKeyWithValue("evenkeel_capacitybuffer_writes_total done status", BeNumerically(">=", 1)),
		))
	})
})
