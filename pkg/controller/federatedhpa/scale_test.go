// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// A fleet of some size; make bench-federation has a large one.
var (
	manyObjects = flag.Int("objects", 10, "federated autoscalers of the fleet")
	manyMembers = flag.Int("members", 4, "clusters of the fleet")
)

// distance is how long a request is on its way to a cluster, and its answer back.
const distance = 20 * time.Millisecond

// calls counts requests.
type calls struct {
	mu     sync.Mutex
	number map[string]int
}

// counting counts requests by what they are; probes are not counted.
type counting struct {
	next  http.RoundTripper
	calls *calls
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	what := r.Method
	if r.Method == http.MethodGet && r.URL.Query().Get("watch") != "" {
		what = "WATCH"
	}
	if !strings.HasSuffix(r.URL.Path, "/readyz") && !strings.Contains(r.URL.RawQuery, "federatedhpa-probe") {
		c.calls.mu.Lock()
		if c.calls.number == nil {
			c.calls.number = map[string]int{}
		}
		c.calls.number[what]++
		c.calls.mu.Unlock()
	}
	return c.next.RoundTrip(r)
}

// take returns what was counted since it was taken last.
func (c *calls) take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.number
	c.number = nil
	return n
}

var _ = Describe("A fleet", func() {
	It("follows its load in a time that a cluster that hangs does not stretch", func() {
		calm := fleetOf(*manyObjects, *manyMembers, false)
		hanging := fleetOf(*manyObjects, *manyMembers, true)
		AddReportEntry(fmt.Sprintf("%d objects over %d clusters, %v away", *manyObjects, *manyMembers, distance), calm)
		AddReportEntry("with one that hangs", hanging)
		Expect(hanging.median).To(BeNumerically("<=", calm.median*3/2))
		Expect(hanging.longest).To(BeNumerically("<=", calm.longest*3/2))
		Expect(calm.moving["PATCH"]).To(BeNumerically("<", 12**manyObjects), "a raise is not repeated before its cluster has seen it")
	})
})

// figures of one run.
type figures struct {
	converged       time.Duration
	joining, moving map[string]int
	hub             int
	heap            uint64
	median, longest time.Duration
}

func (f figures) String() string {
	return fmt.Sprintf("autoscalers everywhere after %v, with calls %v to clusters and %d writes in the hub; heap grown by %d MiB, the simulated servers' part included;\n"+
		"from a raise being due to its arrival: median %v, longest %v, with calls %v",
		f.converged, f.joining, f.hub, f.heap>>20, f.median, f.longest, f.moving)
}

// fleetOf has objects appear, and then has each run out of its maximum in one cluster.
func fleetOf(objects, members int, hangs bool) (fig figures) {
	var names []string
	for i := range members {
		names = append(names, fmt.Sprint("c", i))
	}
	play(func(f *federation) {
		for i, c := range f.clusters {
			c.Latency(distance)
			for n := range objects {
				c.deploy(fmt.Sprint("shop-", n))
				f.clusters[i].load[fmt.Sprint("shop-", n)] = 2
			}
		}
		before := heap()
		f.start()
		time.Sleep(time.Minute)
		f.calls.take()
		begun := time.Now()
		for n := range objects {
			o := Federated(int32(members), int32(10*members))
			o.Name = fmt.Sprint("shop-", n)
			o.Spec.ScaleTargetRef.Name = o.Name
			f.create(o)
		}
		f.awaitAll(objects, members)
		fig.converged, fig.joining, fig.hub = time.Since(begun), f.calls.take(), len(f.Writes())
		fig.heap = max(heap(), before) - before
		time.Sleep(10 * time.Minute)
		if hangs {
			f.clusters[members-1].LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == "federatedhpa" {
					return 24 * time.Hour, 0
				}
				return distance, distance
			})
			time.Sleep(time.Minute)
		}
		f.calls.take()
		fig.median, fig.longest = f.follow(objects)
		fig.moving = f.calls.take()
		f.clusters[members-1].LatencyOf(nil)
	}, names...)
	return fig
}

// awaitAll waits until each object has an autoscaler in each cluster, and the whole maximum.
func (f *federation) awaitAll(objects, members int) {
	for n := range objects {
		for f.object(fmt.Sprint("shop-", n)).Status.MaxReplicas < int32(10*members) {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// follow raises the load of each object in its turn beyond the maximum that it has in the first cluster, and measures how
// long it takes from when that cluster says so until it has more.
func (f *federation) follow(objects int) (median, longest time.Duration) {
	said, raised := map[string]time.Time{}, map[string]time.Time{}
	var mu sync.Mutex
	first := f.clusters[0]
	first.AfterWrite(func(w sim.Write) error {
		if w.Resource != "horizontalpodautoscalers" || w.NoOp() {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if _, ok := said[w.Name]; !ok && w.Subresource == "status" {
			said[w.Name] = w.Time
		}
		if _, ok := raised[w.Name]; !ok && w.User == "federatedhpa" {
			raised[w.Name] = w.Time
		}
		return nil
	})
	for n := range objects {
		first.set(func(c *cluster) { c.load[fmt.Sprint("shop-", n)] = 12 })
	}
	time.Sleep(5 * time.Minute)
	mu.Lock()
	defer mu.Unlock()
	var took []time.Duration
	for name, at := range raised {
		took = append(took, at.Sub(said[name]))
	}
	ExpectWithOffset(2, took).To(HaveLen(objects))
	slices.Sort(took)
	return took[len(took)/2], took[len(took)-1]
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// rotations is how many kubeconfigs, clusters and objects come and go.
func rotations() int { return storm.Soak(150, 1) }

// held is what a process holds once the garbage is collected.
type held struct {
	goroutines int
	heap       uint64
}

func (f *federation) holding() held {
	f.Compact() // the simulated hub remembers all versions else, and all writes
	f.ForgetWrites()
	synctest.Wait()
	for range 3 { // finalizers and cleanups free what the next collection takes
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return held{runtime.NumGoroutine(), m.HeapAlloc}
}

// expectNoGrowth allows for noise, and for much less than one of what came and went each time would take.
func expectNoGrowth(before, after held, rotations int) {
	GinkgoHelper()
	AddReportEntry("before, after", fmt.Sprintf("%+v %+v", before, after))
	Expect(after.goroutines).To(BeNumerically("<=", before.goroutines+5))
	Expect(int64(after.heap)-int64(before.heap)).To(BeNumerically("<", 1<<20+int64(rotations)*1024), "bytes")
}

var _ = Describe("What comes and goes leaves nothing behind", Label("soak"), func() {
	It("of kubeconfigs that are replaced", func() {
		all := rotations()
		play(func(f *federation) {
			f.start()
			f.create(Federated(2, 20))
			f.settle()
			rotate := func(times int) {
				for range times {
					f.rotate()
					time.Sleep(time.Second)
				}
				f.settle()
			}
			rotate(20)
			before := f.holding()
			rotate(all)
			expectNoGrowth(before, f.holding(), all)
			Expect(f.bounds("shop")).To(Equal("1..10/1..10"))
		}, "c1", "c2")
	})

	It("of clusters that the registry names for a while, in the metrics neither", func() {
		registry, all := prometheus.NewRegistry(), rotations()
		play(func(f *federation) {
			f.options.Registerer = registry
			f.start()
			for i := range all {
				f.alias(fmt.Sprint("guest", i), "c2")
				f.register("c1", fmt.Sprint("guest", i))
				time.Sleep(time.Second)
				f.create(Federated(2, 20))
				time.Sleep(30 * time.Second)
				f.remove("shop")
				time.Sleep(30 * time.Second)
				if left := f.Get(objectGVR, ns, "shop"); left != nil {
					Fail(fmt.Sprintf("%s %v", f.bounds("shop"), left.Object["status"]))
				}
			}
			f.register("c1")
			f.settle()
			families, err := registry.Gather()
			Expect(err).NotTo(HaveOccurred())
			clusters := map[string]bool{}
			for _, family := range families {
				for _, m := range family.Metric {
					for _, l := range m.Label {
						if l.GetName() == "cluster" {
							clusters[l.GetValue()] = true
						}
					}
				}
			}
			Expect(clusters).To(HaveLen(2), "c1 and the hub: %v", clusters)
		}, "c1", "c2")
	})

	It("of objects", func() {
		all := rotations()
		play(func(f *federation) {
			f.start()
			for i := range all {
				o := Federated(1, 10)
				o.Name = fmt.Sprint("shop", i)
				o.Spec.ScaleTargetRef = v1alpha1.ScaleTargetReference{APIVersion: fmt.Sprintf("example.com/v%d", i), Kind: "Widget", Name: o.Name}
				f.create(o)
				time.Sleep(time.Second)
				f.remove(o.Name)
				time.Sleep(time.Second)
			}
			f.settle()
			Expect(Kept(f.running)).To(BeZero())
		}, "c1")
	})
})

// stalling is a transport whose credentials are never ready.
type stalling struct {
	until   chan struct{}
	waiting atomic.Int32
}

func (s *stalling) RoundTrip(*http.Request) (*http.Response, error) {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	<-s.until
	return nil, context.Canceled
}

var _ = Describe("A program that hangs", func() {
	It("holds a bounded number of requests, and none of those who ask", func(ctx context.Context) {
		program := &stalling{until: make(chan struct{})}
		client := Punctual(program)
		for range 500 {
			short, cancel := context.WithTimeout(ctx, time.Millisecond)
			request, err := http.NewRequestWithContext(short, http.MethodGet, "https://192.0.2.1", nil)
			Expect(err).NotTo(HaveOccurred())
			_, err = client.RoundTrip(request) //nolint:bodyclose // there is none
			Expect(err).To(MatchError(context.DeadlineExceeded))
			cancel()
		}
		Expect(program.waiting.Load()).To(BeNumerically("<=", 40))
		close(program.until)
		Eventually(program.waiting.Load).Should(BeZero())
	})
})
