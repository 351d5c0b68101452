// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// footprint is what a process has taken: at most so many MiB of memory, and time of CPUs.
type footprint struct {
	memory float64
	cpu    time.Duration
}

func footprintOf(pid int) (f footprint, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return f, err
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscan(peak, &f.memory); err != nil {
		return f, fmt.Errorf("read peak memory: %w", err)
	}
	f.memory /= 1024 // the kernel says KiB
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return f, err
	}
	// User and system time, in hundredths of a second, are the 12th and 13th number behind the name and the state.
	_, numbers, _ := strings.Cut(string(stat), ") ")
	times := strings.Fields(numbers)[11:13]
	var user, system time.Duration
	if _, err := fmt.Sscan(strings.Join(times, " "), &user, &system); err != nil {
		return f, fmt.Errorf("read CPU time: %w", err)
	}
	f.cpu = (user + system) * (time.Second / 100)
	return f, nil
}

// silence is a time in which nobody wanted anything, and what our identity wrote in it, by verb and resource.
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

// listen waits until our identity has stopped writing, for three minutes at most, and then counts what it writes.
func (l *lab) listen(ctx context.Context, rest time.Duration) (s silence, err error) {
	file, err := os.Open(l.cluster.AuditLog())
	if err != nil {
		return s, err
	}
	defer file.Close()
	if _, err := file.Seek(0, io.SeekEnd); err != nil {
		return s, err
	}
	t := trail{lines: bufio.NewReader(file)}
	begin := time.Now()
	for quiet := false; !quiet && time.Since(begin) < 3*time.Minute; {
		writes, err := t.during(ctx, breath)
		if err != nil {
			return s, err
		}
		quiet = len(writes) == 0
	}
	s.settled, s.lasted = time.Since(begin), rest
	s.writes, err = t.during(ctx, rest)
	return s, err
}

// trail is an audit log that grows, from where it was when it was opened.
type trail struct {
	lines *bufio.Reader
	begun []byte // a line without its end, so far
}

// during counts what is written in some time.
func (t *trail) during(ctx context.Context, d time.Duration) (map[string]int, error) {
	select {
	case <-time.After(d):
		return t.writes()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// writes are those of our identity since it was last asked, but for Leases and Events.
func (t *trail) writes() (map[string]int, error) {
	writes := map[string]int{}
	for {
		part, err := t.lines.ReadBytes('\n')
		t.begun = append(t.begun, part...)
		if errors.Is(err, io.EOF) {
			return writes, nil
		} else if err != nil {
			return nil, err
		}
		var e auditv1.Event
		if err := json.Unmarshal(t.begun, &e); err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		t.begun = t.begun[:0]
		if written(e) {
			writes[e.Verb+" "+e.ObjectRef.Resource]++
		}
	}
}

func written(e auditv1.Event) bool {
	return e.Stage == auditv1.StageResponseComplete && e.User.Username == identity && e.ObjectRef != nil &&
		slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb) &&
		e.ObjectRef.Resource != "leases" && e.ObjectRef.Resource != "events"
}
