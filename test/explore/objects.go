// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/keep"
	machineapi "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Times that plans distinguish.
var (
	now            = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	later, earlier = now.Add(time.Minute), now.Add(-time.Second)
	patience       = 10 * time.Minute
)

const (
	namespace = "shoot"
	unparsed  = "1:"
	surge     = 1
)

var settings = keep.Settings{Effects: []corev1.TaintEffect{corev1.TaintEffectNoSchedule}, SurplusPatience: patience, SafetyUp: 2}

var phases = [...]mcm.MachinePhase{"", mcm.MachinePending, mcm.MachineRunning, mcm.MachineUnknown, mcm.MachineFailed, mcm.MachineTerminating}

// text returns the annotation applied-excess.
func (r record) text() string {
	a := machineapi.AppliedExcess{Machines: int32(r.excess), Counted: int32(r.counted), Replicas: int32(r.replicas)}
	if r.max > 0 {
		a.Max = ptr.To(int32(r.max))
	}
	return a.String()
}

// recordOf parses the annotation applied-excess.
func recordOf(d *machineapi.MachineDeployment) (record, error) {
	text, set := d.Annotations[machineapi.AppliedExcessAnnotation]
	if !set {
		return record{}, nil
	}
	a, err := machineapi.ParseAppliedExcess(text)
	if err != nil {
		return record{}, err
	}
	return record{excess: uint8(a.Machines), max: uint8(ptr.Deref(a.Max, 0)), counted: uint8(a.Counted), replicas: uint8(a.Replicas)}, nil
}

// numbers are what spec.replicas and the record amount to.
type numbers struct{ workload, visible uint8 }

// numbersOf contains them for all small values: see place.
var numbersOf = sync.OnceValue(func() []numbers {
	all := make([]numbers, 1<<15)
	for i := range all {
		digit := func(n int) uint8 { return uint8(i >> (3 * n) & 7) }
		d := &mcm.MachineDeployment{}
		d.Spec.Replicas = int32(digit(0))
		if r := (record{excess: digit(1), max: digit(2), counted: digit(3), replicas: digit(4)}); r.excess > 0 && r.counted <= r.excess {
			d.Annotations = map[string]string{machineapi.AppliedExcessAnnotation: r.text()}
		}
		all[i] = numbers{workload: uint8(max(0, pool.Workload(d, d.Spec.Replicas))), visible: uint8(view.ShowDeployment(d).Spec.Replicas)}
	}
	return all
})

func (w *World) numbers() numbers {
	place := 0
	for n, digit := range [...]uint8{w.replicas, w.record.excess, w.record.max, w.record.counted, w.record.replicas} {
		if digit > 7 {
			panic("a number is too large for the search")
		}
		place |= int(digit) << (3 * n)
	}
	return numbersOf()[place]
}

// workload returns R. visible returns how many machines machine-controller-manager is asked for.
func (w *World) workload() int  { return int(w.numbers().workload) }
func (w *World) visible() uint8 { return w.numbers().visible }

// maxReplicas returns the maximum number of machines.
func (w *World) maxReplicas() int {
	if w.max == 0 || w.unparsed {
		return pool.Unbounded
	}
	return int(w.max)
}

// deployment returns the MachineDeployment.
func (w *World) deployment() *machineapi.MachineDeployment {
	d := &machineapi.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "pool", Namespace: namespace, UID: "pool", Annotations: w.annotations()}}
	d.Spec.Replicas, d.Spec.ExcessReplicas, d.Spec.ReserveWitness = int32(w.replicas), ptr.To(int32(w.excess)), w.excess > 0
	d.Spec.Strategy = rollingUpdate()
	d.Spec.Template.Spec.Class.Name = setName(w.template)
	return d
}

func (w *World) annotations() map[string]string {
	a := map[string]string{machineapi.AccountingAnnotation: string(pool.Additive)}
	if w.inclusive {
		a[machineapi.AccountingAnnotation] = string(pool.Inclusive)
	}
	switch {
	case w.unparsed:
		a[machineapi.BoundsAnnotation] = unparsed
	case w.max > 0:
		a[machineapi.BoundsAnnotation] = fmt.Sprintf("0:%d", w.max)
	}
	if w.record.excess > 0 {
		a[machineapi.AppliedExcessAnnotation] = w.record.text()
	}
	if w.excess > 0 {
		a[machineapi.WantedExcessAnnotation] = strconv.Itoa(int(w.excess))
	}
	var named, returned []string
	for i := range w.machines {
		m := &w.machines[i]
		if m.named {
			named = append(named, name(i)+"~"+earlier.Format(time.RFC3339))
		}
		if m.returned {
			returned = append(returned, name(i))
		}
	}
	if len(named) > 0 {
		a[machineutils.TriggerDeletionByMCM] = strings.Join(named, ",")
	}
	if len(returned) > 0 {
		a[machineapi.ReturnedAnnotation] = strings.Join(returned, ",")
	}
	return a
}

func rollingUpdate() mcm.MachineDeploymentStrategy {
	return mcm.MachineDeploymentStrategy{Type: mcm.RollingUpdateMachineDeploymentStrategyType, RollingUpdate: &mcm.RollingUpdateMachineDeployment{
		UpdateConfiguration: mcm.UpdateConfiguration{MaxSurge: ptr.To(intstr.FromInt32(surge)), MaxUnavailable: ptr.To(intstr.FromInt32(0))}}}
}

func setName(set uint8) string { return "set" + strconv.Itoa(int(set)) }

// newMachineSet returns a MachineSet. Sets with a larger number are newer, unless the template was
// changed back; only their names matter then.
func newMachineSet(set, asks, total uint8) *mcm.MachineSet {
	s := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: setName(set), Namespace: namespace, UID: types.UID(setName(set)),
		CreationTimestamp: metav1.NewTime(now.Add(time.Duration(set)*time.Minute - time.Hour)), OwnerReferences: ownedBy("MachineDeployment", "pool")}}
	s.Spec.Replicas = int32(asks)
	s.Spec.Template.Spec.Class.Name = setName(set)
	if total > 0 {
		setTotal(s, int32(total)-1)
	}
	return s
}

func ownedBy(kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "machine.sapcloud.io/v1alpha1", Kind: kind, Name: name, UID: types.UID(name), Controller: ptr.To(true)}}
}

// objects returns everything else.
func (w *World) objects() *pool.List {
	var o pool.Objects
	for s := range w.sets {
		if set := &w.sets[s]; set.there {
			o.Sets = append(o.Sets, newMachineSet(uint8(s), set.asks, set.total))
		}
	}
	for i := range w.machines {
		m := &w.machines[i]
		if !m.there {
			continue
		}
		o.Machines = append(o.Machines, m.object(i))
		if m.phase > pending {
			o.Nodes = append(o.Nodes, m.node(i))
		}
		if m.busy {
			o.Pods = append(o.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name(i), OwnerReferences: ownedBy("ReplicaSet", "web")}, Spec: corev1.PodSpec{NodeName: name(i)}})
		}
	}
	return pool.NewList(o)
}

// mark is what holds a machine in reserve.
var mark = machineapi.Reserve{Since: earlier, Taints: settings.Taints(), Annotations: map[string]string{
	machineapi.ReserveAnnotation: earlier.Format(time.RFC3339), machineapi.ScaleDownDisabledAnnotation: "true"}}

func (m *machine) object(i int) *mcm.Machine {
	o := &mcm.Machine{ObjectMeta: metav1.ObjectMeta{Name: name(i), Namespace: namespace, UID: types.UID(name(i)),
		CreationTimestamp: metav1.NewTime(now.Add(time.Duration(i-slots) * time.Minute)), OwnerReferences: ownedBy("MachineSet", setName(m.set)),
		Annotations: map[string]string{machineutils.MachinePriority: strconv.Itoa(int(m.priority))}}}
	if m.marked {
		o = pool.Mark(o, mark)
	}
	if m.was {
		o.Annotations[machineapi.ReserveStateAnnotation] = "Held"
	}
	if m.condemned {
		o.Annotations[machineutils.MarkedForDeletionTime] = earlier.Format(time.RFC3339)
	}
	o.Status.CurrentStatus.Phase = phases[m.phase]
	if m.preserved {
		o.Status.CurrentStatus.PreserveExpiryTime = &preservedUntil
	}
	switch {
	case m.leaving():
		o.DeletionTimestamp = &metav1.Time{Time: earlier}
	case m.failing:
		o.Status.CurrentStatus.Phase = mcm.MachineCrashLoopBackOff
		o.Status.LastOperation = mcm.LastOperation{Type: mcm.MachineOperationCreate, State: mcm.MachineStateFailed, ErrorCode: "ResourceExhausted"}
	}
	if m.hasProviderID() {
		o.Spec.ProviderID = "cloud:///" + name(i)
	}
	if m.phase > pending {
		o.Labels = map[string]string{mcm.NodeLabelKey: name(i)}
	}
	return o
}

func (m *machine) node(i int) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name(i)}, Spec: corev1.NodeSpec{ProviderID: "cloud:///" + name(i)}}
	if m.closed {
		n.Annotations, n.Spec.Taints = mark.Annotations, slices.Clone(mark.Taints)
	}
	ready := corev1.ConditionTrue
	if m.unhealthy() {
		ready = corev1.ConditionUnknown
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	return n
}

// asTime returns a time with the same meaning for a plan: in the future or in the past.
func (m moment) asTime(ahead, passed time.Time) time.Time {
	return [...]time.Time{{}, ahead, passed}[m]
}

func momentOf(t time.Time) moment {
	switch {
	case t.IsZero():
		return never
	case t.Before(now):
		return passed
	}
	return ahead
}

var preservedUntil = metav1.NewTime(time.Now().Add(24 * time.Hour))
