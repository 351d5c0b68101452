// SPDX-License-Identifier: Apache-2.0

package reachability_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/internal/reachability"
	machines "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

var suite *testing.T

func TestReachability(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Reachability")
}

// wire is what a Cluster asks: it answers while it is up.
type wire struct {
	sync.Mutex
	down    bool
	hangs   bool
	slow    time.Duration
	version string
	asked   int
}

func (w *wire) probe(ctx context.Context) (string, error) {
	w.Lock()
	w.asked++
	hangs, slow := w.hangs, w.slow
	w.Unlock()
	if hangs {
		<-ctx.Done()
		return "", ctx.Err()
	}
	time.Sleep(slow)
	w.Lock()
	defer w.Unlock()
	if w.down {
		return "", errors.New("refused")
	}
	return w.version, nil
}

// set changes how the wire answers.
func (w *wire) set(change func()) {
	w.Lock()
	defer w.Unlock()
	change()
}

type store string

func (s store) LastStoreSyncResourceVersion() string { return string(s) }

// run runs body beside a Cluster in virtual time.
func run(w *wire, body func(c *reachability.Cluster, calls *atomic.Int32)) {
	GinkgoHelper()
	storm.Bubble(suite, func() {
		var calls atomic.Int32
		c := reachability.New("target", w.probe, reachability.Options{})
		c.Subscribe(func() { calls.Add(1) })
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		synctest.Wait()
		body(c, &calls)
		cancel()
		Expect(<-ended).To(Succeed())
	})
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

var _ = Describe("A cluster", func() {
	It("is silent from 30 seconds after its last answer until the next one (law 1), and its subscribers hear of both (law 3)", func() {
		w := &wire{version: "7"}
		run(w, func(c *reachability.Cluster, calls *atomic.Int32) {
			pass(time.Hour)
			Expect(c.Err()).To(Succeed())
			Expect(w.asked).To(Equal(361))
			Expect(calls.Load()).To(BeZero())
			w.set(func() { w.down = true })
			pass(30 * time.Second)
			Expect(c.Silent()).To(BeFalse(), "a short break is none")
			pass(time.Second)
			Expect(c.Err()).To(MatchError("target cluster: the API server has not answered for 30s"))
			pass(time.Hour)
			Expect(c.Silent()).To(BeTrue())
			Expect(calls.Load()).To(BeEquivalentTo(1))
			w.set(func() { w.down = false })
			pass(10 * time.Second)
			Expect(c.Silent()).To(BeFalse())
			Expect(calls.Load()).To(BeEquivalentTo(2))
		})
	})

	It("is silent where its connection takes requests and answers none (law 1)", func() {
		w := &wire{}
		run(w, func(c *reachability.Cluster, calls *atomic.Int32) {
			w.set(func() { w.hangs = true })
			pass(41 * time.Second)
			Expect(c.Silent()).To(BeTrue())
			Expect(calls.Load()).To(BeEquivalentTo(1))
			w.set(func() { w.hangs = false })
			pass(10 * time.Second)
			Expect(c.Silent()).To(BeFalse())
		})
	})

	It("waits after a silence for stores that are behind, as long as their watches may be old (law 2)", func() {
		w := &wire{version: "7"}
		run(w, func(c *reachability.Cluster, _ *atomic.Int32) {
			Expect(c.Silent(store("5"))).To(BeFalse(), "what filled before is no older than the process")
			w.set(func() { w.down, w.version = true, "9" })
			pass(time.Minute)
			w.set(func() { w.down = false })
			pass(10 * time.Second)
			Expect(c.Silent()).To(BeFalse())
			Expect(c.Silent(store("9"), store("8"))).To(BeTrue())
			Expect(c.Err(store("8"))).To(MatchError(ContainSubstring("yet to catch up")))
			Expect(c.Silent(store("9"), store("10"))).To(BeFalse())
			Expect(c.Silent(store(""))).To(BeFalse(), "what cannot be compared is not waited for")
			w.set(func() { w.version = "30" })
			pass(time.Minute)
			Expect(c.Silent(store("9"))).To(BeFalse(), "the first answer counts: a quiet store does not show every version")
			Expect(c.Silent(store("8"))).To(BeTrue())
			pass(2 * time.Minute)
			Expect(c.Silent(store("8"))).To(BeFalse())
		})
	})

	It("is silent until it runs, gets some time for its first answer, and is never silent where there is none (law 4)", func() {
		storm.Bubble(suite, func() {
			c := reachability.New("control", (&wire{}).probe, reachability.Options{})
			Expect(c.Silent()).To(BeTrue())
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			Expect(c.Run(ended)).To(Succeed())
			Expect(c.Silent()).To(BeFalse())
			var none *reachability.Cluster
			none.Subscribe(func() {})
			Expect(none.Silent(store("1"))).To(BeFalse())
		})
		w := &wire{down: true}
		run(w, func(c *reachability.Cluster, _ *atomic.Int32) {
			Expect(c.Silent()).To(BeFalse())
			pass(31 * time.Second)
			Expect(c.Silent()).To(BeTrue())
		})
	})

	It("tells its subscribers of a silence that one slow answer ends", func() { // law 3
		w := &wire{version: "7"}
		run(w, func(c *reachability.Cluster, calls *atomic.Int32) {
			pass(10 * time.Second)
			w.set(func() { w.down = true })
			pass(20 * time.Second)
			w.set(func() { w.down, w.slow = false, 5*time.Second })
			pass(14 * time.Second)
			Expect(c.Silent()).To(BeTrue(), "whoever asks now waits until told")
			Expect(calls.Load()).To(BeZero())
			pass(2 * time.Second)
			Expect(c.Silent()).To(BeFalse())
			Expect(calls.Load()).To(BeEquivalentTo(1))
			pass(time.Hour)
			Expect(calls.Load()).To(BeEquivalentTo(1))
		})
	})

	It("calls no subscriber once it is told to end (law 4)", func() {
		w := &wire{version: "7"}
		var after *atomic.Int32
		run(w, func(c *reachability.Cluster, calls *atomic.Int32) {
			w.set(func() { w.hangs = true })
			pass(35 * time.Second)
			Expect(c.Silent()).To(BeTrue(), "a silence that the probe in flight would report")
			after = calls
		})
		Expect(after.Load()).To(BeZero())
	})

	DescribeTable("answers also if the kind that is asked for is not served", func(ctx SpecContext, err error, answers bool) {
		probe := reachability.ListingOptional(func(context.Context, metav1.ListOptions) (*corev1.NodeList, error) { return &corev1.NodeList{}, err })
		_, failed := probe(ctx)
		Expect(failed == nil).To(Equal(answers))
	},
		Entry("as it is", nil, true),
		Entry("as it is not", apierrors.NewNotFound(corev1.Resource("nodes"), ""), true),
		Entry("but not by a refusal", apierrors.NewForbidden(corev1.Resource("nodes"), "", nil), false),
	)

	DescribeTable("begins as after a silence where no process may have seen one", func(ago time.Duration, back bool) {
		storm.Bubble(suite, func() {
			c := reachability.New("control", (&wire{version: "7"}).probe, reachability.Options{})
			began := time.Now()
			if ago > 0 {
				c.WatchedUntil(began.Add(-ago))
			}
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error)
			go func() { ended <- c.Run(ctx) }()
			pass(time.Minute)
			Expect(c.Back().Equal(began)).To(Equal(back))
			Expect(c.Silent(store("5"))).To(BeFalse())
			cancel()
			Expect(<-ended).To(Succeed())
		})
	},
		Entry("none was there before", time.Duration(0), false),
		Entry("another one was there a moment ago", 30*time.Second, false),
		Entry("another one was there before", 31*time.Second, true),
	)

	It("shows in a metric while it runs, and not where a process waits for its turn", func() {
		w := &wire{version: "7"}
		run(w, func(c *reachability.Cluster, _ *atomic.Int32) {
			registry := prometheus.NewRegistry()
			registry.MustRegister(reachability.Metrics{c, reachability.New("control", w.probe, reachability.Options{})})
			shown := func() float64 {
				families, err := registry.Gather()
				Expect(err).NotTo(HaveOccurred())
				Expect(families).To(ConsistOf(HaveField("GetName()", "evenkeel_cluster_silent")))
				Expect(families[0].GetMetric()).To(HaveLen(1))
				return families[0].GetMetric()[0].GetGauge().GetValue()
			}
			Expect(shown()).To(BeZero())
			w.set(func() { w.down = true })
			pass(41 * time.Second)
			Expect(shown()).To(Equal(1.0))
		})
	})
})

var _ = Describe("A cluster and an informer", func() {
	It("agree again after a silence, also where nothing has happened meanwhile", func() {
		storm.Bubble(suite, func() {
			world := storm.NewWorld(sim.Options{Seed: 1})
			defer world.End()
			config := world.ConfigFor("ours")
			config.QPS = -1
			core, ours := kubernetes.NewForConfigOrDie(config), machines.NewForConfigOrDie(config)
			target := reachability.New("target", reachability.Nodes(core), reachability.Options{})
			control := reachability.New("control", reachability.Listing(ours.MachineV1alpha1().MachineDeployments(fixture.Namespace).List), reachability.Options{})
			factory := informers.NewSharedInformerFactory(core, 0)
			nodes := factory.Core().V1().Nodes().Informer()
			ctx, cancel := context.WithCancel(context.Background())
			factory.Start(ctx.Done())
			ended := make(chan error)
			for _, c := range []*reachability.Cluster{target, control} {
				go func() { ended <- c.Run(ctx) }()
			}
			pass(time.Minute)
			Expect(target.Silent(nodes.GetIndexer())).To(BeFalse())
			world.Down(true, "ours")
			pass(time.Minute)
			Expect(target.Silent()).To(BeTrue())
			Expect(control.Silent()).To(BeTrue())
			user := kubernetes.NewForConfigOrDie(world.ConfigFor("user"))
			_, err := user.CoreV1().Nodes().Create(context.Background(), fixture.Node("new"), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			world.Hold("nodes", "ours")
			world.Down(false, "ours")
			pass(11 * time.Second)
			Expect(target.Silent()).To(BeFalse())
			Expect(control.Silent()).To(BeFalse())
			world.Release("nodes", "ours")
			pass(time.Minute)
			Expect(target.Silent(nodes.GetIndexer())).To(BeFalse())
			_, shown, _ := nodes.GetIndexer().Get(&corev1.Node{ObjectMeta: fixture.Node("new").ObjectMeta})
			Expect(shown).To(BeTrue())
			cancel()
			Expect(<-ended).To(Succeed())
			Expect(<-ended).To(Succeed())
			factory.Shutdown()
		})
	})
})
