// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"fmt"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/pkg/apis/reason"
)

// Summary describes the reserve after the plan.
type Summary struct {
	// Serving counts healthy machines that serve, Reserve those in reserve, and Ready those of them
	// that workload can use at once.
	Serving, Reserve, Ready int
	Reason                  Reason
	// Message describes the reason with its numbers. It changes only if they do.
	Message string
}

// Reason is the most important fact about a reserve.
type Reason string

const (
	// NotWanted: no excess is requested, and there is no reserve.
	NotWanted Reason = reason.NotWanted
	// Complete: the reserve has the desired size, and all its machines are ready.
	Complete Reason = reason.Complete
	// AtMax: complete, but smaller than requested, because of max.
	AtMax Reason = reason.AtMax
	// ReplicasLowered: complete, but smaller than requested, because a client reduced replicas that
	// include the reserve.
	ReplicasLowered Reason = reason.ReplicasLowered
	// AboveMax: R alone is above max, which leaves no room for a reserve.
	AboveMax Reason = reason.AboveMax
	// NotReady: the reserve has the desired size, but some machines still boot or are unhealthy.
	NotReady Reason = reason.NotReady
	// Growing: machines are being created.
	Growing Reason = reason.Growing
	// Shrinking: machines are about to be deleted, or wait until no pod runs there.
	Shrinking Reason = reason.Shrinking
	// Protected: the reserve is larger than desired, because machines are preserved or have a
	// deletion priority above the default.
	Protected Reason = reason.Protected
	// Refilling: fewer than R machines serve. They take precedence.
	Refilling Reason = reason.Refilling
	// Unhealthy: unhealthy machines that have neither recovered nor been replaced take places of
	// the reserve.
	Unhealthy Reason = reason.Unhealthy
	// SurplusServing: more than R machines serve, and none of them is empty.
	SurplusServing Reason = reason.SurplusServing
	// AwaitingDeletion: leaving machines take the room below max.
	AwaitingDeletion Reason = reason.AwaitingDeletion
	// RollingOut: the reserve has its size when the rollout ends.
	RollingOut Reason = reason.RollingOut
	// CannotBeMade: reserve machines could not be created. They are tried again.
	CannotBeMade Reason = reason.CannotBeMade
	// RestoringReplicas: R is being restored, because a client named a reserve machine for deletion.
	RestoringReplicas Reason = reason.RestoringReplicas
)

func (r *round) summarize() {
	t := r.countMachines()
	reason := r.reason(t)
	r.plan.Summary = Summary{
		Serving: t.serving, Reserve: t.reserve, Ready: t.ready,
		Reason: reason, Message: r.message(t, reason),
	}
	r.plan.Again = r.nextCheck()
}

// reason returns why the reserve is not as desired, or what there is to report if it is.
func (r *round) reason(t counts) Reason {
	switch {
	case r.restored > 0:
		return RestoringReplicas
	case r.view.Wish > 0 && r.replicas > r.max:
		return AboveMax
	case r.stuck > 0 || r.plan.Retry.Failures > 0:
		return CannotBeMade
	case t.serving > r.replicas:
		return SurplusServing
	case t.serving < r.replicas:
		return Refilling
	case t.reserve != r.excess || t.live != r.plan.Total:
		return r.obstacle(t)
	case t.ready < t.reserve:
		return NotReady
	case r.excess < r.view.Wish && r.reduced:
		return ReplicasLowered
	case r.excess < r.view.Wish:
		return AtMax
	case r.excess == 0:
		return NotWanted
	}
	return Complete
}

// obstacle returns why a reserve is larger or smaller than desired while R machines serve.
func (r *round) obstacle(t counts) Reason {
	switch {
	case r.view.Rollout:
		return RollingOut
	case t.reserve > r.excess && t.reserve <= r.target:
		return Protected
	case t.reserve > r.excess:
		return Shrinking
	case t.sick > 0:
		return Unhealthy
	case r.plan.Room < r.plan.Total-t.live:
		return AwaitingDeletion
	}
	return Growing
}

func (r *round) message(t counts, reason Reason) string {
	text := fmt.Sprintf("%d of %d machines serve, %d of %d in reserve, %d of these ready",
		t.serving, r.replicas, t.reserve, r.excess, t.ready)
	switch reason {
	case Complete, NotWanted, NotReady, Growing, Refilling:
		return text
	case AtMax, AboveMax:
		return fmt.Sprintf("%s; max %d leaves room for %d of the %d desired", text, r.max, r.excess, r.view.Wish)
	case CannotBeMade:
		return fmt.Sprintf("%s; failures to create machines in a row: %d, next try after %s",
			text, r.plan.Retry.Failures, r.plan.Retry.Until.UTC().Format(time.RFC3339))
	case ReplicasLowered:
		if r.plan.Lowered.Lasting {
			return fmt.Sprintf("%s; Gardener reduced replicas, which include the reserve, to %d; this counts as max until replicas or the bounds are raised",
				text, r.replicas+r.plan.Applied.Counted)
		}
		return fmt.Sprintf("%s; a client reduced replicas, which include the reserve, to %d; next try to reach a reserve of %d after %s",
			text, r.replicas+r.plan.Applied.Counted, r.view.Wish, r.plan.Lowered.Until.UTC().Format(time.RFC3339))
	case SurplusServing:
		return text + "; " + r.surplusMessage()
	}
	return text + "; " + map[Reason]string{
		Shrinking:         "surplus machines are being deleted",
		Protected:         "some are preserved, or have a deletion priority above the default",
		Unhealthy:         "the other places are taken by machines in phase Unknown or Failed",
		AwaitingDeletion:  "waiting for deletions to finish",
		RollingOut:        "the reserve has its size when the rollout ends",
		RestoringReplicas: "a client marked a reserve machine for deletion, so replicas are being restored",
	}[reason]
}

// surplusMessage describes how a surplus ends.
func (r *round) surplusMessage() string {
	if r.view.Unhealthy {
		return "no machine is drained while so many Nodes of the cluster are not ready; the first empty one enters the reserve"
	}
	if why := r.pinned(); why != "" && r.isImpatient() {
		return "no machine is drained, because each one runs a pod that must not be evicted now (" + why + "); the first empty one enters the reserve"
	}
	return "the first empty machine enters the reserve; after --surplus-patience, one is drained"
}

// nextCheck returns the time until the plan changes without an event.
func (r *round) nextCheck() time.Duration {
	var soonest time.Duration
	at := func(t time.Time) {
		if wait := t.Sub(r.view.Now); wait > 0 && (soonest == 0 || wait < soonest) {
			soonest = wait
		}
	}
	if since := r.plan.SurplusSince; !since.IsZero() {
		at(since.Add(r.view.Patience))
	}
	if r.view.Unhealthy && r.plan.Summary.Serving > r.replicas {
		at(r.view.Now.Add(recheck))
	}
	if r.plan.Retry.Failures > 0 {
		at(r.plan.Retry.Until)
	}
	if lowered := r.plan.Lowered; lowered.Times > 0 {
		at(lowered.Until)
		if !lowered.Lasting {
			at(lowered.Until.Add(lastRetry)) // if a rollout begins later, it must be forgotten by then
		}
	}
	for _, m := range r.machines {
		if r.view.BootPatience > 0 && m.Reserve && m.starting() && m.Phase != mcm.MachineTerminating {
			at(m.Created.Add(r.view.BootPatience))
		}
	}
	return soonest
}
