// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/evenkeel/evenkeel/test/audit"
	"github.com/evenkeel/evenkeel/test/bench/internal/sleep"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

// footprint is what a process has taken: at most so many MiB of memory, and time of CPUs.
type footprint struct {
	memory float64
	cpu    time.Duration
}

func footprintOf(pid int) (footprint, error) {
	usage, err := localcluster.ReadUsage(pid)
	return footprint{usage.Peak, usage.CPU}, err
}

// silence is a time in which nobody wanted anything, and what our identity wrote in it, by verb and
// resource.
type silence struct {
	settled, lasted time.Duration
	writes          map[string]int
}

func (s silence) String() string {
	all := 0
	var what []string
	for _, key := range slices.Sorted(maps.Keys(s.writes)) {
		all += s.writes[key]
		what = append(what, fmt.Sprintf("%s %d", key, s.writes[key]))
	}
	return fmt.Sprintf("writes at rest, in %v, %.0f s after the last was ready: %d %s", s.lasted, s.settled.Seconds(), all, strings.Join(what, ", "))
}

// breath is how long nothing is to be written before a rest begins.
const breath = 10 * time.Second

// listen waits until our identity has stopped writing, for three minutes at most, and then counts
// what it writes.
func (l *lab) listen(ctx context.Context, rest time.Duration) (s silence, err error) {
	log, err := audit.Open(l.cluster.AuditLog())
	if err != nil {
		return s, err
	}
	defer log.Close()
	if _, err := written(log); err != nil {
		return s, err
	}
	begin := time.Now()
	for quiet := false; !quiet && time.Since(begin) < 3*time.Minute; {
		writes, err := during(ctx, breath, log)
		if err != nil {
			return s, err
		}
		quiet = len(writes) == 0
	}
	s.settled, s.lasted = time.Since(begin), rest
	s.writes, err = during(ctx, rest, log)
	return s, err
}

// during counts what is written in some time.
func during(ctx context.Context, d time.Duration, log *audit.Log) (map[string]int, error) {
	if err := sleep.WithContext(ctx, d); err != nil {
		return nil, err
	}
	return written(log)
}

// written counts what our identity has written since the log was last read.
func written(log *audit.Log) (map[string]int, error) {
	requests, err := log.Read(func(r audit.Request) bool { return r.User == identity && r.Writes() })
	writes := map[string]int{}
	for _, r := range requests {
		writes[r.Verb+" "+r.Resource]++
	}
	return writes, err
}
