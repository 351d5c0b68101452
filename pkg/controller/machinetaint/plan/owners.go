// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// FieldManager is the name with which the controller, and machine-controller-manager's controllers
// beside it, write MachineDeployments. Neither of them asks for an excess or removes one.
const FieldManager = "machine-controller-manager"

// maxOwners is how many owners of a field are remembered: those that wrote last.
const maxOwners = 8

// owners returns the field managers that claim spec.excessReplicas, those that wrote last first.
func owners(d *v1alpha1.MachineDeployment) []v1alpha1.ExcessOwner {
	var all []v1alpha1.ExcessOwner
	for _, f := range writers(d) {
		if claims(f) {
			all = append(all, v1alpha1.ExcessOwner{Manager: f.Manager, Operation: f.Operation, Time: metav1.Time{Time: f.Time.UTC()}})
		}
	}
	slices.SortFunc(all, func(a, b v1alpha1.ExcessOwner) int {
		return cmp.Or(b.Time.Compare(a.Time.Time), cmp.Compare(a.Manager, b.Manager), cmp.Compare(a.Operation, b.Operation))
	})
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

// writers returns the entries of clients that write the object itself, without this process.
func writers(d *v1alpha1.MachineDeployment) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(slices.Clone(d.ManagedFields), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == FieldManager || f.Subresource != "" || f.Time == nil
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

// abandoningOwner returns the owner that gave up spec.excessReplicas, which means that it asks for
// none: one that has written the object since it was seen to own the field, and no longer claims
// it. A server-side apply gives up what it does not contain. A client that updates claims only what
// it changes, so it gave the field up only if the field is gone and no other client wrote after it.
// In all other cases the field was lost: the write of another client dropped it, or the API server
// did.
func abandoningOwner(d *v1alpha1.MachineDeployment, before []v1alpha1.ExcessOwner) (owner string, is bool) {
	all := writers(d)
	for _, f := range all {
		wrote := slices.ContainsFunc(before, func(o v1alpha1.ExcessOwner) bool {
			return o.Manager == f.Manager && o.Operation == f.Operation && f.Time.After(o.Time.Time)
		})
		if !wrote || claims(f) {
			continue
		}
		later := func(other metav1.ManagedFieldsEntry) bool {
			return other.Manager != f.Manager && !other.Time.Before(f.Time)
		}
		if f.Operation == metav1.ManagedFieldsOperationApply || d.Spec.ExcessReplicas == nil && !slices.ContainsFunc(all, later) {
			return f.Manager, true
		}
	}
	return vanishedOwner(d, all, before)
}

// vanishedOwner returns the owner that gave up spec.excessReplicas and owned nothing else: a
// server-side apply that contains nothing leaves no entry. If another client wrote after the owner
// was last seen, that write may have dropped the field, and its owner's entry with it.
func vanishedOwner(d *v1alpha1.MachineDeployment, all []metav1.ManagedFieldsEntry, before []v1alpha1.ExcessOwner) (owner string, is bool) {
	if d.Spec.ExcessReplicas != nil {
		return "", false
	}
	for _, o := range before {
		hides := func(f metav1.ManagedFieldsEntry) bool {
			return f.Manager == o.Manager && f.Operation == o.Operation || !f.Time.Before(&o.Time)
		}
		if o.Operation == metav1.ManagedFieldsOperationApply && !slices.ContainsFunc(all, hides) {
			return o.Manager, true
		}
	}
	return "", false
}

// restoreOwners gives a field that was dropped and restored back to its owners, and only to them.
// Otherwise an apply without the field would change nothing, and so would not show that the owner
// gives it up. It requires a write of its own: the one that restores the field takes it from all
// other owners. An owner without an entry gets one from the second before that write: earlier
// writes of other clients do not hide that the owner gives the field up, nor does an apply within
// the same second, because the API server records whole seconds.
func restoreOwners(d *v1alpha1.MachineDeployment, before []v1alpha1.ExcessOwner, now time.Time) []metav1.ManagedFieldsEntry {
	if len(before) == 0 {
		return nil
	}
	all, restored := slices.Clone(d.ManagedFields), metav1.Time{Time: now}
	for i, f := range all {
		if f.Manager == FieldManager && claims(f) {
			all[i].FieldsV1 = claimField(f.FieldsV1, false)
			restored = ptr.Deref(f.Time, restored)
		}
	}
	earlier := metav1.Time{Time: restored.Add(-time.Second)}
	for _, o := range before {
		at := slices.IndexFunc(all, func(f metav1.ManagedFieldsEntry) bool {
			return f.Manager == o.Manager && f.Operation == o.Operation && f.Subresource == ""
		})
		if at < 0 {
			at = len(all)
			all = append(all, metav1.ManagedFieldsEntry{
				Manager: o.Manager, Operation: o.Operation, Time: &earlier, APIVersion: v1alpha1.SchemeGroupVersion.String(), FieldsType: "FieldsV1",
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
