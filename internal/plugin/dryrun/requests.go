// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/internal/plugin/explain"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/controller/reserves"
	reservesplan "github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// ReserveEnd is the end of one Reserve.
type ReserveEnd struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Was and Is are the requested machines by MachineDeployment.
	Was map[string]int `json:"was,omitempty"`
	Is  map[string]int `json:"is,omitempty"`
	// Desired and Ready are how many machines it requests, and how many of these are ready.
	Desired int `json:"desired"`
	Ready   int `json:"ready"`
	// Reason and Message are those of the condition Ready.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Same reports whether nothing differs from now.
	Same bool `json:"same,omitempty"`
}

// Changes describes what differs from now; empty if nothing does.
func (e ReserveEnd) Changes() []string { return movesOf(e.Was, e.Is) }

// movesOf describes how counts differ, by name.
func movesOf(was, is map[string]int) (lines []string) {
	names := maps.Clone(is)
	maps.Copy(names, was)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if was[name] != is[name] {
			lines = append(lines, fmt.Sprintf("%s %d -> %d", name, was[name], is[name]))
		}
	}
	return lines
}

// lookAtRequests plans for the Reserves of each namespace. Schedules stand still: the end would
// otherwise depend on how far a prediction looks ahead.
func (w *world) lookAtRequests() {
	w.plans.requests = map[string]reservesplan.Plan{}
	if w.still.Unread["reserves"] != "" {
		return // the annotations show what they request
	}
	source := pool.NewList(pool.Objects{Sets: w.sets.sorted(), Machines: w.machines.sorted(), Classes: w.still.Classes, Nodes: w.nodes.sorted(), Devices: w.devices})
	for namespace := range w.namespaces() {
		v := reservesplan.NewView(w.still.At, inNamespace(namespace, w.reserves.sorted()), inNamespace(namespace, w.deployments.sorted()), source)
		w.plans.requests[namespace] = reservesplan.New(v)
	}
}

// namespaces returns the namespaces that have MachineDeployments or Reserves.
func (w *world) namespaces() map[string]bool {
	all := map[string]bool{}
	for _, d := range w.deployments {
		all[d.Namespace] = true
	}
	for _, r := range w.reserves {
		all[r.Namespace] = true
	}
	return all
}

// request carries out what Reserves request of MachineDeployments.
func (w *world) request(context.Context) (moved bool, again time.Duration, err error) {
	w.lookAtRequests()
	for _, namespace := range slices.Sorted(maps.Keys(w.plans.requests)) {
		p := w.plans.requests[namespace]
		for _, r := range p.Requests {
			d, err := reserves.After(r)
			if err != nil {
				return false, 0, err
			}
			w.putDeployment(d)
			moved = true
		}
		for _, d := range p.Decisions {
			if after := d.After(w.now); !equality.Semantic.DeepEqual(after.Status, d.Reserve.Status) {
				w.reserves[keyOf(after)] = after
				moved = true
			}
		}
	}
	return moved, 0, nil
}

// explainReserves describes the plans of Reserves in words.
func (w *world) explainReserves() []Plan {
	var all []Plan
	for _, namespace := range slices.Sorted(maps.Keys(w.plans.requests)) {
		for _, d := range w.plans.requests[namespace].Decisions {
			all = append(all, w.explainReserve(d))
		}
	}
	return all
}

func (w *world) explainReserve(d reservesplan.Decision) Plan {
	r := d.Reserve
	p := Plan{Kind: "Reserve", Namespace: r.Namespace, Name: r.Name, State: AtRest, Why: d.Message, Changed: w.changed["Reserve "+keyOf(r)], Steps: append(w.bufferSteps(keyOf(r)), requestSteps(d)...)}
	p.Facts = explain.Requests(d, w.still.At)
	known := reason.Reserve[autoscaling.ConditionReady].Find(d.Reason)
	switch {
	case known.Status == reason.False && !known.Passing:
		p.State, p.Facts = Blocked, append(p.Facts, remedy(known, r, d.Message)...)
	case len(p.Steps) > 0 || known.Passing:
		p.State = Moving
	}
	return p
}

// remedy describes what to do about an object, unless the message already does.
func remedy(known reason.Reason, o metav1.Object, message string) []string {
	text := known.RemedyFor(o.GetNamespace(), o.GetName())
	if text == "" || strings.Contains(message, text) {
		return nil
	}
	return []string{"To change that: " + text + "."}
}

// requestSteps returns what a Reserve requests of other MachineDeployments, or more or less than
// before.
func requestSteps(d reservesplan.Decision) (steps []Step) {
	was, is, why := requested(d.Reserve.Status), map[string]int{}, map[string]string{}
	for _, p := range d.Parts {
		is[p.Deployment.Name] = p.Machines
		if p.CountedBy != "" {
			why[p.Deployment.Name] = p.CountedBy + " counts there"
		}
	}
	names := maps.Clone(is)
	maps.Copy(names, was)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if was[name] != is[name] {
			steps = append(steps, Step{Do: Request, On: name, From: fmt.Sprint(was[name]), To: fmt.Sprint(is[name]), Why: why[name]})
		}
	}
	return steps
}

// requested returns the machines that a Reserve requests, by MachineDeployment.
func requested(s autoscaling.ReserveStatus) map[string]int {
	all := map[string]int{}
	for _, p := range s.Pools {
		all[p.Name] = int(p.DesiredReplicas)
	}
	return all
}

// annotations returns the annotations that the requests of Reserves change.
func (w *world) annotations(d *machine.MachineDeployment) (steps []Step) {
	for _, r := range w.plans.requests[d.Namespace].Requests {
		if r.Deployment.Name != d.Name {
			continue
		}
		all := r.Annotations()
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if was := d.Annotations[key]; was != all[key] {
				steps = append(steps, Step{Do: Annotate, On: strings.TrimPrefix(key, machine.AnnotationPrefix), From: was, To: all[key]})
			}
		}
	}
	return steps
}

// reserveEnds compares the Reserves at the end with those at the start.
func (w *world) reserveEnds(was []*autoscaling.Reserve) []ReserveEnd {
	before := newShelf(was)
	var all []ReserveEnd
	for _, namespace := range slices.Sorted(maps.Keys(w.plans.requests)) {
		for _, d := range w.plans.requests[namespace].Decisions {
			all = append(all, reserveEnd(d, before[keyOf(d.Reserve)]))
		}
	}
	for _, r := range before.sorted() {
		if w.reserves[keyOf(r)] == nil {
			all = append(all, ReserveEnd{Namespace: r.Namespace, Name: r.Name, Was: requested(r.Status), Is: map[string]int{}, Message: "deleted"})
		}
	}
	return all
}

func reserveEnd(d reservesplan.Decision, was *autoscaling.Reserve) ReserveEnd {
	e := ReserveEnd{Namespace: d.Reserve.Namespace, Name: d.Reserve.Name, Was: map[string]int{}, Is: map[string]int{}, Desired: d.Desired, Reason: d.Reason, Message: d.Message}
	for _, p := range d.Parts {
		e.Is[p.Deployment.Name] = p.Machines
		e.Ready += p.Ready
	}
	ready := 0
	if was != nil {
		e.Was, ready = requested(was.Status), int(was.Status.ReadyReplicas)
	}
	e.Same = len(e.Changes()) == 0 && ready == e.Ready
	return e
}

// differing returns the kind and the keys of objects that are new or were changed.
func differing[T interface {
	comparable
	metav1.Object
}](kind string, before, after []T) map[string]bool {
	was, all := newShelf(before), map[string]bool{}
	for _, o := range after {
		if key := keyOf(o); was[key] != o {
			all[kind+" "+key] = true
		}
	}
	return all
}
