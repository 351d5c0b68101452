// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"sync"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	machineapi "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	releaseplan "github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// seenByRelease is what package release decides from.
type seenByRelease struct {
	replicas, limit, waiting uint8
	cells                    [raiseSlots]cell
}

func (k *raiseWalk) seenByRelease() seenByRelease {
	in := seenByRelease{replicas: k.from.newest(releaser), limit: uint8(k.Max), waiting: k.from.shownWaiting()}
	for i := range k.from.cells {
		s := k.from.cells[i].shown
		in.cells[i] = cell{there: s.there, marked: s.marked, ready: s.ready, busy: s.busy}
	}
	return in
}

// releases remembers by how many machines package release raises replicas.
type releases struct {
	mu  sync.RWMutex
	all map[seenByRelease]uint8
}

func newReleases() *releases { return &releases{all: map[seenByRelease]uint8{}} }

func (r *releases) planFor(in seenByRelease) uint8 {
	r.mu.RLock()
	by, known := r.all[in]
	r.mu.RUnlock()
	if known {
		return by
	}
	by = in.decide()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[in] = by
	return by
}

// decide makes a plan.
func (in seenByRelease) decide() (by uint8) {
	w := RaiseWorld{replicas: in.replicas, cells: in.cells}
	limit := int(in.limit)
	p := releaseplan.Pool{Key: namespace + "/pool", Replicas: int(in.replicas), Max: limit, NodeOf: map[string]string{}, Sample: fullNode("sample", false)}
	p.Reserve = w.reserveView(limit)
	v := releaseplan.View{Now: now, Settings: releaseplan.Settings{Patience: time.Hour}}
	for i := range in.cells {
		c := &in.cells[i]
		if !c.there || !c.ready {
			continue
		}
		n := releaseplan.Node{Object: fullNode(name(i), c.marked)}
		if c.busy {
			n.Pods = append(n.Pods, fit.NewPod(fullPod("runs-"+name(i), name(i)), nil))
		}
		v.Nodes = append(v.Nodes, n)
		p.NodeOf[name(i)] = name(i)
	}
	for i := range in.waiting {
		v.Waiting = append(v.Waiting, fit.NewPod(fullPod(fmt.Sprint("waits-", i), ""), &fit.Lookups{}))
	}
	v.Pools = []releaseplan.Pool{p}
	for _, r := range releaseplan.New(v).Raises {
		by += uint8(r.By)
	}
	return by
}

// reserveView returns the machines as the rule of the reserve sees them.
func (w *RaiseWorld) reserveView(limit int) reserve.View {
	spare := 0
	v := reserve.View{Now: now, Replicas: int(w.replicas), Max: limit, CurrentSet: setName(0), Patience: patience}
	for i := range w.cells {
		c := &w.cells[i]
		if !c.there {
			continue
		}
		m := reserve.Machine{Name: name(i), Created: now.Add(time.Duration(i-raiseSlots) * time.Minute), Set: setName(0), Phase: mcm.MachinePending,
			Reserve: c.marked, HasProviderID: true, Registered: c.ready, Priority: reserve.PriorityServing, SeenPriority: reserve.PriorityServing}
		if c.ready {
			m.Phase = mcm.MachineRunning
		}
		if c.busy {
			m.Pods = 1
		}
		if c.marked {
			spare++
		}
		v.Machines = append(v.Machines, m)
	}
	all := len(v.Machines)
	v.Wish, v.Excess = spare, max(0, min(all, limit)-v.Replicas)
	v.Applied = reserve.Applied{Excess: v.Excess, Max: limit}
	v.SetReplicas, v.MaxSetReplicas = all, all
	return v
}

// deployment returns the MachineDeployment.
func (w *RaiseWorld) deployment(limit int) *machineapi.MachineDeployment {
	d := &machineapi.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "pool", Namespace: namespace, UID: "pool",
		Annotations: map[string]string{machineapi.BoundsAnnotation: fmt.Sprintf("0:%d", limit)}}}
	d.Spec.Replicas = int32(w.replicas)
	return d
}

// fullNode returns a Node with room for one pod of fullPod.
func fullNode(name string, marked bool) *corev1.Node {
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourcePods: resource.MustParse("10")}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	n.Status = corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}
	if marked {
		n.Spec.Taints = mark.Taints
	}
	return n
}

func fullPod(name, node string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: types.UID(name)}, Spec: corev1.PodSpec{NodeName: node}}
	p.Spec.Containers = []corev1.Container{{Name: "work", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}
	if node == "" {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	}
	return p
}
