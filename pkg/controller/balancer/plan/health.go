// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/distribute"
)

const (
	defaultRecoveryDelay = 30 * time.Second
	// maxDoublings of the recovery delay.
	maxDoublings = 5
)

// health describes a target's replicas, and contains what the status remembers about them.
type health struct {
	observed, ready int64
	// notStarted is how many have failed to start in time, including those that were never created.
	notStarted int64
	// usable is how many replicas a blocked target is known to run, and failed how many failed to start
	// while it was blocked. Of other targets, they are not used.
	usable, failed int64
	// kept is how many of the others no probe is a reason to remove: they may run although their Nodes
	// are not ready, or have just started.
	kept    int64
	blocked bool

	unstartedSince, blockedSince, recoveredAt time.Time
	blocks                                    int32
	// again is when the result may change without an event; zero for never.
	again time.Time
}

// doctor examines the targets of one Balancer.
type doctor struct {
	now, back time.Time
	fallback  *v1alpha1.Fallback
	// stopped reports whether no target can be scaled now.
	stopped bool
}

// examine compares the replicas of a target with the requested number. A workload that does not
// exist lacks its whole share, which is base.
func (d doctor) examine(t Target, memory v1alpha1.TargetStatus, base int64) health {
	h := d.remembered(memory)
	if !t.Known && !t.Absent {
		h.observed, h.ready, h.notStarted = int64(memory.Observed), int64(memory.Ready), int64(memory.NotStarted)
		h.usable, h.failed = max(0, h.observed-h.notStarted), int64(memory.Fallback)
		h.blocked = d.fallback != nil && !h.blockedSince.IsZero()
		return h
	}
	h.observed, h.ready = t.counts()
	if d.fallback == nil {
		return health{observed: h.observed, ready: h.ready}
	}
	wanted := t.Current
	if t.Absent {
		wanted = base
	}
	started, late := d.countStarted(t, &h)
	missing := max(0, wanted-started)
	// A late replica that is not missed, as in a rollout, does not count against the target. What a
	// blocked target was already known to miss still counts if it is replaced.
	h.notStarted = min(late, missing)
	uncounted := missing >= d.quorum(wanted)
	if !h.blockedSince.IsZero() {
		h.notStarted = min(max(late, int64(memory.NotStarted)), missing)
		uncounted = missing > h.notStarted
	}
	if d.trackMissing(t, &h, uncounted, h.ready > int64(memory.Ready)); d.expired(h.unstartedSince) {
		h.notStarted = missing
	}
	d.decideBlocked(t, &h, wanted, late, base)
	// What others run for it stays until it can be used again.
	h.failed = max(1, h.notStarted, int64(memory.Fallback))
	return h
}

// countStarted counts the replicas that have started, and those that are late.
func (d doctor) countStarted(t Target, h *health) (started, late int64) {
	if t.Counted {
		return h.ready, 0
	}
	for _, r := range t.Replicas {
		switch since := d.waitingSince(r); {
		case d.started(r):
			started++
			if at := d.startOf(r); !h.unstartedSince.IsZero() && at.After(h.unstartedSince) && at.Sub(r.StartedAt) <= d.timeout() {
				h.unstartedSince = at // one that gets ready later has most likely been ready before
			}
		case r.OutOfStock || d.expired(since):
			late++
		default:
			h.wakeAt(d.timedSince(since).Add(d.timeout()))
		}
	}
	return started, late
}

// trackMissing records since when replicas that count are missing without progress: a quorum, or those
// that a blocked target was not known to miss. The time belongs to the target: a replica that is
// replaced does not restart it.
func (d doctor) trackMissing(t Target, h *health, counts, progress bool) {
	switch {
	case !counts:
		h.unstartedSince = time.Time{}
	case t.Settling: // requested a moment ago, so not late
	case h.unstartedSince.IsZero() || progress && t.Counted:
		h.unstartedSince = wholeSecond(d.now)
	}
	if !h.unstartedSince.IsZero() && !d.expired(h.unstartedSince) {
		h.wakeAt(d.timedSince(h.unstartedSince).Add(d.timeout()))
	}
}

// decideBlocked decides whether the target is blocked, and when it no longer is: once all requested
// replicas except less than a quorum are usable again, and none is late. A target with less than
// its share, which is base, has no more than its probe that could fail. The same may hold for one that
// cannot be scaled now, whose share is what it has.
func (d doctor) decideBlocked(t Target, h *health, wanted, late, base int64) {
	quorum := d.quorum(wanted)
	if !h.blockedSince.IsZero() {
		if probe := d.probeSize(); probe > 0 && (wanted < base || d.stopped || t.Hold != (Hold{})) {
			quorum = min(quorum, probe)
		}
		h.usable = d.proven(t, h)
		if h.blocked = max(wanted-h.usable, late) >= quorum; !h.blocked {
			h.blockedSince, h.recoveredAt = time.Time{}, wholeSecond(d.now)
		}
		return
	}
	if h.notStarted < quorum {
		return
	}
	h.blocks = d.blocksSince(h)
	h.blocked, h.blockedSince = true, wholeSecond(d.now)
	h.usable = d.proven(t, h)
}

// blocksSince counts this block together with earlier ones that it followed soon after a recovery.
func (d doctor) blocksSince(h *health) int32 {
	if d.now.Sub(h.recoveredAt) < 2*d.recoveryDelay(maxDoublings+1)+d.timeout() {
		return h.blocks + 1
	}
	return 1
}

// proven counts the running replicas of a blocked target. A replica that started after the target
// was blocked counts once it has been ready for a while, and is kept until then.
func (d doctor) proven(t Target, h *health) int64 {
	if t.Counted {
		return h.ready
	}
	delay, n := d.recoveryDelay(h.blocks), int64(0)
	for _, r := range t.Replicas {
		fresh, settled := r.StartedAt.Add(delay), r.Since.Add(delay)
		switch {
		case d.started(r) && (!d.startOf(r).After(h.blockedSince) || r.Ready && !settled.After(d.now)):
			n++
		case r.Ready:
			h.kept++
			h.wakeAt(settled)
		case r.Running && fresh.After(d.now):
			h.kept++
			h.wakeAt(fresh)
		case r.Unreachable:
			h.kept++
		}
	}
	return n
}

func (d doctor) started(r Replica) bool {
	if d.fallback.StartCriterion == v1alpha1.Ready {
		return r.Ready
	}
	return r.Running
}

// startOf returns when a replica that has started did so.
func (d doctor) startOf(r Replica) time.Time {
	if d.fallback.StartCriterion == v1alpha1.Ready && r.Since.After(r.StartedAt) {
		return r.Since
	}
	return r.StartedAt
}

// waitingSince returns since when a replica that has not started has been waiting to start.
func (d doctor) waitingSince(r Replica) time.Time {
	if r.Running && r.Since.After(r.Born) {
		return r.Since
	}
	return r.Born
}

// expired reports whether a timeout is over. Exactly at its end, it is not.
func (d doctor) expired(since time.Time) bool {
	return !since.IsZero() && d.now.Sub(d.timedSince(since)) > d.timeout()
}

// timedSince returns when a timeout begins that began before the API server was silent: afterwards.
func (d doctor) timedSince(since time.Time) time.Time {
	if d.back.After(since) {
		return d.back
	}
	return since
}

func (d doctor) timeout() time.Duration {
	if s := d.fallback.StartupTimeoutSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	if t := d.fallback.StartupTimeout; t != nil {
		return max(0, t.Duration)
	}
	return 0
}

func (d doctor) recoveryDelay(blocks int32) time.Duration { return RecoveryDelay(d.fallback, blocks) }

// RecoveryDelay is how long the new replicas of a target must be ready before they count, if it has
// been blocked this many times in a row. It doubles with each block that followed soon after a
// recovery.
func RecoveryDelay(f *v1alpha1.Fallback, blocks int32) time.Duration {
	delay := defaultRecoveryDelay
	if f != nil && f.RecoveryDelaySeconds != nil {
		delay = time.Duration(*f.RecoveryDelaySeconds) * time.Second
	}
	return delay << min(max(0, blocks-1), maxDoublings)
}

func (d doctor) quorum(wanted int64) int64 {
	quorum := int64(1)
	if w := d.fallback.BlockedWhen; w != nil {
		if w.MinCount != nil {
			quorum = max(quorum, int64(*w.MinCount))
		}
		if w.Percent != nil {
			quorum = max(quorum, (wanted*int64(*w.Percent)+99)/100)
		}
	}
	return quorum
}

func (d doctor) probeSize() int64 {
	if d.fallback == nil || d.fallback.Probe == nil {
		return -1
	}
	return max(1, int64(*d.fallback.Probe))
}

// expected returns how many of a number of replicas run, or will run.
func (h health) expected(replicas int64) int64 {
	return distribute.Health{Blocked: h.blocked, Usable: h.usable, Failed: h.failed}.Expected(replicas)
}

// asHealth returns what the distribution has to know. With a probe, a target keeps those replicas as
// well that may run: if all Nodes lose their API server, they are all that runs.
func (d doctor) asHealth(h health) distribute.Health {
	probe := d.probeSize()
	if probe >= 0 {
		probe = max(probe, h.kept)
	}
	return distribute.Health{Blocked: h.blocked, Usable: h.usable, Failed: h.failed, Probe: probe}
}

func (t Target) counts() (observed, ready int64) {
	if t.Counted {
		return max(0, t.Counts.Observed), max(0, t.Counts.Ready)
	}
	for _, r := range t.Replicas {
		if r.Ready {
			ready++
		}
	}
	return int64(len(t.Replicas)), ready
}

func (h *health) wakeAt(at time.Time) {
	if h.again.IsZero() || at.Before(h.again) {
		h.again = at
	}
}

func (d doctor) remembered(m v1alpha1.TargetStatus) health {
	return health{blocks: m.Blocks, unstartedSince: d.past(m.UnstartedSince), blockedSince: d.past(m.BlockedSince), recoveredAt: d.past(m.RecoveredAt)}
}

// past returns a time of the status, zero if there is none. One that lies ahead counts as now: it
// comes from a clock that was ahead, and a timeout would end that much later.
func (d doctor) past(t *metav1.Time) time.Time {
	switch latest := wholeSecond(d.now); {
	case t == nil:
		return time.Time{}
	case t.After(latest):
		return latest
	}
	return t.Time
}

// wholeSecond rounds a time up to the seconds that the status can store. A time rounded down would
// end waits too early.
func wholeSecond(t time.Time) time.Time {
	whole := t.Truncate(time.Second)
	if whole.Before(t) {
		whole = whole.Add(time.Second)
	}
	return whole
}
