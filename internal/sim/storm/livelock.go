// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"fmt"
	"time"

	"github.com/evenkeel/evenkeel/internal/sim"
)

// endless is a number of changes of one object at one moment that no controller needs.
const endless = 2000

// livelock detects that one object is changed again and again while no time passes. Virtual time
// would stop forever.
type livelock struct {
	moment  time.Time
	changes map[string]int
}

// observe counts a change, and describes the livelock that it is part of, if any.
func (l *livelock) observe(write sim.Write) string {
	if write.Effect != sim.Modified {
		return ""
	}
	if !write.Time.Equal(l.moment) {
		l.moment, l.changes = write.Time, map[string]int{}
	}
	object := write.Resource + " " + write.Namespace + "/" + write.Name
	if l.changes[object]++; l.changes[object] < endless {
		return ""
	}
	return fmt.Sprintf("livelock: %d changes of %s within one moment (%s), the last one by %s: %s %s",
		endless, object, write.Time.Format(time.RFC3339Nano), write.User, write.Verb, write.Subresource)
}

// hook ends the test binary at a livelock, because nothing in the bubble can.
func (l *livelock) hook(seed uint64) func(sim.Write) error {
	return func(write sim.Write) error {
		if what := l.observe(write); what != "" {
			go panic(fmt.Sprintf("seed %d: %s", seed, what)) // where no controller's recover catches it
			select {}
		}
		return nil
	}
}
