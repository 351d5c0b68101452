// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
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
	if z.declined > 0 {
		d.Annotations[machineapi.DeclinedMoveAnnotation] = strconv.Itoa(int(z.declined))
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
	if n, err := strconv.Atoi(d.Annotations[machineapi.DeclinedMoveAnnotation]); err == nil {
		z.declined = uint8(n)
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
		if from := k.zones[1-i].move; g == RecordDeclined && from.gives && k.zones[i].replicas == k.zones[i].limit {
			k.zones[i].declined = from.id
		}
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

// mishanded returns the law that a write of the balance controller breaks.
func (w *MoveWorld) mishanded(i int, one moveWrite) string {
	if at := int(one.gone) - 1; at >= 0 && at < zoneSlots {
		if u := &w.units[i][at]; u.stays() && u.marked {
			return fmt.Sprintf("B4: %s is in reserve, and is named for a replica that has moved.", unitName(i, at))
		}
	}
	return ""
}

// recordTurn records in which direction a plan moves a replica with its machine, and returns the
// law that this breaks.
func (w *MoveWorld) recordTurn(i int, one moveWrite) string {
	taken := one.to.move
	if taken.gives || taken.machines == 0 || w.shown[i].move != (half{id: taken.id, reserve: w.shown[i].move.reserve}) || w.shown[1-i].move.machine == 0 {
		return ""
	}
	if w.turned.turnsBack([zones]direction{lowered, raised}[i]) {
		return fmt.Sprintf("I4: A machine moves to %s, and one has just moved from there, though no fact has changed.", name(i))
	}
	return ""
}

// misbalanced returns the law that a world breaks: replicas change only as owners ask.
func (w *MoveWorld) misbalanced() string {
	sum, moving := w.total(), 0
	for i := range zones {
		h, other := w.zones[i].move, w.zones[1-i].move
		if !h.gives && h.machines > 0 && other.gives && other.id == h.id {
			moving += int(h.machines)
		}
	}
	switch {
	case sum < int(w.owed):
		return fmt.Sprintf("B1: There are %d replicas, and owners asked for %d.", sum, w.owed)
	case sum > int(w.owed+w.slack)+moving:
		return fmt.Sprintf("B1: There are %d replicas, %d of them in two places, and owners asked for %d.", sum, moving, w.owed)
	}
	return ""
}

// unbalanced returns what is wrong with a world at rest.
func (m *Moves) unbalanced(w *MoveWorld) string {
	free := 0
	for i := range zones {
		z := &w.zones[i]
		serving, spare := w.count(i, (*unit).serves), w.count(i, func(u *unit) bool { return u.marked && u.phase == running })
		switch {
		case z.move.id > 0 && !m.mayWait(w):
			return fmt.Sprintf("I5: At rest, %s has %s.", name(i), z.move)
		case z.declined > 0:
			return fmt.Sprintf("I5: At rest, %s has declined a move.", name(i))
		case z.move.id == 0 && z.held && z.applied != z.replicas:
			return fmt.Sprintf("I5: At rest, %s applies %d of %d replicas.", name(i), z.applied, z.replicas)
		case serving > z.workload() && m.mayWait(w): // it is not drained
		case serving != z.workload() || spare != z.excess() || w.present(i) != serving+spare:
			return fmt.Sprintf("I5: At rest, %s has %d machines that serve, of %d, and %d in reserve, of %d.", name(i), serving, z.workload(), spare, z.excess())
		}
		free += max(0, int(z.limit)-int(z.replicas))
	}
	a, b := &w.zones[0], &w.zones[1]
	if shares := a.ownShare() + b.ownShare(); shares != min(int(a.pool), free) {
		return fmt.Sprintf("B6: At rest, shares are %d and %d, of %d.", a.ownShare(), b.ownShare(), a.pool)
	}
	for i := range zones {
		from, to := &w.zones[i], &w.zones[1-i]
		if m.Continuous && !m.mayWait(w) && from.replicas > to.replicas+1 && to.replicas < to.limit {
			return fmt.Sprintf("I5: At rest, %s has %d replicas, and %s has %d.", name(i), from.replicas, name(1-i), to.replicas)
		}
	}
	return ""
}

// mayWait reports whether a move may wait, because a machine may not go.
func (m *Moves) mayWait(w *MoveWorld) bool {
	for i := range zones {
		for at := range w.units[i] {
			if w.units[i][at].pinned {
				return true
			}
		}
	}
	return false
}

// misplanned returns the law that a plan breaks, by what is known.
func (k *knownZones) misplanned(r *rebalance) string {
	var before, after, total int
	for i := range zones {
		z := &k.zones[i]
		next, ready := z.ownShare(), k.ready(i)
		if one := &r.writes[i]; one.pending {
			next = one.to.ownShare()
			if broken := k.miswritten(i, one); broken != "" {
				return broken
			}
		}
		total = max(total, int(z.pool))
		before, after = before+min(z.ownShare(), ready, z.roomBelowMax()), after+min(next, ready)
	}
	if after < min(before, total) {
		return fmt.Sprintf("B6: %d machines in reserve are ready, and only %d of them stay, of %d.", before, after, total)
	}
	return ""
}

// miswritten returns the law that the write of one MachineDeployment breaks.
func (k *knownZones) miswritten(i int, one *moveWrite) string {
	z, other, gone := &k.zones[i], &k.zones[1-i], int(one.gone)-1
	promises := one.to.move.machine > 0 && z.move.id == 0
	switch {
	case gone >= 0 && k.units[i][gone].pinned:
		return fmt.Sprintf("B4: %s is named, though one of its pods must not be evicted.", unitName(i, gone))
	case gone >= 0 && k.serving(1-i) < other.workload():
		return fmt.Sprintf("B4: %s is named before the machine that replaces it serves.", unitName(i, gone))
	case gone < 0 && one.to.workload() < min(z.workload(), k.serving(i)):
		return fmt.Sprintf("B4: %s gives up a machine that serves, and names none.", name(i))
	case promises && (slices.ContainsFunc(k.units[0][:], leaves) || slices.ContainsFunc(k.units[1][:], leaves)):
		return fmt.Sprintf("B4: A machine of %s is promised while another one is leaving.", name(i))
	case promises && k.ready(1-i) < min(int(other.share), other.roomBelowMax()):
		return fmt.Sprintf("B4: A machine of %s is promised before the one that replaces it is ready.", name(i))
	case one.to.replicas > max(z.replicas, z.limit):
		return fmt.Sprintf("B2: %s gets %d replicas, and its max is %d.", name(i), one.to.replicas, z.limit)
	}
	return ""
}

// ready returns how many machines in reserve are ready and stay.
func (k *knownZones) ready(i int) (n int) {
	for s := range k.units[i] {
		if u := &k.units[i][s]; u.there && u.phase == running && u.marked && k.zones[i].names[s] == unnamed {
			n++
		}
	}
	return n
}

// serving returns how many machines of a MachineDeployment serve and stay.
func (k *knownZones) serving(i int) (n int) {
	for s := range k.units[i] {
		if k.units[i][s].serves() && k.zones[i].names[s] == unnamed {
			n++
		}
	}
	return n
}

func leaves(u unit) bool { return u.there && u.phase == terminating }

// roomBelowMax is how many replicas more the MachineDeployment may have.
func (z *zone) roomBelowMax() int { return max(0, int(z.limit)-int(z.replicas)) }

// ownShare is the share without the machine that is created for a move.
func (z *zone) ownShare() int { return max(0, int(z.share)-int(z.move.reserve)) }
