// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/controller"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// manage runs one pass of machine-controller-manager's controllers for each MachineDeployment.
func (w *world) manage(context.Context) (moved bool, again time.Duration, err error) {
	if err := w.showReserve(); err != nil { // creations are decided by it
		return false, 0, err
	}
	for _, d := range w.deployments.sorted() {
		if d.DeletionTimestamp != nil {
			w.addNote("MachineDeployment %s is being deleted, which is not predicted", keyOf(d))
			continue
		}
		did := w.setPriorities(d)
		shown := view.ShowDeployment(asStock(d))
		current, others := w.setsOf(d, shown)
		if len(others) > 0 {
			did = w.rollingUpdate(d, current, others, int(shown.Spec.Replicas)) || did
		} else {
			did = w.scaleSet(d, current, int(shown.Spec.Replicas)) || did
		}
		moved = moved || did
	}
	return moved, 0, nil
}

func asStock(d *machine.MachineDeployment) *mcm.MachineDeployment {
	return &mcm.MachineDeployment{ObjectMeta: d.ObjectMeta, Spec: d.Spec.StockMachineDeploymentSpec}
}

// setPriorities sets the deletion priority of machines that are named for deletion, and drops the
// names of machines that are gone.
func (w *world) setPriorities(d *machine.MachineDeployment) (moved bool) {
	text := d.Annotations[machineutils.TriggerDeletionByMCM]
	if text == "" {
		return false
	}
	var left []string
	for item := range strings.SplitSeq(text, ",") {
		name, at, timed := strings.Cut(item, "~")
		if !timed {
			at = w.lastChange(d).Format(time.RFC3339)
			item = name + "~" + at
		}
		m := w.machines[d.Namespace+"/"+name]
		if _, err := time.Parse(time.RFC3339, at); err != nil || m == nil || machineutils.IsMachineFailedOrTerminating(m) {
			continue
		}
		left = append(left, item)
		if pool.Condemned(m) {
			continue
		}
		m, moved = m.DeepCopy(), true
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, machineutils.MachinePriority, "1")
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, machineutils.MarkedForDeletionTime, at)
		w.machines[keyOf(m)] = m
	}
	if after := strings.Join(left, ","); after != text {
		d, moved = d.DeepCopy(), true
		if d.Annotations[machineutils.TriggerDeletionByMCM] = after; after == "" {
			delete(d.Annotations, machineutils.TriggerDeletionByMCM)
		}
		w.putDeployment(d)
	}
	return moved
}

// setsOf returns the MachineSet of the template, which it creates if necessary, and others that are
// in use.
func (w *world) setsOf(d *machine.MachineDeployment, shown *mcm.MachineDeployment) (current *mcm.MachineSet, others []*mcm.MachineSet) {
	sets, staying := w.sets.ownedBy(d.UID), map[string]int{}
	for _, set := range sets {
		staying[set.Name] = len(w.present(set))
	}
	rollout := pool.RolloutOf(d, sets, staying)
	if i := slices.IndexFunc(sets, func(set *mcm.MachineSet) bool { return set.Name == rollout.Set }); i >= 0 && !rollout.Replacing {
		return sets[i], nil
	}
	if current = controller.FindNewMachineSet(shown, sets); current == nil {
		current = w.newSet(d)
	}
	for _, set := range sets {
		if set.Name != current.Name && (set.Spec.Replicas > 0 || staying[set.Name] > 0) {
			others = append(others, set)
		}
	}
	if len(others) > 0 && d.Spec.Strategy.InPlaceUpdate != nil {
		w.addNote("MachineDeployment %s updates its machines in place, which is not predicted", keyOf(d))
		return others[0], nil
	}
	return current, others
}

func (w *world) newSet(d *machine.MachineDeployment) *mcm.MachineSet {
	set := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: d.Namespace, Name: d.Name + "-" + w.version(), Labels: d.Spec.Template.Labels, CreationTimestamp: metav1.NewTime(w.now),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: mcm.SchemeGroupVersion.String(), Kind: "MachineDeployment", Name: d.Name, UID: d.UID, Controller: ptr.To(true)}},
	}}
	set.UID = types.UID(set.Name)
	set.Spec.Selector, set.Spec.Template = d.Spec.Selector, *d.Spec.Template.DeepCopy()
	w.sets[keyOf(set)] = set
	return set
}

// present returns the machines of a MachineSet that machine-controller-manager counts, in the order
// in which it would delete them.
func (w *world) present(set *mcm.MachineSet) []*mcm.Machine {
	var all []*mcm.Machine
	for _, m := range w.machines.ownedBy(set.UID) {
		if m.Status.CurrentStatus.Phase != mcm.MachineTerminating {
			all = append(all, m)
		}
	}
	return inOrder(all)
}

func (w *world) resize(set *mcm.MachineSet, replicas int) (moved bool) {
	if int(set.Spec.Replicas) == replicas {
		return false
	}
	after := *set
	after.Spec.Replicas = int32(replicas)
	w.sets[keyOf(set)] = &after
	return true
}

// scaleSet creates or deletes machines until a MachineSet owns as many as it should.
func (w *world) scaleSet(d *machine.MachineDeployment, set *mcm.MachineSet, replicas int) (moved bool) {
	moved = w.resize(set, replicas)
	present := w.present(set)
	over := len(present) - replicas
	w.ties = w.ties.merge(tiedMachines(present, over))
	for i, m := range present {
		if (i < over || w.doomed(d, m)) && m.DeletionTimestamp == nil {
			w.remove(m)
			moved = true
		}
	}
	if over < 0 && frozen(d, set) && !w.unfreezes(d, set, replicas) {
		w.addNote("MachineDeployment %s is frozen, so no machines are created", keyOf(d))
		return moved
	}
	for range w.followed("MachineDeployment", keyOf(d), -over) {
		w.create(d, set)
		moved = true
	}
	return moved
}

// doomed reports whether a machine is deleted whatever the replicas are: it has failed, or was
// named before the last change of replicas by a client that names machines.
func (w *world) doomed(d *machine.MachineDeployment, m *mcm.Machine) bool {
	expiry := m.Status.CurrentStatus.PreserveExpiryTime
	if m.Status.CurrentStatus.Phase == mcm.MachineFailed && (expiry == nil || !expiry.After(w.now)) {
		return true
	}
	named, err := time.Parse(time.RFC3339, m.Annotations[machineutils.MarkedForDeletionTime])
	return err == nil && m.Annotations[machineutils.MachinePriority] == "1" && !named.After(w.lastChange(d))
}

// lastChange returns when a client that names machines last changed replicas; now if that is not
// recorded.
func (w *world) lastChange(d *machine.MachineDeployment) time.Time {
	if at, err := time.Parse(time.RFC3339, d.Annotations[machineutils.LastDeploymentReplicaChangeByScalerTime]); err == nil {
		return at
	}
	return w.now.UTC().Truncate(time.Second)
}

func frozen(d *machine.MachineDeployment, set *mcm.MachineSet) bool {
	return d.Labels["freeze"] == "True" || set.Labels["freeze"] == "True"
}

// safetyDown is machine-controller-manager's default: how far below the number that froze it a
// MachineSet must fall.
const safetyDown = 1

// unfreezes reports whether machine-controller-manager, which checks every minute, is about to let
// a frozen MachineSet create machines again. There may have been too many for a moment only, for
// example when many leave at once.
func (w *world) unfreezes(d *machine.MachineDeployment, set *mcm.MachineSet, replicas int) bool {
	surge, _ := rolloutLimits(d, replicas)
	if len(w.machines.ownedBy(set.UID)) > replicas+surge+w.safetyUp-safetyDown {
		return false
	}
	w.addNote("MachineDeployment %s is frozen; machine-controller-manager creates machines again after its next check, within a minute", keyOf(d))
	return true
}

// rollingUpdate is one pass of a rolling update: it deletes machines of the old sets that are not
// ready, and as many others as leave enough available; then it creates as many new machines as the
// surge allows.
func (w *world) rollingUpdate(d *machine.MachineDeployment, current *mcm.MachineSet, others []*mcm.MachineSet, replicas int) (moved bool) {
	fresh, old, ready := w.present(current), []*mcm.Machine{}, 0
	for _, set := range others {
		old = append(old, w.present(set)...)
	}
	for _, m := range append(old[:len(old):len(old)], fresh...) {
		if m.Status.CurrentStatus.Phase == mcm.MachineRunning && m.DeletionTimestamp == nil {
			ready++
		}
	}
	surge, unavailable := rolloutLimits(d, replicas)
	for _, m := range old {
		running := m.Status.CurrentStatus.Phase == mcm.MachineRunning
		if m.DeletionTimestamp != nil || running && ready <= replicas-unavailable {
			continue
		}
		if running {
			ready--
		}
		w.remove(m)
		moved = true
	}
	left := 0
	for _, set := range others {
		n := len(w.present(set))
		left += n
		moved = w.resize(set, n) || moved
	}
	create := min(replicas-len(fresh), replicas+surge-left-len(fresh))
	moved = w.resize(current, len(fresh)+max(0, create)) || moved
	for range w.followed("MachineDeployment", keyOf(d), create) {
		w.create(d, current)
		moved = true
	}
	return moved
}

// rolloutLimits returns how far a rolling update may go above and below the desired number.
func rolloutLimits(d *machine.MachineDeployment, replicas int) (surge, unavailable int) {
	strategy := d.Spec.Strategy
	if strategy.RollingUpdate == nil {
		return 0, replicas // all at once
	}
	up, down, err := controller.ResolveFenceposts(strategy.RollingUpdate.MaxSurge, strategy.RollingUpdate.MaxUnavailable, int32(replicas))
	if err != nil {
		return 1, 0
	}
	return int(up), int(down)
}

func (w *world) remove(m *mcm.Machine) {
	m = m.DeepCopy()
	m.DeletionTimestamp = ptr.To(metav1.NewTime(w.now))
	m.Status.CurrentStatus.Phase = mcm.MachineTerminating
	w.machines[keyOf(m)] = m
}

// create creates a machine of a set. It serves or is in reserve from the beginning.
func (w *world) create(d *machine.MachineDeployment, set *mcm.MachineSet) {
	template := set.Spec.Template.DeepCopy()
	m := &mcm.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: d.Namespace, Name: fmt.Sprintf("%s-new-%d", set.Name, len(w.born)+1), CreationTimestamp: metav1.NewTime(w.now),
		Labels: maps.Clone(template.Labels), Annotations: template.Annotations,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: mcm.SchemeGroupVersion.String(), Kind: "MachineSet", Name: set.Name, UID: set.UID, Controller: ptr.To(true)}},
	}, Spec: template.Spec}
	m.UID = types.UID(m.Name)
	m = w.taint.Created(d.Namespace, d.Name, m)
	w.machines[keyOf(m)] = m
	w.born[keyOf(m)] = true
}

// advanceMachines moves each machine forward by one step and binds pods.
func (w *world) advanceMachines(context.Context) (moved bool, again time.Duration, err error) {
	for _, d := range w.deployments.sorted() {
		read := sync.OnceValue(func() pool.Snapshot { return w.snapshot(d) })
		for _, m := range w.machinesOf(d) {
			moved = w.advanceMachine(d, m, read) || moved
		}
		moved = w.bindPods(d) || moved
	}
	return moved, 0, nil
}

// advanceMachine moves a machine forward; read reads its MachineDeployment.
func (w *world) advanceMachine(d *machine.MachineDeployment, m *mcm.Machine, read func() pool.Snapshot) (moved bool) {
	key, phase := keyOf(m), m.Status.CurrentStatus.Phase
	if m.DeletionTimestamp != nil {
		if phase == mcm.MachineTerminating {
			w.deleteMachine(m)
			return true
		}
		w.remove(m)
		return true
	}
	switch phase {
	case "":
		m = m.DeepCopy()
		if last, fails := w.unmade[keyOf(d)]; fails {
			m.Status.CurrentStatus.Phase, m.Status.LastOperation = mcm.MachineCrashLoopBackOff, last
			break
		}
		m.Status.CurrentStatus.Phase = mcm.MachinePending
		m.Spec.ProviderID = "forecast:///" + m.Name
		metav1.SetMetaDataLabel(&m.ObjectMeta, mcm.NodeLabelKey, m.Name)
		if m.Annotations[machineutils.MachinePriority] == "" {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, machineutils.MachinePriority, "3")
		}
	case mcm.MachinePending:
		if m.Spec.ProviderID == "" {
			return false
		}
		m = m.DeepCopy()
		m.Status.CurrentStatus = mcm.CurrentStatus{Phase: mcm.MachineRunning, LastUpdateTime: metav1.NewTime(w.now)}
		w.register(m, read)
	case mcm.MachineUnknown:
		w.addNote("Machine %s is Unknown; the prediction assumes that it stays Unknown", key)
		return false
	default:
		return false
	}
	w.machines[key] = m
	return true
}

// register creates the Node of a machine that has booted: like the Node that shows what machines of
// its MachineDeployment offer, otherwise as the MachineClass describes it, otherwise like any of
// them.
func (w *world) register(m *mcm.Machine, read func() pool.Snapshot) {
	name := m.Labels[mcm.NodeLabelKey]
	if !w.still.seesTarget() || name == "" || w.nodes["/"+name] != nil {
		return
	}
	template := m.Spec.NodeTemplateSpec
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(template.Labels), Annotations: maps.Clone(template.Annotations)}}
	s := read()
	if like := example(s); like != nil {
		node.Labels, node.Status.Allocatable, node.Status.Capacity = maps.Clone(like.Labels), like.Status.Allocatable, like.Status.Capacity
	} else if s.Allocatable != nil {
		node.Status.Capacity, node.Status.Allocatable = s.Allocatable, s.Allocatable
		metav1.SetMetaDataLabel(&node.ObjectMeta, corev1.LabelTopologyZone, s.Class.NodeTemplate.Zone)
	}
	metav1.SetMetaDataLabel(&node.ObjectMeta, corev1.LabelHostname, name)
	node.UID, node.CreationTimestamp, node.Spec.Taints = types.UID(name), metav1.NewTime(w.now), template.Spec.Taints
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.now)}}
	w.nodes[keyOf(node)] = node
}

// example returns a Node like that of a new machine, nil if the MachineClass describes it, or
// nothing does.
func example(s pool.Snapshot) *corev1.Node {
	if s.Sample != nil || s.Allocatable != nil {
		return s.Sample
	}
	for _, m := range s.Machines {
		if m.Node != nil {
			return m.Node
		}
	}
	return nil
}

// deleteMachine removes a machine and its Node. Its pods wait for another node.
func (w *world) deleteMachine(m *mcm.Machine) {
	delete(w.machines, keyOf(m))
	name := m.Labels[mcm.NodeLabelKey]
	if name == "" {
		return
	}
	delete(w.nodes, "/"+name)
	for key, pod := range w.pods {
		switch {
		case pod.Spec.NodeName != name:
		case !pool.IsWorkload(pod):
			delete(w.pods, key)
		default:
			pod = pod.DeepCopy()
			pod.Spec.NodeName = ""
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, evictedFrom, owningSet(m))
			w.pods[key] = pod
		}
	}
}

// evictedFrom, on a pod of a prediction, names the MachineSet of its former machine.
const evictedFrom = "forecast/evicted-from"

func owningSet(m *mcm.Machine) string {
	if owner := metav1.GetControllerOfNoCopy(m); owner != nil {
		return string(owner.UID)
	}
	return ""
}
