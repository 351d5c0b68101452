// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

const (
	// implementation is the identity of the process under test.
	implementation = "controllers"
	// quiet is longer than the timers of stock, which looks at each MachineDeployment every ten minutes.
	quiet = 11 * time.Minute
	// patience is how long an act may take: a rollout of a few machines, and back-off.
	patience = 2 * time.Hour
	// stormy is how long faults strike in each act.
	stormy = 90 * time.Second
	// most is how many writes an implementation may need for an act. Stock writes without end where two
	// machines have failed operations (S23).
	most = 1500
)

// Rest is what is there after an act, when nothing is written any more.
type Rest struct {
	Act string
	// Refused is the error of the act, Unrest why there was no rest.
	Refused, Unrest string
	// Took is the time from the act to the last write that changed something.
	Took  time.Duration
	State State
}

// Ending is a story's rest after each act, and what was seen on the way.
type Ending struct {
	Rests []Rest
	Seen  Seen
}

var errRefused = errors.New("the story refuses it")

// stage is where a story is played.
type stage struct {
	w       *storm.World
	process *storm.Process
	user    dynamic.Interface
	cloud   *cloud
	watch   *watch
	// sent is how many writes the implementation sent in this act, those included that were refused.
	sent atomic.Int64
	// refused are resources that the implementation cannot create.
	refused sync.Map
	// last is the machine of the last act on one.
	last string
	// moments are the beginnings of the acts so far.
	moments []time.Time
	// weather means that faults strike in each act, loose that something else than the story disturbs
	// the implementation.
	weather, loose, restarts bool
}

// Play plays a story with an implementation, in a bubble of its own. It ends with the first act after
// which there is no rest.
func Play(t *testing.T, story Story, of Implementation) (ending Ending) {
	t.Helper()
	storm.Bubble(t, func() {
		w := storm.NewApart(sim.Options{Seed: 1 + story.Weather})
		defer w.End()
		ending = newStage(w, story, of).perform(story)
	})
	return ending
}

// Killed plays a story with an implementation again and again, and kills its process once before and
// after each of its writes. It returns an error for each end that differs from the undisturbed one.
// Births may differ.
func Killed(t *testing.T, story Story, of Implementation) error {
	t.Helper()
	var last State
	return storm.CrashPoints(t, storm.Scenario{
		Options: sim.Options{Seed: 1}, Apart: true,
		Story: func(w *storm.World) {
			s := newStage(w, story, of)
			s.loose = true
			rests := s.perform(story).Rests
			last = rests[len(rests)-1].State
		},
		End: func(*storm.World) any { return last },
	}, implementation)
}

// newStage builds a stage in a world.
func newStage(w *storm.World, story Story, of Implementation) *stage {
	w.Latency(2 * time.Millisecond)
	s := &stage{w: w, user: dynamic.NewForConfigOrDie(w.ConfigFor("user")), weather: story.Weather != 0, loose: story.Weather != 0, restarts: of.Restarts}
	s.cloud = newCloud(world.NewWaker(w))
	text := story.String()
	s.cloud.inPlace, s.cloud.preserving = strings.Contains(text, "InPlaceUpdate"), strings.Contains(strings.ToLower(text), "preserve")
	s.watch = newWatch(w)
	s.process = w.Start(implementation, of.Program)
	w.OnWrite(s.admit)
	w.Start("machines", world.Actor{Waker: s.cloud.Waker, Delay: time.Second, Reconcile: s.cloud.reconcile}.Run)
	w.Start("garbage", func(ctx context.Context, _ *rest.Config) error {
		w.Control.CollectGarbage(ctx, time.Second)
		return nil
	})
	return s
}

// admit counts the writes of the implementation, ends it if there are too many, and refuses what the
// story refuses.
func (s *stage) admit(write sim.Write) error {
	if write.User != implementation {
		return nil
	}
	if s.sent.Add(1) == most {
		s.process.Crash()
	}
	if refused, _ := s.refused.Load(write.Resource); refused == true && write.Verb == "create" {
		return apierrors.NewForbidden(schema.GroupResource{Resource: write.Resource}, write.Name, errRefused)
	}
	return nil
}

// perform plays all acts.
func (s *stage) perform(story Story) (ending Ending) {
	random := rand.New(rand.NewPCG(story.Weather, 1))
	for _, act := range story.Acts {
		rest := s.play(act, random)
		ending.Rests = append(ending.Rests, rest)
		if rest.Unrest != "" {
			break
		}
	}
	ending.Seen = s.watch.seen
	return ending
}

// play plays one act and waits for rest.
func (s *stage) play(act Act, random *rand.Rand) (rest Rest) {
	rest.Act = act.String()
	s.sent.Store(0)
	begin := time.Now()
	s.moments = append(s.moments, begin.Truncate(time.Second))
	if s.weather {
		s.w.Storm(random, s.process)
	}
	if err := act.play(s); err != nil {
		rest.Refused = err.Error()
	}
	if s.weather {
		time.Sleep(stormy)
		s.w.Calm()
		if s.restarts {
			s.process.CrashFor(time.Second)
		}
	}
	if _, glance := act.(Glance); glance {
		synctest.Wait()
	} else if err := s.w.Settle(quiet, patience); err != nil {
		rest.Unrest = fmt.Sprintf("no rest: %v", err)
	}
	if s.sent.Load() >= most {
		rest.Unrest = fmt.Sprintf("no rest after %d writes", most)
	}
	rest.State = s.normalise()
	if writes := storm.Loud(s.w.Writes()); len(writes) > 0 {
		rest.Took = max(0, writes[len(writes)-1].Time.Sub(begin))
	}
	// The next act does not begin in the second of the last write.
	time.Sleep(2 * time.Second)
	return rest
}
