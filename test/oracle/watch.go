// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/controller"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// Breach is a promise that an implementation can break on the way, where the end does not show it.
type Breach string

// Breaches are counted at the writes of the implementation.
const (
	// Over is a machine created although there were r + surge, or the replicas of a standalone set,
	// without those that are Terminating.
	Over Breach = "machine created beyond replicas and surge"
	// Under is an available machine deleted although no more were available than the strategy asks for.
	Under Breach = "available machine deleted below the minimum"
	// NewDeleted is a machine of the newest set deleted while older sets have machines.
	NewDeleted Breach = "machine of the new set deleted in a rollout"
	// Unmarked is a machine deleted that is not set Terminating at once.
	Unmarked Breach = "deleted machine not set Terminating"
)

// Seen is what happened on the way.
type Seen struct {
	// Breaches are how often each promise was broken, First the first time.
	Breaches map[Breach]int
	First    map[Breach]string
	// Created and Deleted are how many machines the implementation created and deleted.
	Created, Deleted int
}

// Allowed are the promises that stock breaks without faults, each because of a weakness that its row
// names.
var Allowed = map[Breach]string{
	Over:       "D10: sizes follow a status that can be late",
	Under:      "N5, Y6, R4: named machines die at any count, preserved ones stay, and sums are those of the pass before",
	NewDeleted: "D5: what scaling adds to the new set beyond r, the rollout takes back",
}

// Worse returns the promises that an implementation broke more often than stock did.
func (s Seen) Worse(stock Seen) (worse []string) {
	for _, b := range []Breach{Over, Under, NewDeleted, Unmarked} {
		if s.Breaches[b] > stock.Breaches[b] {
			worse = append(worse, fmt.Sprintf("%s: %d times, stock %d times; first: %s", b, s.Breaches[b], stock.Breaches[b], s.First[b]))
		}
	}
	return worse
}

// watch looks at every write. Hooks must not ask the server, so it keeps what it needs itself.
type watch struct {
	names       map[string]string // of all machines there were, and what they are called when they are gone
	deployments map[string]*mcmapi.MachineDeployment
	sets        map[string]*mcmapi.MachineSet
	machines    map[string]*mcmapi.Machine
	unmarked    map[string]bool // deleted, and not yet Terminating
	seen        Seen
}

func newWatch(w *storm.World) *watch {
	watch := &watch{
		names: map[string]string{}, deployments: map[string]*mcmapi.MachineDeployment{}, sets: map[string]*mcmapi.MachineSet{},
		machines: map[string]*mcmapi.Machine{}, unmarked: map[string]bool{},
		seen: Seen{Breaches: map[Breach]int{}, First: map[Breach]string{}},
	}
	w.AfterWrite(func(write sim.Write) error {
		if write.Effect != "" {
			watch.observe(write)
		}
		return nil
	})
	return watch
}

func (w *watch) observe(write sim.Write) {
	switch write.Resource {
	case "machinedeployments":
		keep(w.deployments, write)
	case "machinesets":
		keep(w.sets, write)
	case "machines":
		w.observeMachine(write)
	}
}

func keep[T any](all map[string]*T, write sim.Write) {
	if write.Effect == sim.Deleted {
		delete(all, write.Name)
		return
	}
	o := &unstructured.Unstructured{Object: write.Object}
	all[o.GetName()] = world.Decoded[T](write.Object)
}

func (w *watch) observeMachine(write sim.Write) {
	name := (&unstructured.Unstructured{Object: write.Object}).GetName()
	before := w.machines[name]
	keep(w.machines, write)
	after := w.machines[name]
	mine := write.User == implementation
	switch {
	case write.Effect == sim.Added:
		w.names[name] = "<gone machine>"
		if mine {
			w.created(after)
		}
	case write.Verb == "delete" && mine && before != nil && before.DeletionTimestamp == nil:
		w.deleted(before)
	case after != nil && after.Status.CurrentStatus.Phase == mcmapi.MachineTerminating && w.unmarked[name]:
		delete(w.unmarked, name)
		if !mine {
			w.breach(Unmarked, name)
		}
	}
}

func (w *watch) breach(b Breach, machine string) {
	w.seen.Breaches[b]++
	if w.seen.First[b] == "" {
		w.seen.First[b] = fmt.Sprintf("%s at %s", machine, time.Now().Format(time.RFC3339))
	}
}

func (w *watch) created(m *mcmapi.Machine) {
	w.seen.Created++
	set, d := w.ownersOf(m)
	if set == nil {
		return
	}
	present := w.count(set, d, func(m *mcmapi.Machine) bool { return !goes(m) })
	if most, _ := bounds(set, d); present > most {
		w.breach(Over, m.Name)
	}
}

func (w *watch) deleted(m *mcmapi.Machine) {
	w.seen.Deleted++
	if m.Status.CurrentStatus.Phase != mcmapi.MachineTerminating {
		w.unmarked[m.Name] = true
	}
	set, d := w.ownersOf(m)
	if set == nil || set.DeletionTimestamp != nil || d != nil && d.DeletionTimestamp != nil {
		return
	}
	if _, least := bounds(set, d); available(m) && w.count(set, d, available) < least {
		w.breach(Under, m.Name)
	}
	if d != nil && w.newest(set, d) && w.count(set, d, func(*mcmapi.Machine) bool { return true }) > w.count(set, nil, func(*mcmapi.Machine) bool { return true }) {
		w.breach(NewDeleted, m.Name)
	}
}

func goes(m *mcmapi.Machine) bool {
	return m.DeletionTimestamp != nil || m.Status.CurrentStatus.Phase == mcmapi.MachineTerminating
}

func available(m *mcmapi.Machine) bool {
	return m.DeletionTimestamp == nil && m.Status.CurrentStatus.Phase == mcmapi.MachineRunning
}

// ownersOf returns the MachineSet of a machine and the MachineDeployment of that, nil if there is none.
func (w *watch) ownersOf(m *mcmapi.Machine) (set *mcmapi.MachineSet, d *mcmapi.MachineDeployment) {
	if set = w.sets[owner(m)]; set != nil && !selects(set, m) {
		return nil, nil // it is no longer counted (O6)
	}
	if set != nil {
		d = w.deployments[owner(set)]
	}
	return set, d
}

func selects(set *mcmapi.MachineSet, m *mcmapi.Machine) bool {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(m.Labels))
}

func owner(o interface {
	GetOwnerReferences() []metav1.OwnerReference
}) string {
	for _, r := range o.GetOwnerReferences() {
		if r.Controller != nil && *r.Controller {
			return r.Name
		}
	}
	return ""
}

// count counts machines of a MachineDeployment, or of a set if there is none.
func (w *watch) count(set *mcmapi.MachineSet, d *mcmapi.MachineDeployment, counts func(*mcmapi.Machine) bool) (n int) {
	for _, m := range w.machines {
		s, of := w.ownersOf(m)
		if s != nil && counts(m) && (s == set || d != nil && of == d) {
			n++
		}
	}
	return n
}

// newest reports whether no set of the MachineDeployment has a higher revision.
func (w *watch) newest(set *mcmapi.MachineSet, d *mcmapi.MachineDeployment) bool {
	revision := func(s *mcmapi.MachineSet) int {
		n, _ := strconv.Atoi(s.Annotations[controller.RevisionAnnotation]) // 0 without one
		return n
	}
	for _, s := range w.sets {
		if owner(s) == d.Name && revision(s) > revision(set) {
			return false
		}
	}
	return true
}

// bounds are the most machines that there may be, and the least that stay available.
func bounds(set *mcmapi.MachineSet, d *mcmapi.MachineDeployment) (most, least int) {
	if d == nil {
		return int(set.Spec.Replicas), 0
	}
	r := d.Spec.Replicas
	var limits *mcmapi.UpdateConfiguration
	switch s := d.Spec.Strategy; {
	case s.Type == mcmapi.RollingUpdateMachineDeploymentStrategyType && s.RollingUpdate != nil:
		limits = &s.RollingUpdate.UpdateConfiguration
	case s.Type == mcmapi.InPlaceUpdateMachineDeploymentStrategyType && s.InPlaceUpdate != nil:
		limits = &s.InPlaceUpdate.UpdateConfiguration
	default:
		return int(r), 0
	}
	surge, unavailable, err := controller.ResolveFenceposts(limits.MaxSurge, limits.MaxUnavailable, r)
	if err != nil {
		return int(r), 0
	}
	return int(r + surge), int(r - unavailable)
}

// replacer replaces the names of all machines there were.
func (w *watch) replacer(now map[string]string) *strings.Replacer {
	names := maps.Clone(w.names)
	for name := range names {
		if now == nil {
			names[name] = "<machine>"
		}
	}
	maps.Copy(names, now)
	longest := slices.SortedFunc(maps.Keys(names), func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) })
	var pairs []string
	for _, name := range longest {
		pairs = append(pairs, name, names[name])
	}
	return strings.NewReplacer(pairs...)
}
