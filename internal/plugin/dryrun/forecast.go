// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/pkg/controller/balancer"
	balancerplan "github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// Forecast is a prediction.
type Forecast struct {
	// At is when the objects were read.
	At time.Time `json:"at"`
	// Plans are those of all objects, by kind, namespace and name.
	Plans []Plan `json:"plans"`
	// End is the result if nothing else happens.
	End End `json:"end"`
	// Notes describe what the prediction does not consider, one per line.
	Notes []string `json:"notes,omitempty"`
}

// Plan is what is to be done about one object now.
type Plan struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	State     State  `json:"state"`
	Why       string `json:"why,omitempty"`
	// Changed reports whether it is an object of a change. Only CapacityBuffers and
	// Reserves have it.
	Changed bool `json:"changed,omitempty"`
	// Facts describe what the plan is based on, one per line.
	Facts []string `json:"facts,omitempty"`
	Steps []Step   `json:"steps,omitempty"`
}

// State is the state of an object.
type State string

// The states.
const (
	AtRest  State = "AtRest"
	Moving  State = "Moving"
	Blocked State = "Blocked"
)

const (
	// tick is how much time passes with each pass.
	tick = time.Second
	// horizon is how far a prediction looks ahead; mostPasses is the maximum number of passes.
	horizon    = 2 * time.Hour
	mostPasses = 2000
)

// New makes a forecast for the objects o; before are the objects before a change. Of the clients,
// it uses only the reads of kinds and scales.
func New(ctx context.Context, before, o Objects, s Settings, clients balancer.Clients) (Forecast, error) {
	o, err := o.applyReferences()
	if err != nil {
		return Forecast{}, err
	}
	w, err := newWorld(o, s, clients)
	if err != nil {
		return Forecast{}, err
	}
	w.changed = differing("Reserve", before.Reserves, o.Reserves)
	maps.Copy(w.changed, differing("CapacityBuffer", before.Buffers, o.Buffers))
	if err := w.prepareBuffers(ctx); err != nil {
		return Forecast{}, err
	}
	if err := w.planAll(ctx); err != nil {
		return Forecast{}, err
	}
	f, first := Forecast{At: o.At, Plans: w.explain()}, w.plans.balancer
	rest, err := w.settle(ctx)
	if err != nil {
		return Forecast{}, err
	}
	f.End = w.compareEnd(rest, before, first)
	f.End.Buffers = w.bufferEnds(f.Plans)
	f.Notes = slices.Concat(o.Missing, slices.Sorted(maps.Keys(w.notes)))
	return f, nil
}

// settle runs passes until nothing changes any more, and reports whether that state was reached.
func (w *world) settle(ctx context.Context) (rest bool, err error) {
	end := w.now.Add(horizon)
	for range mostPasses {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		w.now = w.now.Add(tick)
		moved, again, err := w.runOnce(ctx)
		switch {
		case err != nil:
			return false, err
		case moved:
		case again == 0 || w.now.Add(again).After(end):
			return true, nil
		default:
			w.now = w.now.Add(again)
		}
	}
	return false, nil
}

// explain describes all plans in words.
func (w *world) explain() []Plan {
	all := append(w.explainBuffers(), w.explainReserves()...)
	for _, key := range slices.Sorted(maps.Keys(w.deployments)) {
		all = append(all, w.explainMachines(key))
	}
	for _, key := range slices.Sorted(maps.Keys(w.plans.balancer)) {
		all = append(all, explainBalancer(w.plans.balancer[key]))
	}
	return all
}

// explainMachines combines what all controllers plan for a MachineDeployment.
func (w *world) explainMachines(key string) Plan {
	d := w.deployments[key]
	p := Plan{Kind: "MachineDeployment", Namespace: d.Namespace, Name: d.Name, State: AtRest}
	made := w.plans.machines[key]
	blocked := made.InvalidSpecOf(d)
	if kept := made.kept; kept != nil {
		p.Steps, p.Why = reserveSteps(d, *kept), kept.Report.Message
		if stopped(kept.Report) {
			blocked = string(kept.Report.Reason) + ": " + kept.Report.Message
		}
	}
	z := w.plans.zones[d.Namespace]
	for i, o := range z.Outcomes {
		if o.Name == d.Name {
			p.Steps = append(p.Steps, zoneSteps(z.Members[i].Object, o.Write)...)
		}
	}
	if why := z.Blocks[d.Name]; why != "" && blocked == "" {
		blocked = why
	}
	p.Steps = append(p.Steps, w.annotations(d)...)
	for _, r := range w.plans.release.Raises {
		if r.Pool.Key == key {
			p.Steps = append(p.Steps, raiseStep(r.Pool.Replicas, r.By, r.For))
		}
	}
	switch {
	case d.DeletionTimestamp != nil:
		p.State, p.Why = Moving, "it is being deleted"
	case len(p.Steps) > 0:
		p.State = Moving
	case blocked != "":
		p.State, p.Why = Blocked, blocked
	case made.isUnsettled():
		p.State, p.Why = Moving, cmp.Or(p.Why, "machines are being created or deleted")
	case !made.IsSteady():
		p.State, p.Why = Moving, cmp.Or(p.Why, "MachineSets, machines or Nodes are being changed")
	}
	return p
}

// stopped reports whether a reserve does not reach its desired size by itself, or not soon.
func stopped(r machinetaint.Report) bool {
	switch r.Reason {
	case reserve.AboveMax, reserve.CannotBeMade, reserve.Protected, reserve.Unhealthy, reserve.AwaitingDeletion,
		reserve.SurplusServing, reserve.RollingOut, machinetaint.BoundsInvalid, machinetaint.AnnotationInvalid, machinetaint.CapacityUnknown,
		machinetaint.ClusterUnreachable:
		return true
	}
	return false
}

func explainBalancer(b balancerPlan) Plan {
	p := Plan{Kind: "Balancer", Namespace: b.Balancer.Namespace, Name: b.Balancer.Name, State: AtRest, Steps: balancerSteps(b)}
	switch {
	case b.Stop.Message != "":
		p.State, p.Why = Blocked, b.Stop.Message
	case b.Balancer.Spec.Paused:
		p.State, p.Why = Blocked, "spec.paused is set"
	case len(p.Steps) > 0:
		p.State = Moving
	}
	for _, s := range b.Shares {
		if s.Hold.Message != "" && p.State == AtRest {
			p.State, p.Why = Blocked, "target "+s.Name+": "+s.Hold.Message
		}
		p.waitsFor(s)
	}
	return p
}

// waitsFor reports whether a target is on its way although nothing is written at this moment.
func (p *Plan) waitsFor(s balancerplan.Share) {
	if p.State == AtRest && s.Desired != s.Next {
		p.State, p.Why = Moving, "target "+s.Name+" is in progress: replicas must become ready first"
	}
}
