// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"strings"
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

// raiseSlots is the maximum number of machines in the search of raises.
const raiseSlots = 4

// cell is a Machine with its Node and at most one pod, which fills it.
type cell struct {
	there, marked, ready, busy bool
	// Shown is what the stores of package release show. pending reports whether they show its pod as
	// one that waits.
	shown struct{ there, marked, ready, busy, pending bool }
}

// isLatest reports whether the stores show the latest Machine. Pods have a store of their own.
func (c *cell) isLatest() bool {
	return c.shown.there == c.there && c.shown.marked == c.marked && c.shown.ready == c.ready
}

func (c *cell) updateStore() {
	c.shown.there, c.shown.marked, c.shown.ready = c.there, c.marked, c.ready
}

func (c *cell) updatePod() { c.shown.busy, c.shown.pending = c.busy, false }

// raising is a decision of package release that is not written yet.
type raising struct{ by, basis uint8 }

// loop is a loop of an autoscaler. Its request is decided on what it saw, and made later.
type loop struct {
	begun, asks bool
	need        uint8
	// seen are the replicas that the node groups' server noted when the loop began; known is false
	// if it did not.
	seen  uint8
	known bool
}

// RaiseWorld is a MachineDeployment with machines and pods that each need one of them, and what is
// about to raise its replicas.
type RaiseWorld struct {
	replicas uint8
	cells    [raiseSlots]cell
	// waiting are pods without a machine; unseen are those of them that package release does not
	// know. most is how many pods there were at once, or seemed to be.
	waiting, unseen, most uint8
	// shown are the replicas that the store shows. known are those that release, and the server,
	// know from answers to their writes, if they are more.
	shown   uint8
	known   [2]uint8
	raising raising
	loop    loop
	faults  uint8
}

// Those who raise replicas.
const (
	releaser = 0
	grouper  = 1
)

// newest is what one of them knows of the replicas, which only rise here.
func (w *RaiseWorld) newest(who int) uint8 { return max(w.shown, w.known[who]) }

// count counts the machines that meet a condition.
func (w *RaiseWorld) count(is func(c *cell) bool) (n uint8) {
	for i := range w.cells {
		if c := &w.cells[i]; c.there && is(c) {
			n++
		}
	}
	return n
}

func (w *RaiseWorld) pods() uint8 {
	return w.waiting + w.count(func(c *cell) bool { return c.busy })
}

// shownWaiting is how many pods package release believes to wait.
func (w *RaiseWorld) shownWaiting() uint8 {
	return w.waiting - w.unseen + w.count(func(c *cell) bool { return c.shown.pending })
}

// shownPods is how many pods package release believes to exist.
func (w *RaiseWorld) shownPods() uint8 {
	return w.shownWaiting() + w.count(func(c *cell) bool { return c.shown.busy })
}

// needed is how many machines an autoscaler requests: for each pod that no machine has room for, and
// none that is already requested will have.
func (w *RaiseWorld) needed(limit uint8) uint8 {
	serving := w.count(func(c *cell) bool { return !c.marked && c.ready })
	free := w.count(func(c *cell) bool { return !c.marked && c.ready && !c.busy })
	target := w.newest(grouper)
	need := int(w.waiting) - int(free) - max(0, int(target)-int(serving))
	return uint8(max(0, min(need, int(limit)-int(target))))
}

// restart forgets all that is only in memory, and lists everything again.
func (w *RaiseWorld) restart() {
	w.shown, w.known, w.raising, w.unseen = w.replicas, [2]uint8{}, raising{}, 0
	for i := range w.cells {
		w.cells[i].updateStore()
		w.cells[i].updatePod()
	}
}

// String describes the world in one line.
func (w RaiseWorld) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "replicas=%d (known: %d, %d) waiting=%d", w.replicas, w.newest(releaser), w.newest(grouper), w.waiting)
	if seen := w.shownWaiting(); seen != w.waiting {
		fmt.Fprintf(&b, " (known: %d)", seen)
	}
	for i := range w.cells {
		if c := &w.cells[i]; c.there {
			fmt.Fprintf(&b, " %s:%s", name(i), c)
		}
	}
	if w.raising.by > 0 {
		fmt.Fprintf(&b, " to raise from %d by %d", w.raising.basis, w.raising.by)
	}
	if w.loop.begun {
		fmt.Fprintf(&b, " loop from %d", w.loop.seen)
	}
	if w.loop.asks {
		fmt.Fprintf(&b, " needs %d", w.loop.need)
	}
	return b.String()
}

// stateWords describe a machine, whatever it runs.
func stateWords(ready, marked bool) []string {
	words := []string{"booting"}
	if ready {
		words[0] = "ready"
	}
	if marked {
		words = append(words, "reserve")
	}
	return words
}

func (c *cell) String() string {
	words := stateWords(c.ready, c.marked)
	if c.busy {
		words = append(words, "busy")
	}
	if !c.isLatest() || c.shown.busy != c.busy {
		words = append(words, "outdated")
	}
	return "[" + strings.Join(words, " ") + "]"
}

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
			Reserve: c.marked, HasProviderID: true, Registered: c.ready}
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
	v.Wish = spare
	v.Applied = reserve.Applied{Excess: max(0, min(all, limit)-v.Replicas), Max: limit}
	v.SetReplicas = all
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
		n.Spec.Taints = settings.Taints()
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
