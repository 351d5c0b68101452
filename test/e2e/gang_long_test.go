// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// gangPools are used side by side. Each has a machine that serves and some in reserve.
	gangPools, gangReserve = 6, 5
	// gangStarts is how long a group takes at most to start: the scheduler tries again after up to ten
	// seconds.
	gangStarts = 25 * time.Second
	// gangDecided is how long a decision about a group takes at most. Events report refusals, but only of the
	// four groups that have waited for the longest.
	gangDecided = 15 * time.Second
)

// gangs is how many random groups are tried, GANGS if that is set.
func gangs() int {
	GinkgoHelper()
	if text := os.Getenv("GANGS"); text != "" {
		return must(strconv.Atoi(text))
	}
	return 120
}

// tried counts what became of groups.
type tried struct {
	served, refused atomic.Int32
	// lucky are groups that were refused, and start with all machines that there are: whether they do depends
	// on the order in which the scheduler looks at their pods, which it draws.
	lucky atomic.Int32
}

// isRefused reports whether an event says that the reserve is too small for the group.
func (g gang) isRefused(ctx context.Context) bool {
	GinkgoHelper()
	of := "reason=ReserveTooSmall,involvedObject.kind=PodGroup,involvedObject.name=" + g.name
	return len(must(kube.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: of})).Items) > 0
}

// round has one random group wait in a pool that is at rest. If machines are released for it, it starts.
func (t *tried) round(ctx context.Context, p pool, random *rand.Rand, number int) {
	name := fmt.Sprintf("%s-%d", p.name, number)
	sizes := []string{"300m", "900m", "1400m", "1900m", "2500m", "3500m"}
	kinds := 1 + random.IntN(3)
	g := p.gang(ctx, name, 1+random.IntN(9), func(pod *corev1.Pod) {
		size := sizes[(int(pod.Name[len(pod.Name)-1])%kinds+number)%len(sizes)]
		pod.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse(size)
	})
	released := false
	deadline := time.Now().Add(gangDecided)
	for time.Now().Before(deadline) && !released && len(g.nodes(ctx)) == 0 && !g.isRefused(ctx) {
		released = p.replicas(ctx) > 1
		time.Sleep(100 * time.Millisecond)
	}
	if released || len(g.nodes(ctx)) > 0 {
		Eventually(g.nodes).WithContext(ctx).WithTimeout(gangStarts).Should(HaveLen(g.pods), "machines were released for %s, which has not started", name)
		t.served.Add(1)
	} else {
		p.scale(ctx, 1+gangReserve)
		t.refused.Add(1)
		for deadline := time.Now().Add(gangStarts); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
			if len(g.nodes(ctx)) > 0 {
				t.lucky.Add(1)
				break
			}
		}
	}
	g.end(ctx)
	p.scale(ctx, 1)
	p.restsWithin(ctx, 2*time.Minute, 1, gangReserve, "Complete")
}

var _ = Describe("Random groups of pods", Label("ours", "long"), func() {
	It("start if machines are released for them, and nearly all that get none could not start", func(ctx context.Context) {
		random := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 0))
		var t tried
		var running sync.WaitGroup
		for i := range gangPools {
			p := newPool(ctx, fmt.Sprintf("gangs-%d", i), 1, withBounds(fmt.Sprintf("1:%d:%d", 1+gangReserve, gangReserve)))
			own := rand.New(rand.NewPCG(random.Uint64(), 0))
			running.Go(func() {
				defer GinkgoRecover()
				p.rests(ctx, 1, gangReserve, "Complete")
				p.work(ctx, 1)
				for n := range gangs() / gangPools {
					t.round(ctx, p, own, n)
				}
			})
		}
		running.Wait()
		AddReportEntry("groups", fmt.Sprintf("%d started on released machines, %d got none, %d of which could start", t.served.Load(), t.refused.Load(), t.lucky.Load()), ReportEntryVisibilityAlways)
		Expect(t.served.Load()).To(BeNumerically(">", 10))
		Expect(t.refused.Load()).To(BeNumerically(">", t.lucky.Load()))
		Expect(int(t.lucky.Load())).To(BeNumerically("<=", gangs()/10), "about one in 25 is usual")
	})
})
