// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

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
