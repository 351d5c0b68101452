// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"math"
	"time"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// Delays before the field is written again, if another client writes it although it shows the
// result of bounds or of a share.
const (
	firstPause = time.Minute
	lastPause  = time.Hour
)

// FieldConflict is a conflict with clients that write spec.excessReplicas although it has no
// effect.
type FieldConflict struct {
	// Writes is how often this controller has overwritten the field.
	Writes int
	// Until then, the field is not overwritten again. If that time passes without another write,
	// the conflict has ended.
	Until time.Time
}

// showDerived makes the field show what is derived from other settings.
func (w *desired) showDerived(v View) {
	effective := int32(min(w.Excess, math.MaxInt32))
	if !v.Pruned {
		w.writeField(v, effective)
	}
	w.recorded, w.owners = nil, nil
	if effective > 0 && !v.Pruned { // a value that no field shows cannot be given up
		w.recorded = &effective
	}
	w.updateWitness(v)
}

// writeField writes the field if it shows something else: at once if this controller wrote it, and
// after a delay if another client did.
func (w *desired) writeField(v View, effective int32) {
	field := v.Deployment.Spec.ExcessReplicas
	w.fieldConflict = v.Memory.FieldConflict
	waiting := v.Now.Before(w.fieldConflict.Until)
	switch {
	case field == nil:
		w.field, w.restored = &effective, w.recorded != nil
	case *field == effective && !waiting:
		w.fieldConflict = FieldConflict{}
	case *field == effective:
	case w.recorded == nil && *field == 0 || w.recorded != nil && *field == *w.recorded:
		w.field = &effective
	case waiting:
		w.lastWriter = lastWriter(v.Deployment)
	default:
		w.field, w.lastWriter = &effective, lastWriter(v.Deployment)
		w.fieldConflict.Until = v.Now.Add(min(lastPause, firstPause<<min(w.fieldConflict.Writes, 6)))
		w.fieldConflict.Writes++
	}
}

// lastWriter returns the client that wrote the field last.
func lastWriter(d *v1alpha1.MachineDeployment) string {
	name, at := "another client", time.Time{}
	for _, f := range d.ManagedFields {
		if f.Manager != FieldManager && f.Subresource == "" && f.Time != nil && claims(f) && !f.Time.Time.Before(at) {
			name, at = f.Manager, f.Time.Time
		}
	}
	return name
}

// conflictMessage describes the conflict; it is empty until a client has written the field again.
func (w desired) conflictMessage(v View) string {
	if w.lastWriter == "" || v.Memory.FieldConflict.Writes == 0 {
		return ""
	}
	return fmt.Sprintf("; spec.excessReplicas is written by %s and has no effect: bounds or the pool's excess count. Remove the field there", w.lastWriter)
}
