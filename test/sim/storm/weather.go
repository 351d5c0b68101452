// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/evenkeel/evenkeel/test/sim"
)

// weather is everything that goes wrong for some processes, until Calm.
type weather struct {
	world     *World
	servers   []*sim.Server
	users     []string
	processes []*Process
	stop      chan struct{}
	ended     sync.WaitGroup
}

// Storm makes everything go wrong for some processes that can go wrong in a cluster and its
// network, in each cluster separately, until Calm: late watches, slow requests, answers that do not
// come from the server, stale caches, late bookmarks, and now and then an outage, a silence, a
// compaction, watches that break or stop, a jump of the server's clock, a process that is stopped
// or killed.
func (w *World) Storm(random *rand.Rand, processes ...*Process) {
	v := &weather{world: w, servers: append(w.servers(), w.Others...), processes: processes, stop: make(chan struct{})}
	for _, p := range processes {
		if !slices.Contains(v.users, p.name) {
			v.users = append(v.users, p.name)
		}
	}
	w.storm, w.stormed = v, true
	for _, s := range v.servers {
		v.lasting(s, random)
	}
	gusts := rand.New(rand.NewPCG(random.Uint64(), 0)) // now, so that each seed has the same ones each time
	v.ended.Go(func() { v.dealGusts(gusts) })
}

// Calm ends a Storm. It returns when everything that the Storm started has ended.
func (w *World) Calm() {
	v := w.storm
	if v == nil {
		return
	}
	w.storm = nil
	close(v.stop)
	v.ended.Wait()
	for _, s := range v.servers {
		s.Trouble("", sim.Trouble{}, v.users...)
		s.Stale("", 0, v.users...)
		s.Bookmarks(0, v.users...)
		s.Lag("", nil, v.users...)
		s.LatencyOf(nil)
		s.Skew(0)
	}
}

// lasting sets the faults that last all the time.
func (v *weather) lasting(s *sim.Server, random *rand.Rand) {
	s.Lag("", sim.Uniformly(random.Uint64(), 0, time.Duration(random.Int64N(int64(3*time.Second)))+1), v.users...)
	s.Trouble("", sim.Trouble{Reads: 0.1 + 0.2*random.Float64(), Writes: 0.25 + 0.25*random.Float64()}, v.users...)
	s.Stale("", time.Duration(random.IntN(600)+60)*time.Second, v.users...)
	s.Bookmarks(time.Duration(2+random.IntN(9))*time.Minute, v.users...)
	slow := rand.New(rand.NewPCG(random.Uint64(), 0))
	s.LatencyOf(func(r sim.Request) (before, after time.Duration) {
		if !slices.Contains(v.users, r.User) {
			return time.Millisecond, time.Millisecond
		}
		return time.Duration(slow.IntN(20)) * time.Millisecond, time.Duration(slow.IntN(20)) * time.Millisecond
	})
}

// gust is one fault in one of the clusters, and how it ends.
type gust func(v *weather, s *sim.Server, random *rand.Rand) (end func())

var gusts = []gust{
	func(_ *weather, s *sim.Server, _ *rand.Rand) func() { s.Compact(); return nil },
	func(v *weather, s *sim.Server, _ *rand.Rand) func() {
		// At this moment there may be none, for example soon after an outage.
		for range 60 {
			if s.BreakWatches(v.users...) > 0 || !v.sleepUntilEnd(time.Second) {
				break
			}
		}
		return nil
	},
	func(v *weather, s *sim.Server, _ *rand.Rand) func() {
		s.Down(true, v.users...)
		return func() { s.Down(false, v.users...) }
	},
	func(v *weather, s *sim.Server, _ *rand.Rand) func() {
		s.Silence(true, v.users...)
		return func() { s.Silence(false, v.users...) }
	},
	func(v *weather, s *sim.Server, _ *rand.Rand) func() {
		s.Hold("", v.users...)
		return func() { s.Release("", v.users...) }
	},
	func(_ *weather, s *sim.Server, random *rand.Rand) func() {
		s.Skew(time.Duration(random.IntN(240)-120) * time.Second)
		return nil
	},
	func(v *weather, _ *sim.Server, random *rand.Rand) func() {
		v.randomProcess(random).CrashFor(time.Duration(random.IntN(30)) * time.Second)
		v.world.kills++
		return nil
	},
	func(v *weather, _ *sim.Server, random *rand.Rand) func() {
		p := v.randomProcess(random)
		p.Freeze()
		v.world.stills++
		return p.Thaw
	},
}

func (v *weather) randomProcess(random *rand.Rand) *Process {
	return v.processes[random.IntN(len(v.processes))]
}

// dealGusts deals gusts to the clusters, each one before any is repeated.
func (v *weather) dealGusts(random *rand.Rand) {
	var dealt []int
	for {
		if !v.sleepUntilEnd(time.Duration(3+random.IntN(25)) * time.Second) {
			return
		}
		if len(dealt) == 0 {
			dealt = random.Perm(len(gusts) * len(v.servers))
		}
		g, s := gusts[dealt[0]/len(v.servers)], v.servers[dealt[0]%len(v.servers)]
		dealt = dealt[1:]
		if end := g(v, s, random); end != nil {
			v.sleepUntilEnd(time.Duration(1+random.IntN(60)) * time.Second)
			end()
		}
	}
}

// sleepUntilEnd reports whether it slept until the end.
func (v *weather) sleepUntilEnd(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-v.stop:
		return false
	}
}
