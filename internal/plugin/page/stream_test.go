// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/overview"
)

// worldThatChanges counts how often it was read.
type worldThatChanges struct {
	reads   int
	changed chan struct{}
}

func newWorldThatChanges() *worldThatChanges {
	return &worldThatChanges{changed: make(chan struct{}, 1)}
}

func (w *worldThatChanges) source() Source {
	return Source{Changed: w.changed, Read: func() overview.Overview {
		w.reads++
		return world(time.Now(), w.reads, 0)
	}}
}

func (w *worldThatChanges) change() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

var _ = Describe("The board", func() {
	const pace = 250 * time.Millisecond
	var w *worldThatChanges
	var b *sceneFeed
	var ctx context.Context
	var stop func()

	// running is a spec with a board that runs, in virtual time.
	running := func(spec func()) func() {
		return bubble(func() {
			w = newWorldThatChanges()
			b = newBoard(w.source(), clock.RealClock{}, pace)
			ctx, stop = context.WithCancel(context.Background())
			ended := make(chan struct{})
			go func() { defer close(ended); b.run(ctx) }()
			synctest.Wait()
			spec()
			stop()
			<-ended
		})
	}
	replicas := func(s *scene) int { return s.overview.Pools[0].Zones[0].Replicas }

	It("shows at once what changed (law 6)", running(func() {
		time.Sleep(time.Second)
		w.change()
		synctest.Wait()
		now, _ := b.newest()
		Expect(replicas(now)).To(Equal(2))
	}))

	It("reads at most once per pace, however often objects change, and the last change is read (law 6)", running(func() {
		for range 1000 {
			w.change()
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		Expect(w.reads).To(BeNumerically("<=", 5))
		before := w.reads
		time.Sleep(pace)
		w.change()
		synctest.Wait()
		Expect(w.reads).To(BeNumerically(">", before))
	}))

	It("continues the timeline while nothing changes", running(func() {
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		now, _ := b.newest()
		Expect(now.past.past).To(HaveLen(int(10*time.Minute/step) + 1))
	}))

	It("gives a slow reader the newest scene, and no reader waits for another (law 5)", running(func() {
		var quick []int
		go func() {
			for s := range b.scenes(ctx) {
				quick = append(quick, replicas(s))
			}
		}()
		slow := make(chan int)
		go func() {
			defer close(slow)
			for s := range b.scenes(ctx) {
				slow <- replicas(s)
			}
		}()
		synctest.Wait()
		for range 3 {
			time.Sleep(pace)
			w.change()
			synctest.Wait()
		}
		Expect(quick).To(Equal([]int{1, 2, 3, 4}))
		Expect([]int{<-slow, <-slow}).To(Equal([]int{1, 4}))
		stop()
		_, open := <-slow
		Expect(open).To(BeFalse())
	}))

	It("draws nothing without readers, and once for many of them (law 6)", running(func() {
		now, _ := b.newest()
		Expect(now.drawn).To(BeEmpty())
		first, err := now.fragments(view{})
		Expect(err).NotTo(HaveOccurred())
		second, err := now.fragments(view{})
		Expect(err).NotTo(HaveOccurred())
		Expect(&second[0]).To(BeIdenticalTo(&first[0]))
	}))
})
