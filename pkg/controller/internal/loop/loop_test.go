// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/tracing"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/loop"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

var suite *testing.T

func TestLoop(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Loop")
}

// diary notes when which key was synced.
type diary struct {
	mu      sync.Mutex
	begun   time.Time
	entries []entry
}

type entry struct {
	key string
	at  time.Duration
}

func (d *diary) note(key string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, entry{key, time.Since(d.begun)})
	n := 0
	for _, e := range d.entries {
		if e.key == key {
			n++
		}
	}
	return n
}

// play runs a loop in virtual time for an hour; with is called once it runs.
func play(o loop.Options, sync func(d *diary, key string) (time.Duration, error), with func(l *loop.Loop)) []entry {
	d := &diary{}
	storm.Bubble(suite, func() {
		d.begun = time.Now()
		l := loop.New("test", func(_ context.Context, key string) (time.Duration, error) { return sync(d, key) }, o)
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		time.AfterFunc(0, func() { with(l) })
		l.Run(ctx)
	})
	return d.entries
}

type never struct{ done chan struct{} }

func (never) Name() string            { return "never" }
func (n never) Done() <-chan struct{} { return n.done }

var _ = Describe("A loop", func() {
	It("syncs what is added, and again when told to", func() {
		entries := play(loop.Options{}, func(d *diary, key string) (time.Duration, error) {
			if d.note(key) < 3 {
				return 10 * time.Minute, nil
			}
			return 0, nil
		}, func(l *loop.Loop) { l.Add("a") })
		Expect(entries).To(Equal([]entry{{"a", 0}, {"a", 10 * time.Minute}, {"a", 20 * time.Minute}}))
	})

	It("adds later when asked to", func() {
		entries := play(loop.Options{}, func(d *diary, key string) (time.Duration, error) { d.note(key); return 0, nil },
			func(l *loop.Loop) { l.AddAfter("a", time.Minute) })
		Expect(entries).To(Equal([]entry{{"a", time.Minute}}))
	})

	It("tries a key that fails again, later each time, but each minute at least", func() {
		entries := play(loop.Options{}, func(d *diary, key string) (time.Duration, error) {
			d.note(key)
			return 0, errors.New("no luck")
		}, func(l *loop.Loop) { l.Add("a") })
		Expect(len(entries)).To(BeNumerically("~", 70, 5))
		Expect(entries[1].at).To(Equal(50 * time.Millisecond))
		Expect(entries[2].at - entries[1].at).To(Equal(100 * time.Millisecond))
		Expect(entries[len(entries)-1].at - entries[len(entries)-2].at).To(Equal(time.Minute))
	})

	It("forgets failures once a sync succeeds, conflicts too", func() {
		conflict := apierrors.NewConflict(schema.GroupResource{}, "a", errors.New("changed"))
		entries := play(loop.Options{}, func(d *diary, key string) (time.Duration, error) {
			switch n := d.note(key); {
			case n == 4:
				return time.Minute, nil
			case n < 8:
				return 0, conflict
			}
			return 0, nil
		}, func(l *loop.Loop) { l.Add("a") })
		Expect(entries).To(HaveLen(8))
		Expect(entries[5].at - entries[4].at).To(Equal(50 * time.Millisecond))
	})

	It("parks a key that panics, and no other", func() {
		var panicked []string
		var parked []int
		entries := play(loop.Options{Workers: 2, Panicked: func(key string, _ any) { panicked = append(panicked, key) }},
			func(d *diary, key string) (time.Duration, error) {
				if d.note(key) == 1 && key == "bad" {
					panic("oh")
				}
				return 0, nil
			}, func(l *loop.Loop) {
				l.Add("bad")
				l.Add("good")
				time.Sleep(10 * time.Second)
				l.Add("bad")
				l.AddAfter("bad", time.Second)
				parked = append(parked, l.Parked())
				time.Sleep(time.Minute)
				l.Add("bad")
				parked = append(parked, l.Parked())
			})
		Expect(entries).To(ConsistOf(entry{"bad", 0}, entry{"good", 0}, entry{"bad", time.Minute}, entry{"bad", 70 * time.Second}))
		Expect(panicked).To(Equal([]string{"bad"}))
		Expect(parked).To(Equal([]int{1, 0}), "it is forgotten then")
	})

	It("syncs keys side by side, but one key by one worker", func() {
		entries := play(loop.Options{Workers: 2}, func(d *diary, key string) (time.Duration, error) {
			d.note(key)
			time.Sleep(time.Minute)
			return 0, nil
		}, func(l *loop.Loop) {
			l.Add("a")
			l.Add("b")
			time.Sleep(time.Second)
			l.Add("a")
		})
		Expect(entries).To(ConsistOf(entry{"a", 0}, entry{"b", 0}, entry{"a", time.Minute}))
	})

	It("ends with its context, after the sync under way and without another one", func() {
		ended := false
		entries := play(loop.Options{}, func(d *diary, key string) (time.Duration, error) {
			d.note(key)
			time.Sleep(2 * time.Hour)
			ended = true
			return 0, nil
		}, func(l *loop.Loop) { l.Add("a"); l.Add("b") })
		Expect(entries).To(HaveLen(1))
		Expect(ended).To(BeTrue())
	})

	It("traces each sync from the event on, as part of what caused it", func() {
		recorder := tracetest.NewSpanRecorder()
		DeferCleanup(tracing.Record(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))))
		ctx, cause := tracing.Start(context.Background(), "cause")
		play(loop.Options{}, func(d *diary, key string) (time.Duration, error) {
			switch d.note(key) {
			case 1:
				return 10 * time.Minute, nil
			case 2:
				panic("broken")
			}
			return 0, errors.New("refused")
		}, func(l *loop.Loop) {
			l.AddFor(ctx, "caused")
			l.AddAfter("gathered", time.Second)
		})
		cause.End()
		spans := map[string][]sdktrace.ReadOnlySpan{}
		for _, s := range recorder.Ended() {
			if s.Name() == "test" {
				key := s.Attributes()[0].Value.AsString()
				spans[key] = append(spans[key], s)
			}
		}
		Expect(spans["caused"][0].Parent().SpanID()).To(Equal(cause.SpanContext().SpanID()))
		Expect(spans["caused"][1].Parent().IsValid()).To(BeFalse(), "nothing caused this but time")
		Expect(spans["caused"][2].Status().Description).To(Equal("refused"))
		gathered := spans["gathered"][0]
		Expect(gathered.EndTime().Sub(gathered.StartTime())).To(Equal(time.Second))
		later := spans["gathered"][1]
		Expect(later.EndTime().Sub(later.StartTime())).To(BeZero(), "it did not wait for ten minutes, it was due then")
	})

	It("leaves nothing behind where it is discarded", func() {
		storm.Bubble(suite, func() {
			l := loop.New("test", func(context.Context, string) (time.Duration, error) { panic("must not be called") }, loop.Options{})
			l.Add("a")
			l.AddAfter("b", time.Minute)
			l.Discard()
		})
	})

	It("ends with its context though its caches never fill", func() {
		storm.Bubble(suite, func() {
			l := loop.New("test", func(context.Context, string) (time.Duration, error) { panic("must not be called") }, loop.Options{})
			l.Add("a")
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			var waiting cache.DoneChecker = never{make(chan struct{})}
			l.Run(ctx, waiting)
		})
	})
})
