// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// wish is how many machines a MachineDeployment wants in reserve, and what its field is to say of that.
type wish struct {
	reserve.EffectiveExcess
	// field is what spec.excessReplicas is to hold, nil where it is left alone. restored says that it held that already
	// and somebody wiped it.
	field    *int32
	restored bool
	// recorded is what to remember of the field, nil for nothing, and owners who asks for it.
	recorded *int32
	owners   []v1alpha1.ExcessOwner
	// managed gives a restored field back to its owners; nil leaves metadata.managedFields alone.
	managed []metav1.ManagedFieldsEntry
	// letGo names the owner that gave the field up, and so asks for nothing.
	letGo string
	// contest is with those who write a field that shows what is derived; rival is one of them.
	contest Contest
	rival   string
	// accounting is where the reserve is to be counted, and min the fewest replicas then.
	accounting pool.Accounting
	min        int
	// trouble says that the wish cannot be understood: the reserve stays as it is.
	trouble *trouble
}

type trouble struct {
	reason  reserve.Reason
	message string
}

// Reasons beyond those of package reserve.
const (
	// BoundsInvalid: an annotation that says how much excess is wanted cannot be understood.
	BoundsInvalid reserve.Reason = reason.BoundsInvalid
	// AnnotationInvalid: another annotation that a user writes cannot be understood.
	AnnotationInvalid reserve.Reason = reason.AnnotationInvalid
	// CapacityUnknown: an excess in resources cannot be turned into machines yet.
	CapacityUnknown reserve.Reason = reason.CapacityUnknown
	// ClusterUnreachable: the target cluster does not answer; as package reachability has it.
	ClusterUnreachable reserve.Reason = reason.ClusterUnreachable
	// Draining: the reserve is being given up because the controller was told to, or the MachineDeployment was.
	Draining reserve.Reason = reason.Draining
)

// wishOf reads the wish of a MachineDeployment. Where bounds or a share of the pool's excess count, the field shows what they come to; else it
// is the wish itself, and one that has vanished is what it was.
func wishOf(v View) wish {
	d := v.Deployment
	w := wish{recorded: recorded(d), owners: recordedOwners(d)}
	wishes, err := pool.WishesOf(d)
	if wishes.Bounds != nil {
		w.min = int(wishes.Bounds.Min)
	}
	if err != nil {
		return w.stand(v, BoundsInvalid, err.Error())
	}
	if w.accounting, err = v.accounting(); err != nil {
		return w.stand(v, AnnotationInvalid, err.Error())
	}
	draining, err := v.draining()
	if err != nil {
		return w.stand(v, AnnotationInvalid, err.Error())
	}
	derived := wishes.Share != nil || wishes.Bounds != nil && wishes.Bounds.Excess != nil
	if !derived {
		w.remember(d, v.Pruned, v.Now)
		wishes.Field = w.recorded
	}
	w.EffectiveExcess, err = reserve.Effective(wishes, v.Memory.workload(d), v.Allocatable)
	switch {
	case errors.Is(err, reserve.ErrUnknownCapacity):
		return w.stand(v, CapacityUnknown, fmt.Sprintf("%v: give the MachineClass a nodeTemplate with that capacity, or wait for a ready Node", err))
	case err != nil:
		return w.stand(v, BoundsInvalid, err.Error())
	}
	if derived {
		w.show(v)
	}
	if draining || v.Asleep && w.accounting == pool.Inclusive {
		w.Wish, w.Excess = 0, 0
	}
	return w
}

// draining reports whether the reserve is to be given up, whatever asks for one.
func (v View) draining() (bool, error) {
	text, set := v.Deployment.Annotations[v1alpha1.DrainReserveAnnotation]
	if v.Settings.Drain || !set {
		return v.Settings.Drain, nil
	}
	return v1alpha1.ParseDrainReserve(text)
}

// remember notes an explicit field with its owners, and has one restored that has vanished, unless its owner let go of it.
func (w *wish) remember(d *v1alpha1.MachineDeployment, pruned bool, at time.Time) {
	field, before := d.Spec.ExcessReplicas, w.owners
	if field == nil && w.recorded == nil {
		return // as most MachineDeployments are
	}
	now := owners(d)
	if len(now) > 0 {
		w.owners = now
	}
	owner, gone := letGo(d, before)
	switch {
	case field != nil && *field <= 0:
		w.recorded, w.owners = nil, nil // an explicit 0 leaves nothing to restore
	case w.recorded != nil && len(now) == 0 && gone:
		w.recorded, w.owners, w.letGo = nil, nil, owner
	case field != nil:
		w.recorded = field
		if len(now) == 0 {
			w.managed = handBack(d, before, at)
		}
	case w.recorded != nil && !pruned:
		w.field, w.restored = w.recorded, true
	}
}

// stand leaves the reserve as it is, because of a wish that cannot be understood.
func (w wish) stand(v View, reason reserve.Reason, message string) wish {
	a := v.Memory.applied(v.Deployment)
	w.EffectiveExcess = reserve.EffectiveExcess{Wish: a.Excess, Excess: max(0, min(a.Excess, a.Max-v.Memory.workload(v.Deployment))), Max: a.Max}
	w.accounting = v.counted()
	w.trouble = &trouble{reason, message}
	return w
}

func recorded(d *v1alpha1.MachineDeployment) *int32 {
	n, err := strconv.ParseInt(d.Annotations[v1alpha1.WantedExcessAnnotation], 10, 32)
	if err != nil || n <= 0 {
		return nil
	}
	count := int32(n)
	return &count
}

// recordedOwners are those that asked for what is recorded. What cannot be read is none, which ends no reserve.
func recordedOwners(d *v1alpha1.MachineDeployment) []v1alpha1.ExcessOwner {
	text, set := d.Annotations[v1alpha1.ExcessOwnersAnnotation]
	if !set {
		return nil
	}
	owners, err := v1alpha1.ParseExcessOwners(text)
	if err != nil {
		return nil
	}
	return owners
}

// replicas are R: those that machine-controller-manager may act on.
func replicas(d *v1alpha1.MachineDeployment) int {
	return max(0, int(pool.Workload(d, d.Spec.Replicas)))
}

// applied is what machine-controller-manager is being asked for beyond replicas.
func applied(d *v1alpha1.MachineDeployment) reserve.Applied {
	return pool.AppliedOf(d, d.Spec.Replicas)
}
