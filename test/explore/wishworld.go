// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machineapi "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	reservesplan "github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
)

// baseReplicas is how many machines for workload each MachineDeployment has.
const baseReplicas = 1

// wishNames are the names of Reserves. The second precedes the first in the alphabet.
var wishNames = [2]string{"shop", "queue"}

// wish is a Reserve.
type wish struct {
	there  bool
	amount uint8
	// parts are how its machines are spread, as its status contains it.
	parts [2]part
}

// part is what a Reserve's status contains about a MachineDeployment.
type part struct {
	listed, blocked bool
	machines        uint8
}

// health is the condition ReserveReady of a MachineDeployment.
type health uint8

const (
	noReserve health = iota
	complete
	growing
	cannotBeMade
	atMax
)

// target is a MachineDeployment.
type target struct {
	there, leaving bool
	// limit is its max, and own its own excess.
	limit, own uint8
	// asked is how many machines the annotation requested-excess requests, and by the number of the
	// Reserve that it names, plus one. touched reports whether others have changed the
	// MachineDeployment since the controller wrote that.
	asked, by uint8
	touched   bool
	// ready and health are what the controller of MachineDeployments reports.
	ready  uint8
	health health
}

// known is an object, with what the controller knows of it.
type known[T comparable] struct {
	is T
	// shown is what the store shows, and latest reports whether that is the latest version.
	shown  T
	latest bool
	// answer is what the API server answered to the controller's last write, remembered until the
	// store shows as much. current reports whether it is the latest version.
	answer            T
	answered, current bool
	// news reports whether the latest version contains facts that the controller does not know.
	news bool
}

func (o *known[T]) begin(is T) { *o = known[T]{is: is, shown: is, latest: true} }

// change makes a new version. One that is not the controller's own contains facts.
func (o *known[T]) change(to T, news bool) {
	o.is, o.latest, o.current, o.news = to, false, false, o.news || news
}

// newest is what the controller uses, and whether that is the latest version.
func (o *known[T]) newest() (is T, latest bool) {
	if o.answered {
		return o.answer, o.current
	}
	return o.shown, o.latest
}

// record remembers an answer.
func (o *known[T]) record() { o.answer, o.answered, o.current = o.is, true, true }

// forget is what a restart does.
func (o *known[T]) forget() {
	var nothing T
	o.answer, o.answered, o.current = nothing, false, false
}

// wishWrite is a write that has been decided and not yet done: an annotation, or a status.
type wishWrite struct {
	pending bool
	// outdated reports whether the object has changed since.
	outdated  bool
	asked, by uint8
	parts     [2]part
}

// WishWorld is two Reserves and two MachineDeployments, with what the controller of Reserves has
// seen and is about to write.
type WishWorld struct {
	wishes  [2]known[wish]
	targets [2]known[target]
	// out reports whether machines cannot be created there.
	out [2]bool
	// queued reports whether the controller looks again.
	queued bool
	// writes are the rest of a plan, in order: the annotations of both MachineDeployments, and the
	// statuses of both Reserves.
	writes [4]wishWrite
	// turns are in which direction the controller has decided to change the annotation of each
	// MachineDeployment since it last learned facts, and since a write failed: what it remembers is
	// in the statuses of Reserves.
	turns [2]direction
	// faults is how many more may happen.
	faults uint8
}

// objectName names the object of a write.
func objectName(n int) string {
	if n < 2 {
		return "MachineDeployment " + name(n)
	}
	return "Reserve " + wishNames[n-2]
}

// known returns what the controller decides from.
func (w *WishWorld) known() (k knownWishes) {
	for i := range w.wishes {
		k.wishes[i], _ = w.wishes[i].newest()
		k.targets[i], _ = w.targets[i].newest()
	}
	return k
}

func (w *WishWorld) isLatest(n int) (latest bool) {
	if n < 2 {
		_, latest = w.targets[n].newest()
	} else {
		_, latest = w.wishes[n-2].newest()
	}
	return latest
}

func (w *WishWorld) isShown(n int) bool {
	if n < 2 {
		return w.targets[n].latest
	}
	return w.wishes[n-2].latest
}

// updateStore makes a store show an object, which queues it.
func (w *WishWorld) updateStore(n int) {
	news := false
	if n < 2 {
		news = w.targets[n].news
		w.targets[n].begin(w.targets[n].is)
	} else {
		news = w.wishes[n-2].news
		w.wishes[n-2].begin(w.wishes[n-2].is)
	}
	if news {
		w.turns = [2]direction{}
	}
	w.queued = true
}

// changeTarget makes a new version of a MachineDeployment, which may contain facts. What is only
// reported because of the controller's own request is none.
func (w *WishWorld) changeTarget(i int, news bool, f func(t *target)) {
	to := w.targets[i].is
	f(&to)
	w.targets[i].change(to, news)
	w.writes[i].outdated = w.writes[i].pending
}

// changeWish makes a new version of a Reserve.
func (w *WishWorld) changeWish(i int, news bool, to wish) {
	w.wishes[i].change(to, news)
	w.writes[i+2].outdated = w.writes[i+2].pending
}

// nextWrite returns the number of the next write of the plan; below 0 if there is none.
func (w *WishWorld) nextWrite() int {
	return slices.IndexFunc(w.writes[:], func(one wishWrite) bool { return one.pending })
}

// failWrite ends a write without an effect. The controller looks again, unless the object is gone.
func (w *WishWorld) failWrite(n int) {
	w.writes[n], w.turns = wishWrite{}, [2]direction{}
	w.queued = w.queued || !w.isGone(n)
}

func (w *WishWorld) isGone(n int) bool {
	return n < 2 && !w.targets[n].is.there || n >= 2 && !w.wishes[n-2].is.there
}

// restart forgets all that is only in memory.
func (w *WishWorld) restart() {
	w.writes, w.queued, w.turns = [4]wishWrite{}, true, [2]direction{}
	for i := range w.wishes {
		w.wishes[i].forget()
		w.targets[i].forget()
	}
}

// isInformed reports whether the controller knows the latest version of everything, and what is
// requested is what the statuses of Reserves remember.
func (w *WishWorld) isInformed() bool {
	for n := range w.writes {
		if !w.isLatest(n) {
			return false
		}
	}
	for i := range w.targets {
		if w.targets[i].is.asked != max(w.wishes[0].is.parts[i].machines, w.wishes[1].is.parts[i].machines) {
			return false
		}
	}
	return true
}

// String describes the world in one line.
func (w WishWorld) String() string {
	var b strings.Builder
	for i, o := range w.wishes {
		seen, latest := o.newest()
		fmt.Fprintf(&b, "%s: %s", wishNames[i], o.is)
		if !latest {
			fmt.Fprintf(&b, " (known: %s)", seen)
		}
		b.WriteString("; ")
	}
	for i, o := range w.targets {
		seen, latest := o.newest()
		fmt.Fprintf(&b, "%s: %s", name(i), o.is)
		if w.out[i] {
			b.WriteString(" out")
		}
		if !latest {
			fmt.Fprintf(&b, " (known: %s)", seen)
		}
		b.WriteString("; ")
	}
	for n, one := range w.writes {
		switch {
		case one.pending && n < 2:
			fmt.Fprintf(&b, "to write: %s requested=%s; ", name(n), requestText(one.asked, one.by))
		case one.pending:
			fmt.Fprintf(&b, "to write: %s spread as %s; ", wishNames[n-2], partsText(one.parts))
		}
	}
	return strings.TrimSuffix(b.String(), "; ")
}

func (r wish) String() string {
	if !r.there {
		return "-"
	}
	return fmt.Sprintf("%d spread as %s", r.amount, partsText(r.parts))
}

func (t target) String() string {
	if !t.there {
		return "-"
	}
	text := fmt.Sprintf("max=%d own=%d requested=%s ready=%d %s", t.limit, t.own, requestText(t.asked, t.by), t.ready, [...]string{"", "Complete", "Growing", "CannotBeMade", "AtMax"}[t.health])
	if t.leaving {
		text += " leaving"
	}
	return strings.TrimSpace(text)
}

func requestText(asked, by uint8) string {
	if asked == 0 {
		return "none"
	}
	return fmt.Sprintf("%s=%d", wishNames[by-1], asked)
}

func partsText(parts [2]part) string {
	text := ""
	for i, p := range parts {
		if p.listed {
			text += fmt.Sprintf("%s%d", name(i), p.machines)
		}
		if p.blocked {
			text += "*"
		}
	}
	if text == "" {
		return "nothing"
	}
	return text
}

// spread is a plan of the controller of Reserves, as far as the model carries it out.
type spread struct {
	writes [4]wishWrite
	// broken is the law that the plan breaks.
	broken string
}

// knownWishes is what the controller knows. It decides from nothing else.
type knownWishes struct {
	wishes  [2]wish
	targets [2]target
}

// conditions are the conditions that a MachineDeployment has.
var conditions = [...][]mcm.MachineDeploymentCondition{nil,
	{{Type: machineapi.ReserveReady, Status: mcm.ConditionTrue, Reason: reason.Complete}},
	{{Type: machineapi.ReserveReady, Status: mcm.ConditionFalse, Reason: reason.Growing}},
	{{Type: machineapi.ReserveReady, Status: mcm.ConditionFalse, Reason: reason.CannotBeMade}},
	{{Type: machineapi.ReserveReady, Status: mcm.ConditionStatus(reason.ReserveReady.Find(reason.AtMax).Status), Reason: reason.AtMax}},
}

// object returns the MachineDeployment.
func (t *target) object(i int) *machineapi.MachineDeployment {
	d := &machineapi.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name(i), Namespace: namespace, Annotations: map[string]string{
		machineapi.BoundsAnnotation: fmt.Sprintf("0:%d", t.limit)}}}
	d.Spec.Replicas, d.Spec.ExcessReplicas = baseReplicas, ptr.To(int32(t.own))
	if t.asked > 0 {
		d.Annotations[machineapi.RequestedExcessAnnotation] = machineapi.RequestedExcess{Reserve: wishNames[t.by-1], Machines: int32(t.asked)}.String()
	}
	if t.leaving {
		d.DeletionTimestamp = &metav1.Time{Time: earlier}
	}
	d.Status.Conditions = conditions[t.health]
	return d
}

// object returns the Reserve.
func (r *wish) object(i int) *v1alpha1.Reserve {
	o := &v1alpha1.Reserve{ObjectMeta: metav1.ObjectMeta{Name: wishNames[i], Namespace: namespace, UID: types.UID(wishNames[i])}}
	o.Spec.Replicas = int32(r.amount)
	o.Spec.Pools.Names = []string{name(0), name(1)}[:2-i]
	for p, one := range r.parts {
		if one.listed {
			o.Status.Pools = append(o.Status.Pools, v1alpha1.ReservePoolStatus{Name: name(p), DesiredReplicas: int32(one.machines), Blocked: one.blocked})
		}
	}
	return o
}

// decide makes a plan.
func (k knownWishes) decide() *spread {
	v := reservesplan.View{Now: now}
	for i := range k.wishes {
		if k.wishes[i].there {
			v.Reserves = append(v.Reserves, k.wishes[i].object(i))
		}
		if k.targets[i].there {
			v.Pools = append(v.Pools, reservesplan.Pool{Deployment: k.targets[i].object(i), Exist: int(k.targets[i].ready), Ready: int(k.targets[i].ready)})
		}
	}
	p := reservesplan.New(v)
	s := &spread{}
	for _, r := range p.Requests {
		one := wishWrite{pending: true}
		one.asked, one.by = requestOf(r.Text)
		s.writes[index(r.Deployment.Name)] = one
	}
	for _, d := range p.Decisions {
		i := slices.Index(wishNames[:], d.Reserve.Name)
		if parts := partsOf(d); parts != k.wishes[i].parts {
			s.writes[2+i] = wishWrite{pending: true, parts: parts}
		}
		if s.broken == "" {
			s.broken = k.misspread(d)
		}
	}
	return s
}

// requestOf parses the annotation requested-excess.
func requestOf(text string) (asked, by uint8) {
	if text == "" {
		return 0, 0
	}
	r, err := machineapi.ParseRequestedExcess(text)
	if err != nil {
		panic(err) // plans write only what can be parsed
	}
	return uint8(r.Machines), uint8(slices.Index(wishNames[:], r.Reserve) + 1)
}

// partsOf returns what the status contains after a decision.
func partsOf(d reservesplan.Decision) (parts [2]part) {
	for _, p := range reservesplan.NewStatus(d, now).Pools {
		parts[index(p.Name)] = part{listed: true, machines: uint8(p.DesiredReplicas), blocked: p.Blocked}
	}
	return parts
}
