// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	machineapi "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	balanceplan "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/similar"
)

// knownZones is what the balance controller decides from.
type knownZones struct {
	zones      [zones]zone
	units      [zones][zoneSlots]unit
	troubles   [zones]trouble
	overdue    [zones]moment
	fresh      uint8
	continuous bool
}

// rebalance is a plan of the balance controller, as far as the model carries it out.
type rebalance struct {
	writes   [zones]moveWrite
	troubles [zones]trouble
	// failed reports for which MachineDeployment it notices that machines cannot be created.
	failed [zones]bool
}

// rebalances remembers plans.
type rebalances struct {
	mu  sync.RWMutex
	all map[knownZones]*rebalance
}

func newRebalances() *rebalances { return &rebalances{all: map[knownZones]*rebalance{}} }

// planFor returns the plan for what is known.
func (r *rebalances) planFor(known knownZones) *rebalance {
	r.mu.RLock()
	made := r.all[known]
	r.mu.RUnlock()
	if made != nil {
		return made
	}
	made = known.decide()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[known] = made
	return made
}

// Times in objects of this model: when machines were named that are due, and that are not.
var (
	longAgo, recently = now.Add(-time.Hour), now.Add(-pool.Overdue / 2)
	overdueSince      = now.Add(-2 * pool.Overdue)
)

const poolLabel = "pool"

// unitName names a machine. One that no longer exists has a name, too.
func unitName(i, k int) string { return name(i) + strconv.Itoa(k+1) }

func unitIndex(text string) int { return int(text[1] - '1') }

// object returns the MachineDeployment. version is the number of a move that would begin with it.
func (z *zone) object(i int, version uint8, overdue moment) *machineapi.MachineDeployment {
	d := &machineapi.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name(i), Namespace: namespace, UID: types.UID(name(i)), ResourceVersion: strconv.Itoa(int(version)),
		Labels: map[string]string{poolLabel: "pool"}, Annotations: map[string]string{machineapi.BoundsAnnotation: fmt.Sprintf("0:%d", z.limit)}}}
	d.Spec.Replicas = int32(z.replicas)
	if z.held {
		d.Annotations[machineapi.AppliedReplicasAnnotation] = strconv.Itoa(int(z.applied))
	}
	if z.shared {
		d.Annotations[machineapi.ShareAnnotation] = strconv.Itoa(int(z.share))
	}
	if z.pool > 0 {
		d.Spec.Template.Spec.NodeTemplateSpec.Annotations = map[string]string{machineapi.PoolExcessAnnotation: strconv.Itoa(int(z.pool))}
	}
	if z.move.id > 0 {
		d.Annotations[machineapi.MoveAnnotation] = z.move.object(i).String()
	}
	z.addNames(d, i, overdue)
	return d
}

// addNames adds the annotations that name machines.
func (z *zone) addNames(d *machineapi.MachineDeployment, i int, overdue moment) {
	var items []string
	for k, n := range z.names {
		at := longAgo
		if n == named {
			at = overdue.asTime(recently, overdueSince)
		}
		if n != unnamed {
			items = append(items, unitName(i, k)+"~"+at.Format(time.RFC3339))
		}
	}
	d.Annotations[machineutils.LastDeploymentReplicaChangeByScalerTime] = longAgo.Format(time.RFC3339)
	if len(items) > 0 {
		d.Annotations[machineutils.TriggerDeletionByMCM] = strings.Join(items, ",")
	}
}

func (h half) object(i int) machineapi.Move {
	m := machineapi.Move{ID: strconv.Itoa(int(h.id)), Reserve: int32(h.reserve)}
	switch {
	case h.gives:
		m.To = map[string]int32{name(1 - i): int32(h.machines)}
	default:
		m.From, m.Taken = name(1-i), int32(h.machines)
	}
	if h.machine > 0 {
		m.Machine = unitName(i, int(h.machine)-1)
	}
	return m
}

// zoneOf reads a MachineDeployment.
func zoneOf(d *machineapi.MachineDeployment) zone {
	z := zone{replicas: uint8(d.Spec.Replicas)}
	b, err := machineapi.ParseBounds(d.Annotations[machineapi.BoundsAnnotation])
	if err != nil {
		panic(err)
	}
	z.limit = uint8(b.Max)
	if n, held := pool.AppliedReplicas(d); held {
		z.applied, z.held = uint8(n), true
	}
	if n, err := machineapi.ParseShare(d.Annotations[machineapi.ShareAnnotation]); err == nil {
		z.share, z.shared = uint8(n), true
	}
	if n, err := strconv.Atoi(d.Spec.Template.Spec.NodeTemplateSpec.Annotations[machineapi.PoolExcessAnnotation]); err == nil {
		z.pool = uint8(n)
	}
	if m, err := machineapi.ParseMove(d.Annotations[machineapi.MoveAnnotation]); err == nil {
		z.move = halfOf(m)
	}
	last, _ := time.Parse(time.RFC3339, d.Annotations[machineutils.LastDeploymentReplicaChangeByScalerTime])
	for text, at := range pool.Named(d) {
		z.names[unitIndex(text)] = due
		if at.After(last) {
			z.names[unitIndex(text)] = named
		}
	}
	return z
}

func halfOf(m machineapi.Move) half {
	id, _ := strconv.Atoi(m.ID)
	h := half{id: uint8(id), gives: len(m.To) > 0, machines: uint8(m.Taken), reserve: uint8(m.Reserve)}
	for _, n := range m.To {
		h.machines = uint8(n)
	}
	if m.Machine != "" {
		h.machine = uint8(unitIndex(m.Machine)) + 1
	}
	return h
}

// object returns the Machine.
func (u *unit) object(i, k int) *mcm.Machine {
	o := &mcm.Machine{ObjectMeta: metav1.ObjectMeta{Name: unitName(i, k), Namespace: namespace, UID: types.UID(unitName(i, k)),
		CreationTimestamp: metav1.NewTime(longAgo.Add(time.Duration(k) * time.Minute)), Annotations: map[string]string{}, Labels: map[string]string{}}}
	o.Status.CurrentStatus = mcm.CurrentStatus{Phase: phases[u.phase]}
	o.Status.LastOperation = mcm.LastOperation{Type: mcm.MachineOperationCreate, State: mcm.MachineStateSuccessful, LastUpdateTime: metav1.NewTime(longAgo)}
	if u.fresh {
		o.Status.LastOperation.LastUpdateTime = metav1.NewTime(now)
	}
	if u.marked {
		o.Annotations[machineapi.ReserveAnnotation] = machineapi.Reserve{Since: earlier}.String()
	}
	switch u.phase {
	case terminating:
		o.DeletionTimestamp = &metav1.Time{Time: earlier}
	case failed: // cannot be created
		o.Status.CurrentStatus.Phase = mcm.MachineCrashLoopBackOff
		o.Status.LastOperation = mcm.LastOperation{Type: mcm.MachineOperationCreate, State: mcm.MachineStateFailed, ErrorCode: "ResourceExhausted"}
	case running:
		o.Labels[mcm.NodeLabelKey] = unitName(i, k)
	}
	return o
}

func (u *unit) member(i, k int, n naming) balanceplan.Machine {
	m := balanceplan.Machine{Machine: pool.Machine{Object: u.object(i, k), Set: name(i), Named: n != unnamed}}
	if u.pinned {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pinned", Namespace: namespace, Annotations: map[string]string{pool.SafeToEvict: "false"}}}
		m.Workload = []*fit.Pod{fit.NewPod(pod, nil)}
	}
	return m
}

// view returns the input of the balance controller.
func (k knownZones) view() balanceplan.View {
	v := balanceplan.View{Now: now, Settings: balanceplan.Settings{Enabled: true, Mode: machineapi.BalanceScaleUp, PoolLabels: []string{poolLabel}},
		Memory: balanceplan.Memory{Failing: map[string]balanceplan.Failure{}, Paused: map[string]time.Time{}}}
	if k.continuous {
		v.Settings.Mode = machineapi.BalanceContinuous
	}
	size := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("110")}
	for i := range zones {
		zone := map[string]string{corev1.LabelTopologyZone: name(i)}
		m := balanceplan.Member{Object: k.zones[i].object(i, k.fresh+uint8(i), k.overdue[i]), Template: &similar.Template{Name: name(i), Capacity: size, Allocatable: size, Free: size, Labels: zone},
			Fresh: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "fresh-" + name(i), Labels: zone}, Status: corev1.NodeStatus{Capacity: size, Allocatable: size}}}
		for s := range k.units[i] {
			if u := &k.units[i][s]; u.there {
				m.Machines = append(m.Machines, u.member(i, s, k.zones[i].names[s]))
			}
		}
		v.Members = append(v.Members, m)
		if t := k.troubles[i]; t.failures > 0 {
			v.Memory.Failing[name(i)] = balanceplan.Failure{Since: earlier, Failures: int(t.failures), Until: t.until.asTime(later, earlier), Probing: t.probing}
		}
		if t := k.troubles[i]; t.paused != never {
			v.Memory.Paused[name(i)] = t.paused.asTime(later, earlier)
		}
	}
	return v
}

// without is what is known without a guard.
func (k knownZones) without(g Guard) knownZones {
	for i := range k.units {
		for s := range k.units[i] {
			u := &k.units[i][s]
			u.pinned = u.pinned && g != ReadPods
			if u.there && u.phase == pending && g == ReadReadiness {
				u.phase = running
			}
		}
	}
	return k
}

// decide makes a plan.
func (k knownZones) decide() *rebalance {
	v := k.view()
	p := balanceplan.New(v)
	r := &rebalance{}
	for i, o := range p.Outcomes {
		if f := p.Memory.Failing[o.Name]; f.Failures > 0 {
			was := k.troubles[i].failures
			r.failed[i] = f.Failures > int(was)
			r.troubles[i].failures, r.troubles[i].probing = uint8(min(f.Failures, 2)), f.Probing
			if r.troubles[i].until = momentOf(f.Until); f.Probing && !r.failed[i] {
				r.troubles[i].until = passed
			}
		}
		r.troubles[i].paused = momentOf(p.Memory.Paused[o.Name])
		if !o.Write.IsEmpty() {
			r.writes[i] = moveWrite{pending: true, to: zoneOf(written(v.Members[i].Object, o.Write))}
			if o.Write.Gone != "" {
				r.writes[i].gone = uint8(unitIndex(o.Write.Gone)) + 1
			}
		}
	}
	return r
}

// written returns a MachineDeployment after a write.
func written(d *machineapi.MachineDeployment, w balanceplan.Write) *machineapi.MachineDeployment {
	d = d.DeepCopy()
	if w.Replicas != nil {
		d.Spec.Replicas = *w.Replicas
	}
	for key, value := range w.Annotations {
		if d.Annotations[key] = value; value == "" {
			delete(d.Annotations, key)
		}
	}
	return d
}
