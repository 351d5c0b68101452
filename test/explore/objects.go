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

	machineapi "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	deploymentplan "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// Times that plans distinguish.
var (
	now            = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	later, earlier = now.Add(time.Minute), now.Add(-time.Second)
	patience       = 10 * time.Minute
	preservedUntil = metav1.NewTime(now.Add(24 * time.Hour))
)

const (
	namespace = "shoot"
	unparsed  = "1:"
	surge     = 1

	hashLabel       = mcm.DefaultMachineDeploymentUniqueLabelKey
	desiredReplicas = "deployment.kubernetes.io/desired-replicas"
	maximumReplicas = "deployment.kubernetes.io/max-replicas"
	revision        = "deployment.kubernetes.io/revision"
)

var settings = machinetaint.Settings{Effects: []corev1.TaintEffect{corev1.TaintEffectNoSchedule}, SurplusPatience: patience}

var phases = [...]mcm.MachinePhase{"", mcm.MachinePending, mcm.MachineRunning, mcm.MachineUnknown, mcm.MachineFailed, mcm.MachineTerminating}

func name(i int) string { return string(rune('a' + i)) }

func index(name string) int { return int(name[0] - 'a') }

// text returns the annotation applied-excess.
func (r record) text() string {
	a := machineapi.AppliedExcess{Machines: int32(r.excess), Counted: int32(r.counted), Replicas: int32(r.replicas)}
	if r.max > 0 {
		a.Max = ptr.To(int32(r.max))
	}
	return a.String()
}

// recordOf parses the annotation applied-excess.
func recordOf(d metav1.Object) (record, error) {
	text, set := d.GetAnnotations()[machineapi.AppliedExcessAnnotation]
	if !set {
		return record{}, nil
	}
	a, err := machineapi.ParseAppliedExcess(text)
	if err != nil {
		return record{}, err
	}
	return record{excess: uint8(a.Machines), max: uint8(ptr.Deref(a.Max, 0)), counted: uint8(a.Counted), replicas: uint8(a.Replicas)}, nil
}

// lastAllowed is how much of the excess the last bounds allow that could be parsed.
func (d *deployment) lastAllowed() uint8 {
	if d.record.max == 0 {
		return d.record.excess
	}
	return uint8(min(int(d.record.excess), max(0, int(d.record.max)-d.workload())))
}

// workloads contains R for all small numbers: see workload.
var workloads = sync.OnceValue(func() []uint8 {
	all := make([]uint8, 1<<15)
	for i := range all {
		digit := func(n int) uint8 { return uint8(i >> (3 * n) & 7) }
		d := &mcm.MachineDeployment{}
		d.Spec.Replicas = int32(digit(0))
		if r := (record{excess: digit(1), max: digit(2), counted: digit(3), replicas: digit(4)}); r.excess > 0 && r.counted <= r.excess {
			d.Annotations = map[string]string{machineapi.AppliedExcessAnnotation: r.text()}
		}
		all[i] = uint8(max(0, pool.Workload(d, d.Spec.Replicas)))
	}
	return all
})

// workload returns R.
func (d *deployment) workload() int {
	place := 0
	for n, digit := range [...]uint8{d.replicas, d.record.excess, d.record.max, d.record.counted, d.record.replicas} {
		if digit > 7 {
			panic("a number is too large for the search")
		}
		place |= int(digit) << (3 * n)
	}
	return int(workloads()[place])
}

// object returns the MachineDeployment.
func (d *deployment) object() *machineapi.MachineDeployment {
	o := &machineapi.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "pool", Namespace: namespace, UID: "pool", Annotations: d.annotations(), Finalizers: []string{deploymentplan.Finalizer}}}
	o.Spec.Replicas, o.Spec.ExcessReplicas, o.Spec.ReserveWitness = int32(d.replicas), ptr.To(int32(d.excess)), d.excess > 0
	o.Spec.Strategy = rollingUpdate()
	o.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": "pool"}}
	o.Spec.Template.Labels = map[string]string{"name": "pool"}
	o.Spec.Template.Spec.Class = classOf(d.template)
	return o
}

func (d *deployment) annotations() map[string]string {
	a := map[string]string{machineapi.AccountingAnnotation: string(pool.Additive), revision: "2", machineutils.LastDeploymentReplicaChangeByScalerTime: earlier.Format(time.RFC3339)}
	if d.inclusive {
		a[machineapi.AccountingAnnotation] = string(pool.Inclusive)
	}
	switch {
	case d.unparsed:
		a[machineapi.BoundsAnnotation] = unparsed
	case d.max > 0:
		a[machineapi.BoundsAnnotation] = fmt.Sprintf("0:%d", d.max)
	}
	if d.record.excess > 0 {
		a[machineapi.AppliedExcessAnnotation] = d.record.text()
	}
	if d.excess > 0 {
		a[machineapi.WantedExcessAnnotation] = strconv.Itoa(int(d.excess))
	}
	var named []string
	for i := range slots {
		if d.named.has(i) {
			named = append(named, name(i)+"~"+d.namedAt(i))
		}
	}
	if len(named) > 0 {
		a[machineutils.TriggerDeletionByMCM] = strings.Join(named, ",")
	}
	return a
}

// namedAt returns when a machine was named: replicas were changed later than that, or not.
func (d *deployment) namedAt(i int) string {
	if d.due.has(i) {
		return earlier.Format(time.RFC3339)
	}
	return now.Format(time.RFC3339)
}

// deploymentOf returns a MachineDeployment after a plan has changed it.
func deploymentOf(was deployment, o *machineapi.MachineDeployment) (deployment, error) {
	d := was
	d.replicas, d.named = uint8(o.Spec.Replicas), 0
	for text := range pool.Named(o) {
		d.named.add(index(text))
	}
	d.due &= d.named
	var err error
	d.record, err = recordOf(o)
	return d, err
}

func rollingUpdate() mcm.MachineDeploymentStrategy {
	return mcm.MachineDeploymentStrategy{Type: mcm.RollingUpdateMachineDeploymentStrategyType, RollingUpdate: &mcm.RollingUpdateMachineDeployment{
		UpdateConfiguration: mcm.UpdateConfiguration{MaxSurge: ptr.To(intstr.FromInt32(surge)), MaxUnavailable: ptr.To(intstr.FromInt32(0))}}}
}

func setName(s uint8) string { return "set" + strconv.Itoa(int(s)) }

func setIndex(name string) uint8 { return name[len(name)-1] - '0' }

func classOf(s uint8) mcm.ClassSpec { return mcm.ClassSpec{Kind: "MachineClass", Name: setName(s)} }

func labelsOf(s uint8) map[string]string {
	return map[string]string{"name": "pool", hashLabel: setName(s)}
}

// object returns the MachineSet of a template. Sets with a larger number are newer, unless the
// template was changed back. What a rollout writes to Nodes is not part of the model, and seems to be
// done.
func (s machineSet) object(n uint8, current bool) *mcm.MachineSet {
	o := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: setName(n), Namespace: namespace, UID: types.UID(setName(n)), Labels: labelsOf(n), Finalizers: []string{deploymentplan.Finalizer},
		CreationTimestamp: metav1.NewTime(now.Add(time.Duration(n)*time.Minute - time.Hour)), OwnerReferences: ownedBy("MachineDeployment", "pool"),
		Annotations: map[string]string{revision: "1", deploymentplan.PreferNoSchedule: "True", machineutils.LastDeploymentReplicaChangeByScalerTime: earlier.Format(time.RFC3339)}}}
	if current {
		o.Annotations[revision] = "2"
		delete(o.Annotations, deploymentplan.PreferNoSchedule)
	}
	if s.total > 0 {
		o.Annotations[desiredReplicas], o.Annotations[maximumReplicas] = strconv.Itoa(int(s.total)-1), strconv.Itoa(int(s.total)-1+surge)
	}
	o.Spec.Replicas = int32(s.asks)
	o.Spec.Selector = &metav1.LabelSelector{MatchLabels: labelsOf(n)}
	o.Spec.Template.Labels = labelsOf(n)
	o.Spec.Template.Spec.Class = classOf(n)
	return o
}

// machineSetOf reads a MachineSet.
func machineSetOf(o *mcm.MachineSet) machineSet {
	s := machineSet{there: true, asks: uint8(o.Spec.Replicas)}
	if total, err := strconv.Atoi(o.Annotations[desiredReplicas]); err == nil {
		s.total = uint8(total) + 1
	}
	return s
}

func ownedBy(kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "machine.sapcloud.io/v1alpha1", Kind: kind, Name: name, UID: types.UID(name), Controller: ptr.To(true)}}
}

func bornAt(i int) time.Time { return now.Add(time.Duration(i-slots) * time.Minute) }

// mark is what holds a machine in reserve: from the beginning, or since later.
func (m *machine) mark(i int) machineapi.Reserve {
	if m.later {
		return settings.NewMark(earlier)
	}
	return settings.NewMark(bornAt(i))
}

// object returns the Machine. d is the MachineDeployment that names it, or not.
func (m *machine) object(i int, d *deployment) *mcm.Machine {
	o := &mcm.Machine{ObjectMeta: metav1.ObjectMeta{Name: name(i), Namespace: namespace, UID: types.UID(name(i)), Labels: labelsOf(m.set),
		CreationTimestamp: metav1.NewTime(bornAt(i)), OwnerReferences: ownedBy("MachineSet", setName(m.set)), Annotations: map[string]string{}}}
	o.Spec.Class = classOf(m.set)
	if m.marked {
		o = pool.Mark(o, m.mark(i))
	}
	if m.first {
		o.Annotations[machineutils.MachinePriority] = "1"
	}
	if m.condemned {
		o.Annotations[machineutils.MarkedForDeletionTime] = d.namedAt(i)
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
		o.Spec.ProviderID, o.Labels[mcm.NodeLabelKey] = "cloud:///"+name(i), name(i)
	}
	return o
}

// node returns the Node of a machine.
func (h *host) node(i int, m *machine) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name(i)}, Spec: corev1.NodeSpec{ProviderID: "cloud:///" + name(i)}}
	if mark := m.mark(i); h.closed {
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

// object returns the memory of the controller.
func (m memory) object(d *machineapi.MachineDeployment) machinetaint.Memory {
	o := machinetaint.Memory{
		SurplusSince: m.surplus.asTime(now, now.Add(-patience)),
		Retry:        reserve.Retry{Failures: int(m.failures), Until: m.retry.asTime(later, earlier), Left: int(m.left), Try: int(m.try)},
		Lowered:      reserve.Lowered{Times: int(m.reductions), Until: m.lowered.asTime(later, earlier), Replicas: int(m.loweredTo), Wish: int(m.loweredX), Max: int(m.loweredMax), Unread: m.loweredUnread},
	}
	if m.loweredMax == 0 {
		o.Lowered.Max = pool.Unbounded
	}
	if m.known {
		o.Applied, o.Known = d.Annotations[machineapi.AppliedExcessAnnotation], true
	}
	return o
}

// memoryOf returns what the controller remembers after a plan. What two plans in a row decide is the
// same for larger numbers of failures.
func memoryOf(p machinetaint.Memory) memory {
	m := memory{
		known: true, surplus: momentOf(p.SurplusSince), failures: uint8(min(p.Retry.Failures, 2)), retry: momentOf(p.Retry.Until), left: uint8(p.Retry.Left), try: uint8(p.Retry.Try),
		lowered: momentOf(p.Lowered.Until), reductions: uint8(min(p.Lowered.Times, 2)), loweredTo: uint8(p.Lowered.Replicas), loweredX: uint8(p.Lowered.Wish), loweredUnread: p.Lowered.Unread,
	}
	if p.Lowered.Max != pool.Unbounded {
		m.loweredMax = uint8(p.Lowered.Max)
	}
	return m
}
