// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	return fmt.Sprintf("; %s writes spec.excessReplicas, which has no effect beside bounds or a pool's excess: remove the field there", w.lastWriter)
}

// FieldManager is the name with which the controller, as machine-controller-manager's, writes
// MachineDeployments. Neither of them asks for an excess or removes one.
const FieldManager = "machine-controller-manager"

// maxOwners is how many owners of a field are remembered.
const maxOwners = 8

// appliers returns the field managers that own spec.excessReplicas by a server-side apply, sorted.
func appliers(d *v1alpha1.MachineDeployment) []string {
	var all []string
	for _, f := range d.ManagedFields {
		if f.Operation == metav1.ManagedFieldsOperationApply && f.Subresource == "" && f.Manager != FieldManager && claims(f) {
			all = append(all, f.Manager)
		}
	}
	slices.Sort(all)
	return all[:min(len(all), maxOwners)]
}

// extensionManagers is what the names begin with under which the extensions of Gardener write. Of
// these, the one that reconciles Workers reduces replicas to the maximum of the Worker, and for no
// other reason but hibernation.
const extensionManagers = "gardener-extension-"

// clamped reports whether an extension of Gardener wrote spec.replicas last.
func clamped(d *v1alpha1.MachineDeployment) bool {
	return slices.ContainsFunc(d.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Subresource == "" && strings.HasPrefix(f.Manager, extensionManagers) && contains(f, "f:replicas")
	})
}

// claims reports whether an entry contains spec.excessReplicas.
func claims(f metav1.ManagedFieldsEntry) bool { return contains(f, "f:excessReplicas") }

// contains reports whether an entry contains a field of the spec.
func contains(f metav1.ManagedFieldsEntry, field string) bool {
	var fields struct {
		Spec map[string]json.RawMessage `json:"f:spec"`
	}
	if json.Unmarshal(f.FieldsV1.GetRawBytes(), &fields) != nil {
		return false
	}
	_, is := fields.Spec[field]
	return is
}

// isRestored reports whether spec.excessReplicas is this controller's, as after it was restored.
func isRestored(d *v1alpha1.MachineDeployment) bool {
	return slices.ContainsFunc(d.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == FieldManager && f.Subresource == "" && claims(f)
	})
}

// restoreOwners gives a field that was dropped and restored back to those who had applied it, and
// only to them. Otherwise, an apply without the field would not remove it. It requires a write of
// its own: the one that restores the field takes it from all other owners.
func restoreOwners(d *v1alpha1.MachineDeployment, owners []string, now time.Time) []metav1.ManagedFieldsEntry {
	all := slices.Clone(d.ManagedFields)
	for i, f := range all {
		if f.Manager == FieldManager && f.Subresource == "" && claims(f) {
			all[i].FieldsV1 = claimField(f.FieldsV1, false)
		}
	}
	for _, owner := range owners {
		at := slices.IndexFunc(all, func(f metav1.ManagedFieldsEntry) bool {
			return f.Manager == owner && f.Operation == metav1.ManagedFieldsOperationApply && f.Subresource == ""
		})
		if at < 0 {
			at = len(all)
			all = append(all, metav1.ManagedFieldsEntry{
				Manager: owner, Operation: metav1.ManagedFieldsOperationApply, Time: &metav1.Time{Time: now},
				APIVersion: v1alpha1.SchemeGroupVersion.String(), FieldsType: "FieldsV1",
			})
		}
		all[at].FieldsV1 = claimField(all[at].FieldsV1, true)
	}
	return all
}

// claimField returns a set of fields with or without spec.excessReplicas.
func claimField(fields *metav1.FieldsV1, is bool) *metav1.FieldsV1 {
	all := map[string]any{}
	if fields != nil && json.Unmarshal(fields.GetRawBytes(), &all) != nil {
		return fields // the API server wrote it, so it can be read
	}
	spec, there := all["f:spec"].(map[string]any)
	if !there {
		spec = map[string]any{}
		all["f:spec"] = spec
	}
	delete(spec, "f:excessReplicas")
	if is {
		spec["f:excessReplicas"] = map[string]any{}
	}
	raw, err := json.Marshal(all)
	if err != nil {
		panic(fmt.Sprintf("encode fields: %v", err)) // they were decoded, so they always encode
	}
	return &metav1.FieldsV1{Raw: raw}
}
