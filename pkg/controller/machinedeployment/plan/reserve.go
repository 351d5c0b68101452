// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/requeue"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// Drained is the reason of machines that are drained because more machines serve than workload needs.
const Drained Reason = "Drained"

// keepReserve changes machines and Nodes as was decided about the reserve.
func (p *Plan) keepReserve(d *deployment) {
	k := d.kept
	if k == nil {
		return
	}
	v := *d.View.Reserve
	p.Again = requeue.Sooner(p.Again, k.Again)
	if k.Idle {
		d.kept = nil
		return
	}
	p.Memory = &k.Memory
	d.creatable, d.serving = k.Rule.Room, k.Rule.Serve
	d.mark = v.Settings.NewMark(v.Now)
	for _, c := range k.Machines {
		d.replaceMachine(c.Name, func(m *mcm.Machine) *mcm.Machine { return v.ChangedFrom(m, c) })
	}
	for _, c := range k.Nodes {
		d.changeNode(c.Machine.Object, func(node *corev1.Node) { c.ApplyTo(node) })
		d.urgent[c.Machine.Node.Name] = true
	}
	d.changeOwn(k.Deployment)
	p.Moves = k.Machines
}

// replaceMachine changes a machine in the MachineSet that has it.
func (d *deployment) replaceMachine(name string, change func(*mcm.Machine) *mcm.Machine) {
	for _, s := range d.sets() {
		for i, m := range s.machines {
			if m.Name == name {
				s.machines[i] = change(m)
			}
		}
	}
}

// changeOwn makes the changes of the MachineDeployment itself.
func (d *deployment) changeOwn(c machinetaint.DeploymentChange) {
	o := d.Object
	o.Spec.Replicas += int32(c.Replicas)
	if c.Field != nil {
		o.Spec.ExcessReplicas = c.Field
	}
	if c.Witness != nil {
		o.Spec.ReserveWitness = *c.Witness
	}
	if c.Managed != nil {
		o.ManagedFields = c.Managed
	}
	for key, value := range c.Annotations {
		if delete(o.Annotations, key); value != "" {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, key, value)
		}
	}
	was, is := pool.AppliedOf(d.stored, d.stored.Spec.Replicas), pool.AppliedOf(o, o.Spec.Replicas)
	d.events = append(d.events, announceOwn(c, was.Excess, is.Excess)...)
}

// ExcessRestored is the reason of the event that spec.excessReplicas was restored.
const ExcessRestored = "ExcessRestored"

// announceOwn says what became of spec.excessReplicas and of the applied excess.
func announceOwn(c machinetaint.DeploymentChange, was, is int) (events []Event) {
	say := func(reason, format string, args ...any) {
		events = append(events, Event{nil, corev1.EventTypeNormal, reason, fmt.Sprintf(format, args...)})
	}
	if c.Restored {
		say(ExcessRestored, "spec.excessReplicas was removed and has been restored to %d; set it to 0 to disable the reserve", ptr.Deref(c.Field, 0))
	}
	if c.Removed {
		say("ExcessRemoved", "spec.excessReplicas was removed, so no excess is requested")
	}
	if is < was {
		say("ReserveShrunk", "Applied excess reduced from %d to %d", was, is)
	}
	return events
}

// surplusBesideReserve returns the machines of a MachineSet beyond its replicas that may be deleted now.
// Machines of the reserve go first as far as the reserve is to shrink. For workload, those go that are
// named, and others in the usual order. In a rollout, those that are not ready go before all others, as
// the steps of the rollout count on, and the rest of the reserve goes last, so that each pod moves only
// once. In the newest MachineSet, none that workload needs goes in place of one in reserve. A machine in
// reserve goes only if no pod can come, and but for the last of a rollout, only if none runs there.
func (s *set) surplusBesideReserve(staying []*mcm.Machine, n int) (surplus []*mcm.Machine) {
	rule := s.of.kept.Rule
	closed := func(m *mcm.Machine) bool { return slices.Contains(rule.Closed, m.Name) }
	take := func(limit int, may func(*mcm.Machine) bool) {
		for _, m := range firstToGo(staying, s.Now) {
			if limit > 0 && len(surplus) < n && may(m) && !slices.Contains(surplus, m) {
				surplus = append(surplus, m)
				limit--
			}
		}
	}
	takeGoing := func() {
		for _, going := range rule.Going {
			take(n, func(m *mcm.Machine) bool { return m.Name == going.Name && going.Why != reserve.Surplus })
		}
	}
	if !s.of.isReplacing() {
		takeGoing()
		take(n, pool.Condemned)
		take(rule.Cut, func(m *mcm.Machine) bool { return !pool.Marked(m) })
		return surplus
	}
	take(n, func(m *mcm.Machine) bool {
		return !pool.Ready(m.Status.CurrentStatus.Phase) && (!pool.Marked(m) || s.of.View.Reserve.Unreachable == "" || closed(m))
	})
	takeGoing()
	serving, most := func(m *mcm.Machine) bool { return !pool.Marked(m) }, n
	if s == s.of.newest && slices.ContainsFunc(staying, func(m *mcm.Machine) bool { return pool.Marked(m) && !slices.Contains(surplus, m) }) {
		most = int(s.inUse()-s.of.neededOfNewest()) - len(slices.DeleteFunc(slices.Clone(surplus), pool.Marked))
	}
	take(most, serving)
	for _, name := range rule.Closed {
		take(n, func(m *mcm.Machine) bool { return m.Name == name })
	}
	return surplus
}

// neededOfNewest returns how many machines of the newest MachineSet workload needs. After replicas fall, or
// after pods came to machines in reserve, that may be more than it is to have: old machines go in their place,
// so that each pod moves only once.
func (d *deployment) neededOfNewest() int32 {
	if d.kept == nil {
		return 0
	}
	return min(d.newest.inUse(), int32(d.kept.Rule.Replicas))
}

// inUse counts machines that are not in reserve, and stay.
func (s *set) inUse() (n int32) {
	for _, m := range s.machines {
		if !pool.Marked(m) && m.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

// spareIn returns how many machines of a MachineSet go because the reserve shrinks. In a rollout, none is
// drained.
func (d *deployment) spareIn(s *set) (n int32) {
	for _, m := range s.machines {
		if goes, _ := d.isGoing(m); goes {
			n++
		}
	}
	return n
}

// isGoing reports whether the decision about the reserve is that a machine goes, and whether it is
// drained, because more serve than workload needs, for too long. Others go because the reserve shrinks.
func (d *deployment) isGoing(m *mcm.Machine) (goes, drained bool) {
	if d == nil || d.kept == nil {
		return false, false
	}
	going := d.kept.Rule.Going
	i := slices.IndexFunc(going, func(g reserve.Deletion) bool { return g.Name == m.Name })
	return i >= 0, i >= 0 && going[i].Why == reserve.Surplus
}

// isReplacing reports whether machines of older templates are replaced, so that a rollout decides how many
// each MachineSet has.
func (d *deployment) isReplacing() bool { return d.View.Reserve.Rollout }

// isSpare reports whether a machine goes because the reserve shrinks, whatever number of machines there
// is: others may be missing. In a rollout, that decides.
func (s *set) isSpare(m *mcm.Machine) bool {
	goes, drained := s.of.isGoing(m)
	return goes && !drained && !s.of.isReplacing()
}

// isNamedSpare reports whether a client marked a reserve machine for deletion. It goes at once: workload does
// not need it, and replicas that were lowered for it are restored by the same plan.
func (s *set) isNamedSpare(m *mcm.Machine) bool {
	return s.of != nil && s.of.kept != nil && pool.Marked(m) && pool.Condemned(m)
}

// isDrained reports whether a machine is drained.
func (s *set) isDrained(m *mcm.Machine) bool {
	_, drained := s.of.isGoing(m)
	return drained
}

// addRoles decides how many of the machines that a MachineSet creates are in reserve.
func (d *deployment) addRoles(c *Creation) {
	if d.kept == nil {
		return
	}
	c.Count = min(c.Count, d.creatable)
	serve := min(c.Count, d.serving)
	d.creatable, d.serving = d.creatable-c.Count, d.serving-serve
	c.Reserve, c.Mark = c.Count-serve, d.mark
}

// omitSpares leaves machines of the reserve out of a status that have yet to become ready, so that who
// waits for the MachineDeployment does not wait for its reserve.
func (d *deployment) omitSpares(after *machine.MachineDeploymentStatus) {
	if d.kept == nil || d.View.Reserve.AllLeaving {
		return
	}
	spares := map[string]bool{}
	for _, s := range d.sets() {
		for _, m := range s.machines {
			if !pool.Marked(m) || !isStarting(m) {
				continue
			}
			spares[m.Name] = true
			if m.DeletionTimestamp != nil {
				continue // it counts until it is gone
			}
			if after.Replicas--; s == d.newest {
				after.UpdatedReplicas--
			}
		}
	}
	after.UnavailableReplicas = max(0, after.UnavailableReplicas-d.unready())
	after.FailedMachines = slices.DeleteFunc(after.FailedMachines, func(m *mcm.MachineSummary) bool { return spares[m.Name] })
}

// unready returns how many machines of the reserve are not ready, or not there yet.
func (d *deployment) unready() int32 {
	if d.kept == nil {
		return 0
	}
	ready := 0
	for _, s := range d.sets() {
		for _, m := range s.machines {
			if pool.Marked(m) && pool.Ready(m.Status.CurrentStatus.Phase) {
				ready++
			}
		}
	}
	return int32(max(0, d.kept.Rule.Total-d.kept.Rule.Replicas-ready))
}

// isStarting reports whether a machine is being created, or could not be.
func isStarting(m *mcm.Machine) bool {
	switch m.Status.CurrentStatus.Phase {
	case "", mcm.MachinePending, mcm.MachineCrashLoopBackOff:
		return true
	case mcm.MachineFailed:
		return m.Status.LastOperation.Type == mcm.MachineOperationCreate
	}
	return false
}

// isDone reports whether all machines are those of the newest MachineSet, and available, those included
// that a status leaves out.
func (d *deployment) isDone() bool {
	all, available := 0, 0
	for _, s := range d.sets() {
		n := s.count()
		all, available = all+int(n.all), available+int(n.available)
	}
	r := int(d.replicas())
	return all == r && available == r && (r == 0 || d.newest != nil && len(d.newest.machines) == r)
}

// isFinished reports whether a rollout has ended, and the stored status says so.
func (d *deployment) isFinished() bool {
	status := d.stored.Status
	if d.kept == nil {
		return d.isComplete(status.StockMachineDeploymentStatus)
	}
	return d.isDone() && reasonOf(progressing(status)) == newSetAvailable
}

// reportReserve adds what the status says of the reserve.
func (d *deployment) reportReserve(after *machine.MachineDeploymentStatus) []Event {
	if d.kept == nil {
		return nil
	}
	was := machinetaint.Condition(d.stored)
	with := *d.stored
	with.Status = *after
	*after = machinetaint.NewStatus(&with, d.kept.Report, metav1.NewTime(d.Now))
	if kind, reason := d.kept.Report.EventAfter(was); reason != "" {
		return []Event{{nil, kind, reason, d.kept.Report.Message}}
	}
	return nil
}
