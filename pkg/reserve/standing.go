// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"fmt"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/pkg/apis/reason"
)

// Standing is where the reserve stands once the plan is carried out.
type Standing struct {
	// Serving counts machines that serve and are not sick, Reserve those in reserve, Ready those of them that workload
	// can have at once.
	Serving, Reserve, Ready int
	Reason                  Reason
	// Message says the reason with its numbers. It is stable: it changes only when they do.
	Message string
}

// Reason is the most important thing to say about a reserve.
type Reason string

const (
	// NotWanted: no excess, and no reserve.
	NotWanted Reason = reason.NotWanted
	// Complete: as many machines in reserve as wanted, all ready.
	Complete Reason = reason.Complete
	// AtMax: complete, but less than wished for, because of max.
	AtMax Reason = reason.AtMax
	// ReplicasLowered: complete, but less than wished for, because a client reduced replicas that include it.
	ReplicasLowered Reason = reason.ReplicasLowered
	// AboveMax: R alone is above max, so there is no room for a reserve.
	AboveMax Reason = reason.AboveMax
	// NotReady: as many as wanted, but some still boot or are sick.
	NotReady Reason = reason.NotReady
	// Growing: machines are being made.
	Growing Reason = reason.Growing
	// Shrinking: machines are about to go, or the lens' store has yet to show that they are the first to go.
	Shrinking Reason = reason.Shrinking
	// Outranked: the reserve cannot shrink, because a machine that serves would go before one in reserve.
	Outranked Reason = reason.Outranked
	// Kept: more are in reserve than wanted, because some are preserved or have somebody else's priority.
	Kept Reason = reason.Kept
	// Refilling: fewer than R machines serve; they come first.
	Refilling Reason = reason.Refilling
	// Unhealthy: sick machines that are neither back nor replaced hold places of the reserve.
	Unhealthy Reason = reason.Unhealthy
	// Overstaying: more than R machines serve and none of them is empty.
	Overstaying Reason = reason.Overstaying
	// Crowded: machines that are still leaving hold the room below max, or would freeze the MachineDeployment.
	Crowded Reason = reason.Crowded
	// RollingOut: the excess changes once the rollout is over.
	RollingOut Reason = reason.RollingOut
	// CannotBeMade: reserve machines could not be made; they are tried again.
	CannotBeMade Reason = reason.CannotBeMade
	// Named: R is being given back for a reserve machine that was named for deletion.
	Named Reason = reason.NamedInReserve
)

func (r *round) explain() {
	t := r.tally()
	reason := r.reason(t)
	r.plan.Standing = Standing{
		Serving: t.serving, Reserve: t.reserve, Ready: t.ready,
		Reason: reason, Message: r.message(t, reason),
	}
	r.plan.Again = r.again()
}

// reason says what there is to say when the numbers are as they should be, or else what is in the way.
func (r *round) reason(t tally) Reason {
	switch {
	case len(r.plan.Returned) > 0 && !r.counting:
		return Named
	case r.Wish > 0 && r.Replicas > r.Max:
		return AboveMax
	case r.stuck > 0 || r.plan.Retry.Failures > 0:
		return CannotBeMade
	case t.serving > r.Replicas:
		return Overstaying
	case t.serving < r.Replicas:
		return Refilling
	case t.reserve != r.Excess || t.present != r.shown || r.plan.Applied != r.Applied:
		return r.obstacle(t)
	case t.ready < t.reserve:
		return NotReady
	case r.Excess < r.Wish && r.reduced:
		return ReplicasLowered
	case r.Excess < r.Wish:
		return AtMax
	case r.Excess == 0:
		return NotWanted
	}
	return Complete
}

// obstacle says why a reserve is larger or smaller than wanted while R machines serve.
func (r *round) obstacle(t tally) Reason {
	applied := r.plan.Applied.Excess
	switch {
	case r.Rollout:
		return RollingOut
	case t.reserve > r.Excess && r.target > r.Excess && applied <= r.target:
		return Kept
	case t.reserve > r.Excess && r.outranked():
		return Outranked
	case t.reserve > r.Excess:
		return Shrinking
	case t.reserve < r.Excess && t.sick > 0:
		return Unhealthy
	case applied < r.target && t.reserve < r.Excess:
		return Crowded
	case t.reserve < r.Excess:
		return Growing
	case t.sick > 0:
		return Unhealthy
	}
	return Shrinking
}

// outranked says that the victims have what it takes to go first, and yet do not.
func (r *round) outranked() bool {
	if r.plan.Applied.Excess <= r.target || len(r.plan.Priorities) > 0 || r.Behind {
		return false
	}
	for i := range r.machines {
		if r.victim[i] && !r.mayGo(i) {
			return false
		}
	}
	return len(r.plan.Victims) > 0
}

func (r *round) message(t tally, reason Reason) string {
	text := fmt.Sprintf("%d of %d machines serve, %d of %d in reserve, %d of these ready",
		t.serving, r.Replicas, t.reserve, r.Excess, t.ready)
	switch reason {
	case Complete, NotWanted, NotReady, Growing, Refilling:
		return text
	case AtMax, AboveMax:
		return fmt.Sprintf("%s; max %d leaves room for %d of the %d desired", text, r.Max, r.Excess, r.Wish)
	case CannotBeMade:
		if r.plan.Retry.Failures == 0 {
			return text + "; waiting to reduce the applied excess by the machines that cannot be created"
		}
		return fmt.Sprintf("%s; failures in a row: %d, next try after %s",
			text, r.plan.Retry.Failures, r.plan.Retry.Until.UTC().Format(time.RFC3339))
	case ReplicasLowered:
		return fmt.Sprintf("%s; replicas include the reserve, and a client reduced them to %d: next try to reach %d after %s",
			text, r.Replicas+r.plan.Applied.Counted, r.Wish, r.plan.Lowered.Until.UTC().Format(time.RFC3339))
	case Overstaying:
		return text + "; " + r.whyOverstaying()
	}
	return text + "; " + map[Reason]string{
		Shrinking:  "waiting for surplus machines to be deleted",
		Outranked:  "a serving machine would be deleted before those in reserve: check its priority and its phase",
		Kept:       "some are preserved, or have a deletion priority that Evenkeel did not set",
		Unhealthy:  "machines that are Unknown or Failed take the other places",
		Crowded:    "waiting for deletions to finish",
		RollingOut: "the excess changes after the rollout",
		Named:      "a client named a reserve machine for deletion, so replicas are being restored",
	}[reason]
}

// whyOverstaying says how a surplus ends.
func (r *round) whyOverstaying() string {
	switch {
	case r.Unhealthy:
		return "no machine is drained while so many Nodes of the cluster are not ready; the first empty one enters the reserve"
	case r.pinned():
		return "no machine is drained, because each candidate runs a pod that must not be evicted; the first empty one enters the reserve"
	}
	return "the first empty machine enters the reserve; after --surplus-patience, one is drained"
}

// again is when time alone changes the plan.
func (r *round) again() time.Duration {
	var soonest time.Duration
	at := func(t time.Time) {
		if wait := t.Sub(r.Now); wait > 0 && (soonest == 0 || wait < soonest) {
			soonest = wait
		}
	}
	if since := r.plan.SurplusSince; !since.IsZero() {
		at(since.Add(r.Patience))
	}
	if r.Unhealthy && r.plan.Standing.Serving > r.Replicas {
		at(r.Now.Add(recheck))
	}
	if r.plan.Retry.Failures > 0 {
		at(r.plan.Retry.Until)
	}
	if r.plan.Lowered.Times > 0 {
		at(r.plan.Lowered.Until)
	}
	for _, m := range r.machines {
		if r.BootPatience > 0 && m.Reserve && m.booting() && m.Phase != mcm.MachineTerminating {
			at(m.Born.Add(r.BootPatience))
		}
	}
	return soonest
}
