// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

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
	patience = 6 * time.Hour
	// stormy is how long faults strike in each act.
	stormy = 90 * time.Second
)

// Rest is what is there after an act, when nothing is written any more.
type Rest struct {
	Act string
	// Refused is the error of the act, Unrest why there was no rest.
	Refused, Unrest string
	State           State
}

// Ending is a story's rest after each act, and what was seen on the way.
type Ending struct {
	Rests []Rest
	Seen  Seen
}

// stage is where a story is played.
type stage struct {
	w       *storm.World
	process *storm.Process
	user    dynamic.Interface
	cloud   *cloud
	watch   *watch
	// moments are the beginnings of the acts so far.
	moments []time.Time
	loose   bool
}

// Play plays a story with an implementation, in a bubble of its own. It ends with the first act after
// which there is no rest.
func Play(t *testing.T, story Story, of Implementation) (ending Ending) {
	t.Helper()
	storm.Bubble(t, func() {
		s := newStage(story, of)
		defer s.w.End()
		random := rand.New(rand.NewPCG(story.Weather, 1))
		for _, act := range story.Acts {
			rest := s.play(act, random)
			ending.Rests = append(ending.Rests, rest)
			if rest.Unrest != "" {
				break
			}
		}
		ending.Seen = s.watch.seen
	})
	return ending
}

func newStage(story Story, of Implementation) *stage {
	w := storm.NewApart(sim.Options{Seed: 1 + story.Weather})
	w.Latency(2 * time.Millisecond)
	s := &stage{w: w, user: dynamic.NewForConfigOrDie(w.ConfigFor("user")), loose: story.Weather != 0}
	s.cloud = newCloud(world.NewWaker(w))
	text := story.String()
	s.cloud.inPlace, s.cloud.preserving = strings.Contains(text, "InPlaceUpdate"), strings.Contains(strings.ToLower(text), "preserve")
	s.watch = newWatch(w)
	s.process = w.Start(implementation, of.Program)
	w.Start("machines", world.Actor{Waker: s.cloud.Waker, Delay: time.Second, Reconcile: s.cloud.reconcile}.Run)
	w.Start("garbage", func(ctx context.Context, _ *rest.Config) error {
		w.Control.CollectGarbage(ctx, time.Second)
		return nil
	})
	return s
}

// play plays one act and waits for rest.
func (s *stage) play(act Act, random *rand.Rand) (rest Rest) {
	rest.Act = act.String()
	s.moments = append(s.moments, time.Now().Truncate(time.Second))
	if s.loose {
		s.w.Storm(random, s.process)
	}
	if err := act.play(s); err != nil {
		rest.Refused = err.Error()
	}
	if s.loose {
		time.Sleep(stormy)
		s.w.Calm()
	}
	if err := s.w.Settle(quiet, patience); err != nil {
		rest.Unrest = fmt.Sprintf("no rest: %v", err)
	}
	rest.State = s.normalise()
	// The next act does not begin in the second of the last write.
	time.Sleep(2 * time.Second)
	return rest
}
