// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// desired is the desired reserve of a MachineDeployment, and what its field is to show.
type desired struct {
	reserve.EffectiveExcess
	// field is the new spec.excessReplicas, nil to leave it. restored reports whether it had this
	// value already and was removed.
	field    *int32
	restored bool
	// recorded is the value of the field to remember, nil for none. owners are the clients that
	// applied it.
	recorded *int32
	owners   []string
	// witness is the new spec.reserveWitness, nil to leave it.
	witness *bool
	// managed gives a restored field back to its owners; nil leaves metadata.managedFields
	// unchanged.
	managed []metav1.ManagedFieldsEntry
	// removed reports whether a client that knows the field removed it, and so asks for nothing.
	removed bool
	// requested is what a Reserve requests, if that is what counts.
	requested *v1alpha1.RequestedExcess
	// fieldConflict is with clients that write a field that shows a derived value; lastWriter is
	// one of them.
	fieldConflict FieldConflict
	lastWriter    string
	// accounting is where the reserve is to be counted, and min the fewest replicas then.
	accounting pool.Accounting
	min        int
	// problem reports that the settings cannot be parsed: the reserve stays as it is.
	problem *problem
}

type problem struct {
	reason  reserve.Reason
	message string
}

// Reasons beyond those of package reserve.
const (
	// BoundsInvalid: an annotation with the desired excess is invalid.
	BoundsInvalid reserve.Reason = reason.BoundsInvalid
	// AnnotationInvalid: another annotation that a user writes is invalid.
	AnnotationInvalid reserve.Reason = reason.AnnotationInvalid
	// CapacityUnknown: an excess in resources cannot be converted to machines yet.
	CapacityUnknown reserve.Reason = reason.CapacityUnknown
	// ClusterUnreachable: the target cluster does not respond; see package reachability.
	ClusterUnreachable reserve.Reason = reason.ClusterUnreachable
	// Draining: the reserve is being given up, as an option of the controller or an annotation of
	// the MachineDeployment requires.
	Draining reserve.Reason = reason.Draining
	// Preparing and PreparationFailed: machines are ready, but not prepared for workload.
	Preparing         reserve.Reason = reason.Preparing
	PreparationFailed reserve.Reason = reason.PreparationFailed
)

// desiredReserve reads the desired reserve of a MachineDeployment. If bounds or a share determine
// the excess, the field shows the result; otherwise the field is the setting itself, and keeps its
// value if it vanishes.
func desiredReserve(v View) desired {
	d := v.Deployment
	w := desired{recorded: RecordedField(d), owners: recordedOwners(d)}
	wishes, err := pool.WishesOf(d)
	if wishes.Bounds != nil {
		w.min = int(wishes.Bounds.Min)
	}
	if err != nil {
		return w.keepReserve(v, BoundsInvalid, err.Error())
	}
	if w.accounting, err = v.desiredAccounting(); err != nil {
		return w.keepReserve(v, AnnotationInvalid, err.Error())
	}
	if _, err := v.draining(); err != nil {
		return w.keepReserve(v, AnnotationInvalid, err.Error())
	}
	derived := wishes.Share != nil || wishes.Bounds != nil && wishes.Bounds.Excess != nil
	if !derived {
		w.updateRecord(v)
		wishes.Field = w.recorded
	}
	own := wishes
	own.Requested = nil
	w.EffectiveExcess, err = reserve.Effective(own, v.Memory.Workload(d), v.Allocatable)
	switch {
	case errors.Is(err, reserve.ErrUnknownCapacity):
		return w.keepReserve(v, CapacityUnknown, fmt.Sprintf("%v: %s", err, reserve.CapacityAdvice(v.Allocatable, v.Unknown)))
	case err != nil:
		return w.keepReserve(v, BoundsInvalid, err.Error())
	}
	if derived {
		w.showDerived(v)
	}
	w.addRequested(wishes.Requested, v.Memory.Workload(d))
	if v.givesUp(w.accounting) {
		w.Wish, w.Excess = 0, 0
	}
	return w
}

// givesUp reports whether there is to be no reserve, whatever the settings request.
func (v View) givesUp(a pool.Accounting) bool {
	draining, _ := v.draining()
	return draining || v.AllLeaving && a == pool.Inclusive
}

// addRequested lets what a Reserve requests count if it is more than the MachineDeployment's own
// excess. The field does not show it.
func (w *desired) addRequested(r *v1alpha1.RequestedExcess, replicas int) {
	if r == nil || int(r.Machines) <= w.Wish {
		return
	}
	w.requested, w.Wish = r, int(r.Machines)
	w.Excess = max(0, min(w.Wish, w.Max-replicas))
}

// draining reports whether the reserve is to be given up, whatever else asks for one.
func (v View) draining() (bool, error) {
	text, set := v.Deployment.Annotations[v1alpha1.DrainReserveAnnotation]
	if v.Settings.Drain || !set {
		return v.Settings.Drain, nil
	}
	return v1alpha1.ParseDrainReserve(text)
}

// updateRecord records an explicit field with its owners. If the field has vanished and its witness
// has not, the client that removed it knows it, and asks for nothing. If both have vanished, the
// client knows neither, and both are restored.
func (w *desired) updateRecord(v View) {
	d := v.Deployment
	field := d.Spec.ExcessReplicas
	switch {
	case field != nil && *field > 0:
		w.recorded = field
		w.updateOwners(d, v.Now)
	case field != nil:
		w.recorded, w.owners = nil, nil // an explicit 0 leaves nothing to restore
	case w.recorded != nil && d.Spec.ReserveWitness:
		w.recorded, w.owners, w.removed = nil, nil, true
	case w.recorded != nil && !v.Pruned:
		w.field, w.restored = w.recorded, true
	}
	w.updateWitness(v)
}

// updateOwners records who applied the field, and gives it back to them after it was restored.
func (w *desired) updateOwners(d *v1alpha1.MachineDeployment, now time.Time) {
	before := w.owners
	w.owners = appliers(d)
	if !isRestored(d) {
		return
	}
	all := slices.Compact(slices.Sorted(slices.Values(append(before, w.owners...))))
	if w.owners = all[:min(len(all), maxOwners)]; len(w.owners) > 0 {
		w.managed = restoreOwners(d, w.owners, now)
	}
}

// updateWitness keeps the witness beside a field that is recorded.
func (w *desired) updateWitness(v View) {
	witness := w.recorded != nil && !v.Pruned && !v.WitnessPruned
	if v.Deployment.Spec.ReserveWitness != witness {
		w.witness = &witness
	}
}

// keepReserve leaves the reserve as it is, because its settings cannot be parsed, unless it is to be
// given up: then they do not matter.
func (w desired) keepReserve(v View, reason reserve.Reason, message string) desired {
	a := v.Memory.AppliedTo(v.Deployment)
	w.EffectiveExcess = reserve.EffectiveExcess{Wish: a.Excess, Excess: max(0, min(a.Excess, a.Max-v.Memory.Workload(v.Deployment))), Max: a.Max}
	w.accounting = v.presentAccounting()
	if v.givesUp(w.accounting) {
		w.Wish, w.Excess = 0, 0
		return w
	}
	w.problem, w.fieldConflict = &problem{reason, message}, v.Memory.FieldConflict
	return w
}

// RecordedField returns the last explicit value of spec.excessReplicas that a MachineDeployment
// records, nil if there is none.
func RecordedField(d *v1alpha1.MachineDeployment) *int32 {
	n, err := strconv.ParseInt(d.Annotations[v1alpha1.WantedExcessAnnotation], 10, 32)
	if err != nil || n <= 0 {
		return nil
	}
	count := int32(n)
	return &count
}

// recordedOwners returns the clients that applied the recorded value. If the record cannot be
// parsed there are none, which does not end the reserve.
func recordedOwners(d *v1alpha1.MachineDeployment) []string {
	text, set := d.Annotations[v1alpha1.ExcessOwnersAnnotation]
	if !set {
		return nil
	}
	owners, _ := v1alpha1.ParseExcessOwners(text)
	return owners
}

// desiredAccounting returns where the reserve is to be counted.
func (v View) desiredAccounting() (pool.Accounting, error) {
	if text, set := v.Deployment.Annotations[v1alpha1.AccountingAnnotation]; set {
		return v1alpha1.ParseAccounting(text)
	}
	if v.Accounting == "" {
		return v.presentAccounting(), nil
	}
	return v.Accounting, nil
}

// awaitsAccounting reports whether a MachineDeployment without an applied excess waits until it is
// known where its reserve is to be counted; then all MachineDeployments are synced. Before, a
// reserve would be created beyond replicas, and one that replicas include would become workload's.
func awaitsAccounting(v View) bool {
	_, set := v.Deployment.Annotations[v1alpha1.AccountingAnnotation]
	_, applied := v.Memory.withKnownExcess(v.Deployment).Annotations[v1alpha1.AppliedExcessAnnotation]
	return v.Settings.Accounting != nil && v.Accounting == "" && !set && !applied
}

// presentAccounting returns where the reserve is counted now. If replicas include none of it, only
// settings show that: the annotation, or else the default. Replicas still include none of it while
// the annotation cannot be parsed.
func (v View) presentAccounting() pool.Accounting {
	if v.Memory.AppliedTo(v.Deployment).Included() {
		return pool.Inclusive
	}
	text, set := v.Deployment.Annotations[v1alpha1.AccountingAnnotation]
	if !set {
		return cmp.Or(v.Accounting, pool.Additive)
	}
	own, _ := v1alpha1.ParseAccounting(text)
	return cmp.Or(own, pool.Additive)
}

// recoveredExcess returns the applied excess if replicas include reserve machines, and both the
// record of that and the memory of it are lost: as many machines in reserve as replicas leave room
// for beside those that serve, up to what is desired. While that cannot be read, the marks of
// machines alone decide. It is empty if nothing is lost, or no reserve is desired.
func recoveredExcess(v View, w desired) string {
	d := v.Deployment
	if _, there := d.Annotations[v1alpha1.AppliedExcessAnnotation]; there || v.Memory.Known || v.Rollout || w.accounting != pool.Inclusive {
		return ""
	}
	serving, held := 0, 0
	for _, m := range v.Machines {
		switch {
		case m.Leaving():
		case !m.Reserve():
			serving++
		case m.Registered():
			held++
		}
	}
	n := max(0, min(int(d.Spec.Replicas)-serving, held))
	if w.problem == nil {
		n = min(n, w.Wish)
	}
	return reserve.Applied{Excess: n, Counted: n, Max: w.Max}.String(int(d.Spec.Replicas))
}

// withNumbers returns the MachineDeployment with the numbers that the rule decided on. If replicas
// include reserve machines, they are recorded, also after a client raised them: a later reduction
// is measured from there.
func withNumbers(v View, view reserve.View, rule reserve.Plan) *v1alpha1.MachineDeployment {
	after := *v.Memory.withKnownExcess(v.Deployment)
	if rule.Replicas != view.Replicas || rule.Applied != view.Applied || rule.Applied.Counted > 0 {
		pool.Apply(&after, pool.ClampInt32(rule.Replicas), rule.Applied)
	}
	if rule.Applied.Excess == 0 {
		// Others record that they have taken the whole reserve.
		after.Annotations = maps.Clone(after.Annotations)
		delete(after.Annotations, v1alpha1.AppliedExcessAnnotation)
	}
	return &after
}

// shareArrives is the age from which a MachineDeployment no longer waits for its share.
const shareArrives = 5 * time.Minute

// awaitsShare returns how long a MachineDeployment waits for its share of its pool's excess, 0 if
// it does not. Gardener moves a control plane to another seed with Machines and their annotations,
// but without those of MachineDeployments. Until the share is written again, no reserve seems to be
// desired, and reserve machines would be given to workload.
func awaitsShare(v View, w desired) time.Duration {
	d := v.Deployment
	_, shared := d.Annotations[v1alpha1.ShareAnnotation]
	_, applied := d.Annotations[v1alpha1.AppliedExcessAnnotation]
	if shared || applied || w.Wish > 0 || w.problem != nil || v.Memory.Applied != "" {
		return 0
	}
	worker := d.Spec.Template.Spec.NodeTemplateSpec.Annotations
	if worker[v1alpha1.PoolExcessAnnotation] == "" && worker[v1alpha1.BoundsAnnotation] == "" {
		return 0
	}
	if !slices.ContainsFunc(v.Machines, func(m Machine) bool { return m.Marked() }) {
		return 0
	}
	return max(0, d.CreationTimestamp.Add(shareArrives).Sub(v.Now))
}
