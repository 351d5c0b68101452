// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/evenkeel/evenkeel/internal/plural"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	balanceplan "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// Step is one write that a controller would make now.
type Step struct {
	Do Operation `json:"do"`
	// On is a machine, a Node, a target, a cluster or an annotation; empty for the object itself.
	On   string `json:"on,omitempty"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	Why  string `json:"why,omitempty"`
}

// Operation is the kind of write.
type Operation string

// The operations.
const (
	Release  Operation = "release"
	Hold     Operation = "hold"
	Mend     Operation = "mend"
	Apply    Operation = "applyExcess"
	Field    Operation = "excessReplicas"
	Replicas Operation = "replicas"
	Annotate Operation = "annotate"
	Name     Operation = "nameForDeletion"
	Scale    Operation = "scale"
	Bound    Operation = "bound"
	Request  Operation = "request"
	Create   Operation = "create"
	Delete   Operation = "delete"
)

// String describes the step in words.
func (s Step) String() string {
	text := map[Operation]string{
		Release:  "release machine " + s.On + ": it serves",
		Hold:     "put machine " + s.On + " into reserve",
		Mend:     "set the reserve taint of node " + s.On + " as its machine is marked",
		Apply:    "applied excess " + s.From + " -> " + s.To,
		Field:    "spec.excessReplicas " + s.From + " -> " + s.To,
		Replicas: "replicas " + s.From + " -> " + s.To,
		Annotate: "annotation " + s.On + " " + cmp.Or(s.From, "none") + " -> " + cmp.Or(s.To, "none"),
		Name:     "mark machine " + s.On + " for deletion",
		Scale:    "scale target " + s.On + " " + s.From + " -> " + s.To,
		Create:   "create it, with replicas " + s.To,
		Delete:   "delete it",
		Request:  "machines requested in " + s.On + ": " + s.From + " -> " + s.To,
		Bound:    "bounds in cluster " + s.On + " " + s.From + " -> " + s.To,
	}[s.Do]
	if s.Why != "" {
		text += " (" + s.Why + ")"
	}
	return text
}

// reserveSteps returns the steps of a reserve.
func reserveSteps(d *machine.MachineDeployment, kept machinetaint.Plan) []Step {
	var steps []Step
	change := kept.Deployment
	if change.Replicas != 0 {
		steps = append(steps, Step{Do: Replicas, From: fmt.Sprint(d.Spec.Replicas), To: fmt.Sprint(int(d.Spec.Replicas) + change.Replicas), Why: replicasWhy(kept.Rule)})
	}
	for _, m := range kept.Machines {
		switch m.Mark {
		case machinetaint.Free:
			steps = append(steps, Step{Do: Release, On: m.Name, Why: string(m.Why)})
		case machinetaint.Hold:
			steps = append(steps, Step{Do: Hold, On: m.Name, Why: string(m.Why)})
		}
	}
	steps = append(steps, nodeRepairs(kept)...)
	if change.Field != nil {
		steps = append(steps, Step{Do: Field, From: fieldText(d.Spec.ExcessReplicas), To: fmt.Sprint(*change.Field)})
	}
	from, to := appliedText(pool.AppliedOf(d, d.Spec.Replicas)), appliedText(kept.Rule.Applied)
	if _, writes := change.Annotations[machine.AppliedExcessAnnotation]; writes && from != to {
		steps = append(steps, Step{Do: Apply, From: from, To: to})
	}
	return steps
}

// replicasWhy explains a change of replicas.
func replicasWhy(p reserve.Plan) string {
	if p.Applied.Counted == 0 {
		return "a client marked a reserve machine for deletion"
	}
	return "replicas include the reserve"
}

// nodeRepairs returns a step for each Node that is written although its Machine is not.
func nodeRepairs(p machinetaint.Plan) (steps []Step) {
	for _, n := range p.Nodes {
		name := n.Machine.Object.Name
		if !slices.ContainsFunc(p.Machines, func(m machinetaint.MachineChange) bool { return m.Name == name && m.Mark != machinetaint.Keep }) {
			steps = append(steps, Step{Do: Mend, On: n.Machine.Node.Name})
		}
	}
	return steps
}

func fieldText(field *int32) string {
	if field == nil {
		return "none"
	}
	return fmt.Sprint(*field)
}

func appliedText(a reserve.Applied) string {
	if a.Max == reserve.Unbounded || a.Excess == 0 {
		return fmt.Sprint(a.Excess)
	}
	return fmt.Sprintf("%d with max %d", a.Excess, a.Max)
}

// zoneSteps returns the steps that keep zones even.
func zoneSteps(d *machine.MachineDeployment, w balanceplan.Write) []Step {
	var steps []Step
	if w.Replicas != nil {
		steps = append(steps, Step{Do: Replicas, From: fmt.Sprint(d.Spec.Replicas), To: fmt.Sprint(*w.Replicas), Why: w.Why})
	}
	if w.Excess != nil {
		steps = append(steps, Step{Do: Field, From: fieldText(d.Spec.ExcessReplicas), To: fmt.Sprint(*w.Excess)})
	}
	for _, key := range slices.Sorted(maps.Keys(w.Annotations)) {
		if !strings.HasPrefix(key, machine.AnnotationPrefix) {
			continue // machine-controller-manager's own steps name the machine that is deleted
		}
		steps = append(steps, Step{Do: Annotate, On: strings.TrimPrefix(key, machine.AnnotationPrefix), From: d.Annotations[key], To: w.Annotations[key], Why: w.Why})
	}
	if w.Gone != "" {
		steps = append(steps, Step{Do: Name, On: w.Gone, Why: w.Why})
	}
	return steps
}

// balancerSteps returns the steps of a Balancer.
func balancerSteps(b balancerPlan) []Step {
	var steps []Step
	_, asks := b.After(b.Plan)
	for _, ask := range asks {
		steps = append(steps, Step{Do: Scale, On: ask.Target, From: fmt.Sprint(ask.From), To: fmt.Sprint(ask.To)})
	}
	return steps
}

// raiseStep releases machines to waiting pods.
func raiseStep(replicas, by int, pods []string) Step {
	return Step{Do: Replicas, From: fmt.Sprint(replicas), To: fmt.Sprint(replicas + by), Why: fmt.Sprintf("reserve machines can hold %s: %s", plural.Of(len(pods), "waiting pod"), strings.Join(pods, ", "))}
}
