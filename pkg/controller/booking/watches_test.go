// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/internal/reachability"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// once has a request fail if it cannot be served now.
func once(r *provisioningv1.ProvisioningRequest) {
	r.Spec.Parameters = map[string]provisioningv1.Parameter{provisioningv1.NoRetryParameter: "true"}
}

var _ = Describe("A request", func() {
	DescribeTable("is served when a kind is seen after all others", func(late string, within time.Duration) {
		const lag = 22 * time.Minute // all others are at rest by then
		play(func(c *cluster) {
			c.Start("booking", controller)
			c.settle()
			c.Lag(late, sim.Constantly(lag), "booking")
			c.pool("a", 2)
			c.request("r", 2, forAnHour)
			time.Sleep(lag - time.Minute)
			Expect(c.booked()).To(BeEmpty())
			time.Sleep(time.Minute + within)
			Expect(c.booked()).To(Equal("a: r=2"))
		})
	},
		Entry(nil, "machinedeployments", time.Minute),
		Entry(nil, "machinesets", time.Minute),
		Entry(nil, "machines", time.Minute),
		Entry(nil, "machineclasses", 10*time.Minute),
		Entry(nil, "podtemplates", time.Minute),
		Entry(nil, "provisioningrequests", time.Minute),
	)

	It("is served once a DaemonSet leaves the room that its pods need", func() {
		play(func(c *cluster) {
			c.pool("a", 2)
			sets := c.core.AppsV1().DaemonSets(ns)
			agent := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent"}}
			agent.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("2")}}}}
			world.Create(sets, agent)
			c.Start("booking", controller)
			c.settle()
			c.request("r", 2, forAnHour)
			time.Sleep(time.Hour)
			Expect(c.states()).To(Equal("r="))
			world.Delete(sets, "agent")
			time.Sleep(11 * time.Minute)
			Expect(c.states()).To(Equal("r=Provisioned"))
		})
	})

	It("gives its machines back as soon as it is being deleted, whoever delays that", func() {
		play(func(c *cluster) {
			c.begin(3)
			c.request("r", 2, forAnHour, func(r *provisioningv1.ProvisioningRequest) { r.Finalizers = []string{"example.com/slow"} })
			time.Sleep(time.Minute)
			Expect(c.booked()).To(Equal("a: r=2"))
			c.remove("r")
			time.Sleep(time.Minute)
			Expect(c.booked()).To(BeEmpty())
		})
	})

	It("keeps its machines though a pod in another namespace uses a request of the same name", func() {
		play(func(c *cluster) {
			c.begin(3)
			c.request("r", 2, forAnHour)
			time.Sleep(time.Minute)
			c.hasNode("node")
			world.Create(c.core.CoreV1().Pods("team"), fixture.Pod("p", func(p *corev1.Pod) {
				p.Namespace, p.Annotations, p.Spec.NodeName = "team", map[string]string{provisioningv1.OldConsumeAnnotation: "r"}, "node"
			}))
			time.Sleep(time.Minute)
			Expect(c.booked()).To(Equal("a: r=2"))
		})
	})

	It("says which right is missing to serve it", func() {
		play(func(c *cluster) {
			c.pool("a", 3)
			c.Target.Trouble("podtemplates", sim.Trouble{Reads: 1, Only: []sim.Answer{sim.Forbidden}}, "booking")
			c.Start("booking", controller)
			c.settle()
			c.request("r", 2, forAnHour)
			time.Sleep(time.Minute)
			r := world.Stored[provisioningv1.ProvisioningRequest](c, requestGVR, jobs, "r")
			Expect(meta.FindStatusCondition(r.Status.Conditions, provisioningv1.ConditionProvisioned)).To(And(
				HaveField("Message", ContainSubstring("resources: [podtemplates]")), HaveField("ObservedGeneration", BeEquivalentTo(1))))
		})
	})
})

var _ = Describe("While a cluster does not answer", func() {
	It("nothing is booked for a request that may be gone", func() {
		play(func(c *cluster) {
			c.begin(1)
			c.request("r", 2, forAnHour)
			time.Sleep(time.Minute)
			before := len(c.Writes())
			c.Target.Silence(true, "booking")
			time.Sleep(2 * reachability.SilentAfter)
			c.remove("r")
			c.spare("a", 2)
			time.Sleep(10 * time.Minute)
			Expect(c.writes(before)).To(BeEmpty())
			c.Target.Silence(false, "booking")
			c.settle()
			Expect(c.writes(before)).To(BeEmpty())
		})
	})

	It("nothing is booked of a MachineDeployment that may be gone, until the watch has caught up", func() {
		play(func(c *cluster) {
			c.begin(2)
			before := len(c.Writes())
			c.Control.Silence(true, "booking")
			time.Sleep(time.Minute)
			c.Lag("machinedeployments", sim.Constantly(90*time.Second), "booking")
			world.Delete(c.ours.MachineV1alpha1().MachineDeployments(ns), "a")
			c.request("r", 2, forAnHour)
			c.Control.Silence(false, "booking")
			time.Sleep(20 * time.Second)
			world.Create(c.ours.AutoscalingV1alpha1().Reserves(ns), &autoscaling.Reserve{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "other"}}) // its event arrives at once
			time.Sleep(10 * time.Minute)
			Expect(c.writes(before)).To(HaveEach("provisioningrequests r"))
			Expect(c.states()).To(Equal("r="))
		})
	})

	It("no request fails for lack of machines that may be there", func() {
		play(func(c *cluster) {
			c.begin(1)
			c.Control.Silence(true, "booking")
			c.spare("a", 2)
			time.Sleep(2 * reachability.SilentAfter)
			c.request("r", 2, once)
			time.Sleep(10 * time.Minute)
			Expect(c.states()).To(Equal("r="))
			c.Control.Silence(false, "booking")
			time.Sleep(5 * time.Minute)
			Expect(c.states()).To(Equal("r=Provisioned"))
		})
	})
})

var _ = It("The metrics count requests of the class by state, and writes", func() {
	play(func(c *cluster) {
		c.pool("a", 3)
		registry := prometheus.NewRegistry()
		c.Start("booking", counting(registry))
		c.settle()
		c.request("other", 1, func(r *provisioningv1.ProvisioningRequest) {
			r.Spec.ProvisioningClassName = "check-capacity.autoscaling.x-k8s.io"
		})
		c.request("r", 2, forAnHour)
		c.request("s", 2, forAnHour)
		time.Sleep(time.Minute)
		families, err := registry.Gather()
		Expect(err).NotTo(HaveOccurred())
		values := map[string]float64{}
		for _, f := range families {
			for _, m := range f.Metric {
				name := ""
				for _, label := range m.Label {
					name += label.GetValue() + " "
				}
				values[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
		Expect(values).To(And(HaveKeyWithValue("Provisioned ", 1.0), HaveKeyWithValue("Waiting ", 1.0), HaveKeyWithValue("done reserve ", 1.0), HaveKeyWithValue("done status ", BeNumerically(">=", 2))))
	})
})
