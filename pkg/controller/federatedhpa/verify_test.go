// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// routed goes to the server that a cluster has at that moment.
type routed struct {
	f       *federation
	name    string
	through map[*sim.Server]*sim.Client
	process *rest.Config
}

func (r *routed) RoundTrip(request *http.Request) (*http.Response, error) {
	if intercept := r.f.intercept.Load(); intercept != nil {
		if err := (*intercept)(request); err != nil {
			return nil, err
		}
	}
	for r.f.hangs(r.name) {
		select {
		case <-request.Context().Done():
			return nil, request.Context().Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	c := r.f.member(r.name)
	c.mu.Lock()
	server := c.Server
	if r.through[server] == nil {
		client := server.Client("federatedhpa")
		storm.Attach(r.process, client)
		r.through[server] = client
	}
	client := r.through[server]
	c.mu.Unlock()
	return client.RoundTrip(request)
}

// backup is what a cluster has.
type backup struct {
	hpas        []autoscalingv2.HorizontalPodAutoscaler
	deployments []appsv1.Deployment
}

func (c *cluster) backup() (b backup) {
	GinkgoHelper()
	hpas, err := c.core.AutoscalingV2().HorizontalPodAutoscalers(ns).List(context.Background(), metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	deployments, err := c.core.AppsV1().Deployments(ns).List(context.Background(), metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	return backup{hpas.Items, deployments.Items}
}

// restore gives a cluster the state of a backup, and the versions of one that has just been made.
func (f *federation) restore(c *cluster, b backup) {
	GinkgoHelper()
	other := len(f.clusters) + slices.Index(f.clusters, c) // than that of each other cluster, so that its UIDs are its own
	server := sim.New(sim.Options{Seed: f.Seed + uint64(other), Resources: memberServes})
	core := kubernetes.NewForConfigOrDie(server.ConfigFor("actors"))
	for _, d := range b.deployments {
		d.ResourceVersion = ""
		_, err := core.AppsV1().Deployments(ns).Create(context.Background(), &d, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	for _, h := range b.hpas {
		h.ResourceVersion = ""
		_, err := core.AutoscalingV2().HorizontalPodAutoscalers(ns).Create(context.Background(), &h, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	c.mu.Lock()
	before := c.Server
	c.Server, c.core = server, core
	c.mu.Unlock()
	before.Close()
}

var _ = Describe("A cluster whose etcd is restored", func() {
	It("is looked at anew: a maximum that came back is lowered, and an autoscaler that came back is removed", func() {
		play(func(f *federation) {
			registry := prometheus.NewRegistry()
			f.options.Registerer = registry
			f.start()
			f.create(Federated(3, 30))
			f.settle()
			old := f.clusters[1].backup() // with 10
			f.loads("shop", 25, 2, 2)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("24/3/3"))
			f.restore(f.clusters[1], old)
			f.settle()
			Expect(f.object("shop").Status.MaxReplicas).To(BeEquivalentTo(30), f.maxima("shop"))
			Expect(f.sum("shop")).To(BeEquivalentTo(30), f.maxima("shop"))
			By("removing what an object has left")
			f.change("shop", func(s *Spec) { s.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": "c1"}} })
			f.settle()
			Expect(f.maxima("shop")).To(Equal("26/-/-"), "c2 and c3 keep 2 replicas each")
			f.restore(f.clusters[1], old)
			f.settle()
			left := f.clusters[1].replicas("shop") + f.clusters[2].replicas("shop")
			Expect(f.maxima("shop")).To(Equal(fmt.Sprintf("%d/-/-", 30-left)))
			Expect(restoresIn(registry)).To(Equal(map[string]float64{"c2": 2}))
		}, "c1", "c2", "c3")
	})

	It("right after it was written to, before the hub's cache has shown that", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(3, 30))
			f.settle()
			old := f.clusters[1].backup()
			f.clusters[1].Lag("horizontalpodautoscalers", sim.Constantly(time.Minute), "federatedhpa")
			f.loads("shop", 25, 2, 2)
			for f.clusters[1].hpa("shop").Spec.MaxReplicas == 10 {
				time.Sleep(100 * time.Millisecond)
			}
			time.Sleep(5 * time.Second)
			f.restore(f.clusters[1], old)
			f.settle()
			Expect(f.sum("shop")).To(BeEquivalentTo(30), f.maxima("shop"))
			Expect(f.condition("shop", "Balanced")).To(Equal("True AtGoal"))
		}, "c1", "c2", "c3")
	})
})

var _ = Describe("A cluster that is restored while it is out of reach, and passes its old version before it is reached again,", func() {
	var backup *sim.Snapshot
	// begin backs c2 up while its maximum is 10, and then has c1 take from it.
	begin := func(f *federation) {
		GinkgoHelper()
		f.start()
		f.create(Federated(3, 30))
		f.settle()
		backup = f.clusters[1].Snapshot()
		f.loads("shop", 25, 2, 2)
		f.settle()
	}
	// restored gives c2 back the 10 of before, while the hub cannot see it.
	restored := func(f *federation, between func(c *cluster)) {
		GinkgoHelper()
		c := f.clusters[1]
		c.set(func(c *cluster) { c.still = true }) // nothing is written to its autoscaler
		c.Down(true, "federatedhpa")
		time.Sleep(5 * time.Minute)
		before := c.Version()
		c.Restore(backup)
		between(c)
		c.passes(before)
		c.Down(false, "federatedhpa")
	}

	It("is looked at anew, so that its maximum counts as it is", func() {
		play(func(f *federation) {
			begin(f)
			Expect(f.maxima("shop")).To(Equal("24/3/3"))
			restored(f, func(*cluster) {})
			f.settle()
			Expect(f.sum("shop")).To(BeEquivalentTo(30), f.maxima("shop"))
			Expect(f.condition("shop", "Balanced")).To(Equal("True AtGoal"))
		}, "c1", "c2", "c3")
	})

	It("is looked at anew, too, where comparing takes longer than a request may", func() {
		play(func(f *federation) {
			begin(f)
			restored(f, func(c *cluster) {
				c.LatencyOf(func(r sim.Request) (before, after time.Duration) {
					if r.Verb == "list" && r.User == "federatedhpa" {
						before = 11 * time.Second
					}
					return before, 0
				})
			})
			f.settle()
			Expect(f.sum("shop")).To(BeEquivalentTo(30), f.maxima("shop"))
		}, "c1", "c2", "c3")
	})

	It("gets its autoscaler back where the backup had none", func() {
		play(func(f *federation) {
			f.start()
			backup = f.clusters[1].Snapshot()
			f.create(Federated(3, 30))
			f.settle()
			restored(f, func(c *cluster) { Expect(c.hpa("shop")).To(BeNil()) })
			f.settle()
			Expect(f.maxima("shop")).To(Equal("10/10/10"))
		}, "c1", "c2", "c3")
	})

	DescribeTable("is looked at anew, too, where that happens between two probes, which it answers",
		func(late int64) {
			play(func(f *federation) {
				begin(f)
				c := f.clusters[1]
				c.set(func(c *cluster) { c.still = true })
				before := c.Version()
				c.Restore(backup)
				c.passes(before)
				var lists atomic.Int64
				c.LatencyOf(func(r sim.Request) (before, after time.Duration) {
					if r.Verb == "list" && r.User == "federatedhpa" && lists.Add(1) <= late {
						before = 11 * time.Second // a request may take 10
					}
					return before, 0
				})
				f.settle()
				Expect(f.sum("shop")).To(BeEquivalentTo(30), f.maxima("shop"))
				Expect(f.condition("shop", "Balanced")).To(Equal("True AtGoal"))
			}, "c1", "c2", "c3")
		},
		Entry("at once", int64(0)),
		Entry("late at first", int64(4)),
	)

	It("is looked at anew, too, where it gives the version of an order to a status", func() {
		play(func(f *federation) {
			begin(f)
			c := f.clusters[1]
			c.set(func(c *cluster) { c.still = true })
			before, ordered := c.Version(), c.hpa("shop").ResourceVersion
			c.Restore(backup)
			h := c.hpa("shop")
			for h.ResourceVersion != ordered {
				h.Status.CurrentReplicas++
				var err error
				h, err = c.core.AutoscalingV2().HorizontalPodAutoscalers(ns).UpdateStatus(context.Background(), h, metav1.UpdateOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			c.passes(before)
			f.settle()
			Expect(f.sum("shop")).To(BeEquivalentTo(30), f.maxima("shop"))
		}, "c1", "c2", "c3")
	})

	DescribeTable("is looked at anew when an order meets something else than the cache shows",
		func(had bool) {
			play(func(f *federation) {
				f.start()
				backup = f.clusters[1].Snapshot()
				f.create(Federated(3, 30))
				f.settle()
				if had {
					backup = f.clusters[1].Snapshot()
				}
				f.loads("shop", 25, 2, 2)
				f.settle()
				c := f.clusters[1]
				c.set(func(c *cluster) { c.still = true })
				before := c.Version()
				c.Restore(backup) // between two probes
				c.passes(before)
				f.change("shop", func(s *Spec) { s.MaxReplicas = 5 })
				f.settle()
				Expect(f.sum("shop")).To(BeEquivalentTo(5), f.maxima("shop"))
				Expect(f.condition("shop", "Balanced")).To(Equal("True AtGoal"))
			}, "c1", "c2", "c3")
		},
		Entry("another version", true),
		Entry("nothing", false),
	)
})

// passes has others write to a cluster until its version is newer than that.
func (c *cluster) passes(version string) {
	GinkgoHelper()
	for newer := false; !newer; {
		c.deploy("other-" + c.Version())
		order, err := resourceversion.CompareResourceVersion(c.Version(), version)
		Expect(err).NotTo(HaveOccurred())
		newer = order > 0
	}
}

// restoresIn is how many restores were noticed, by cluster.
func restoresIn(registry *prometheus.Registry) map[string]float64 {
	GinkgoHelper()
	return valuesIn(registry, "evenkeel_federatedhpa_cluster_restores_total")
}

// valuesIn are the values of a metric by cluster; with a label and its value, of those that have it.
func valuesIn(registry *prometheus.Registry, name string, label ...string) map[string]float64 {
	GinkgoHelper()
	families, err := registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	found := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			has := map[string]string{}
			for _, l := range m.GetLabel() {
				has[l.GetName()] = l.GetValue()
			}
			if len(label) == 0 || has[label[0]] == label[1] {
				found[has["cluster"]] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return found
}

// sum of the maxima that are in the clusters.
func (f *federation) sum(name string) (sum int64) {
	for _, c := range f.clusters {
		if h := c.hpa(name); h != nil {
			sum += int64(h.Spec.MaxReplicas)
		}
	}
	return sum
}

var _ = Describe("A hub whose etcd is restored", func() {
	It("raises nothing before it has read every cluster that answers, because its ledger is old", func() {
		play(func(f *federation) {
			f.guard(30, "shop")
			p := f.start()
			f.create(Federated(3, 30))
			f.settle()
			backup := f.Snapshot() // with 10/10/10
			f.loads("shop", 25, 2, 2)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("24/3/3"))
			p.Crash()
			f.Restore(backup)
			f.loads("shop", 2, 18, 2)
			f.clusters[0].LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == "federatedhpa" {
					return 6 * time.Second, 0
				}
				return 0, 0
			})
			p.Restart()
			time.Sleep(5 * time.Second)
			Expect(f.maxima("shop")).To(Equal("24/3/3"), "two of three are read")
			f.clusters[0].LatencyOf(nil)
			f.settle()
			Expect(f.clusters[1].hpa("shop").Spec.MaxReplicas).To(BeNumerically(">=", 18), f.maxima("shop"))
		}, "c1", "c2", "c3")
	})
})

var _ = Describe("A cluster whose watch is late", func() {
	It("is not taken for one that was restored because an autoscaler is removed", func() {
		play(func(f *federation) {
			registry := prometheus.NewRegistry()
			f.options.Registerer = registry
			f.start()
			f.create(Federated(2, 20))
			f.settle()
			f.clusters[0].Lag("horizontalpodautoscalers", sim.Constantly(25*time.Second), "federatedhpa")
			f.clusters[0].BreakWatches("federatedhpa")
			f.change("shop", func(s *Spec) { s.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": "c2"}} })
			f.settle()
			Expect(f.maxima("shop")).To(Equal("-/19"), "c1 keeps a replica")
			Expect(restoresIn(registry)).To(BeEmpty())
		}, "c1", "c2")
	})
})

var _ = Describe("A cluster that is restored between two probes, and passes its old version before the second one,", func() {
	It("gets its autoscaler back where the backup had none", func() {
		play(func(f *federation) {
			f.start()
			c := f.clusters[1]
			backup := c.Snapshot()
			f.create(Federated(3, 30))
			f.settle()
			before := c.Version()
			c.Restore(backup)
			Expect(c.hpa("shop")).To(BeNil())
			c.passes(before)
			time.Sleep(2 * time.Minute)
			Expect(f.maxima("shop")).To(Equal("10/10/10"))
		}, "c1", "c2", "c3")
	})
})
