// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"fmt"
	"math"
	"time"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// A field that somebody else writes, though it shows what bounds or a share come to, is written over after these pauses.
const (
	firstPause = time.Minute
	lastPause  = time.Hour
)

// Contest is with whoever writes spec.excessReplicas where it has no effect.
type Contest struct {
	// Writes is how often the field was written over.
	Writes int
	// Until then it is not written over again; when that has passed without another write, the contest has ended.
	Until time.Time
}

// show has the field say what is derived from other wishes.
func (w *wish) show(v View) {
	effective := int32(min(w.Excess, math.MaxInt32))
	if !v.Pruned {
		w.display(v, effective)
	}
	w.recorded, w.owners = nil, nil
	if effective > 0 {
		w.recorded = &effective
	}
}

// display writes the field where it says something else: what we wrote ourselves at once, what others wrote after a pause.
func (w *wish) display(v View, effective int32) {
	field := v.Deployment.Spec.ExcessReplicas
	w.contest = v.Memory.Contest
	waiting := v.Now.Before(w.contest.Until)
	switch {
	case field == nil:
		w.field, w.restored = &effective, w.recorded != nil
	case *field == effective && !waiting:
		w.contest = Contest{}
	case *field == effective:
	case w.recorded == nil && *field == 0 || w.recorded != nil && *field == *w.recorded:
		w.field = &effective
	case waiting:
		w.rival = rival(v.Deployment)
	default:
		w.field, w.rival = &effective, rival(v.Deployment)
		w.contest.Until = v.Now.Add(min(lastPause, firstPause<<min(w.contest.Writes, 6)))
		w.contest.Writes++
	}
}

// rival names who wrote the field last.
func rival(d *v1alpha1.MachineDeployment) string {
	if all := owners(d); len(all) > 0 {
		return all[0].Manager
	}
	return "another client"
}

// contested is what to say about a contest; empty until somebody has written the field again.
func (w wish) contested(v View) string {
	if w.rival == "" || v.Memory.Contest.Writes == 0 {
		return ""
	}
	return fmt.Sprintf("; spec.excessReplicas is written by %s and has no effect: bounds or the pool's excess count. Remove the field there", w.rival)
}
