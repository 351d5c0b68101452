// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/plural"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machinev1alpha1 "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Reserve explains a Reserve by the plan that its controller makes for its namespace.
func Reserve(o overview.Objects, name string) (Account, error) {
	r, err := findObject(o.Reserves, "reserve", name, o)
	if err != nil {
		return Account{}, err
	}
	a := Account{See: []string{"docs/spec/reserve.md: rules, reasons, and what to do", "docs/reserve.md: what a reserve is"}}
	p := planReserves(o, r.Namespace)
	i := slices.IndexFunc(p.Decisions, func(d plan.Decision) bool { return d.Reserve == r })
	if i < 0 {
		a.Title = "Reserve " + name + ": being deleted"
		a.addReason("It has been deleted, and requests nothing.")
		return a, nil
	}
	d := p.Decisions[i]
	a.Title = "Reserve " + name + ": " + readiness(d, o)
	reserveFacts(&a, d, o)
	reserveWhy(&a, d, p, o)
	a.addMissing(o)
	reserveNext(&a, d, p, o)
	return a, nil
}

// reservesPlan is the plan for a namespace, with what it is based on.
type reservesPlan struct {
	plan.View
	plan.Plan
}

// planReserves returns what the controller would do now about the Reserves of a namespace.
func planReserves(o overview.Objects, namespace string) reservesPlan {
	source := pool.NewList(pool.Objects{Sets: o.Sets, Machines: o.Machines, Classes: o.Classes, Nodes: o.Nodes, Devices: o.Devices})
	v := plan.NewView(o.At, inNamespace(o.Reserves, namespace), inNamespace(o.Deployments, namespace), source)
	return reservesPlan{v, plan.New(v)}
}

func inNamespace[T metav1.Object](objects []T, namespace string) []T {
	return slices.DeleteFunc(slices.Clone(objects), func(o T) bool { return o.GetNamespace() != namespace })
}

func readiness(d plan.Decision, o overview.Objects) string {
	switch {
	case o.MachinesUnknown:
		return "its machines could not be read"
	case d.Desired == 0:
		return d.Reason + ", no machines requested"
	}
	ready := 0
	for _, p := range d.Parts {
		ready += p.Ready
	}
	return fmt.Sprintf("%s, %d of %s ready", d.Reason, min(ready, d.Desired), plural.Of(d.Desired, "machine"))
}

func reserveFacts(a *Account, d plan.Decision, o overview.Objects) {
	a.addFact("Requests", "%s", plural.Of(d.Desired, "machine"))
	for _, p := range d.Parts {
		text := fmt.Sprintf("%d requested, %d exist, %d ready", p.Machines, p.Exist, p.Ready)
		if p.Blocked {
			text += "; machines cannot be created there now"
		}
		if !o.MachinesUnknown { // where they are requested depends on them, too
			a.addFact(p.Deployment.Name, "%s", text)
		}
	}
	for _, s := range d.Reserve.Spec.Schedules {
		a.addFact("Schedule "+s.Name, "%s", scheduleText(d, s, o.At))
	}
	if who := d.Reserve.Annotations[machinev1alpha1.DedicatedAnnotation]; who != "" {
		a.addFact("Dedicated", "%s", who)
	}
	for _, p := range d.Reserve.Spec.Prepare {
		a.addFact("Prepares", "%s of namespace %s", strings.Join(slices.Concat(p.Workloads, p.Images), ", "), p.Namespace)
	}
	if c := meta.FindStatusCondition(d.Reserve.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		a.addFact(c.Type, "%s, %s: %s", c.Status, c.Reason, c.Message)
	}
}

// scheduleText describes a schedule: how many machines, and whether it is active.
func scheduleText(d plan.Decision, s v1alpha1.ReserveSchedule, now time.Time) string {
	i := slices.IndexFunc(d.Terms, func(t plan.Term) bool { return t.Schedule == s.Name })
	switch {
	case s.Suspend:
		return "suspended"
	case i < 0:
		return "has no effect now"
	}
	t := d.Terms[i]
	text := termMachines(t) + ", "
	switch {
	case t.Active && t.Until.IsZero():
		return text + "active"
	case t.Active:
		return text + "active; ends " + formatDate(t.Until, now)
	case t.Until.IsZero():
		return text + "never active"
	}
	return text + "not active; starts " + formatDate(t.Until, now)
}

func termMachines(t plan.Term) string {
	if t.Err != nil {
		return "an unknown number of machines"
	}
	return plural.Of(t.Machines, "machine")
}

// formatDate formats a time in the future that may be days away.
func formatDate(at, now time.Time) string {
	return fmt.Sprintf("in %s (%s)", duration.HumanDuration(at.Sub(now)), at.UTC().Format("2006-01-02 15:04 UTC"))
}

// reserveWhy describes where the number comes from, what competes with it, and the state.
func reserveWhy(a *Account, d plan.Decision, p reservesPlan, o overview.Objects) {
	if d.Reserve.Labels[v1beta1.ReserveLabel] != "" {
		a.addReason("The controller of CapacityBuffers created it and sets its number: see kubectl evenkeel explain capacitybuffer NAME.")
	}
	if sum := termsText(d); sum != "" {
		a.addReason("%s", sum)
	}
	if o.MachinesUnknown {
		return
	}
	if known := reason.Reserve[v1alpha1.ConditionReady].Find(d.Reason); known.Meaning != "" {
		a.addReason("%s", known.Explain())
	}
	contested := false
	for _, part := range d.Parts {
		if text := contest(d, part, p); text != "" {
			contested = true
			a.addReason("%s", text)
		}
	}
	if contested {
		a.addReason("Requests for one MachineDeployment are not added up: the largest one counts. Of equal ones, the MachineDeployment's own counts, then that of the first Reserve by name.")
	}
}

// termsText describes the numbers; the Reserve requests the largest of them.
func termsText(d plan.Decision) string {
	var all []string
	for _, t := range d.Terms {
		switch {
		case !t.Active:
		case t.Schedule != "":
			all = append(all, "the active schedule "+t.Schedule+" results in "+termMachines(t))
		case d.Reserve.Spec.Amount != "":
			all = append(all, fmt.Sprintf("spec.replicas %d and spec.amount %s result in %s", d.Reserve.Spec.Replicas, d.Reserve.Spec.Amount, termMachines(t)))
		default:
			all = append(all, fmt.Sprintf("spec.replicas is %d", d.Reserve.Spec.Replicas))
		}
	}
	switch len(all) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("It requests %s: %s.", plural.Of(d.Desired, "machine"), all[0])
	}
	return fmt.Sprintf("It requests %s: %s; the largest counts.", plural.Of(d.Desired, "machine"), strings.Join(all, ", "))
}

// nextText describes the next change by a schedule; empty if there is none.
func nextText(d plan.Decision, now time.Time) string {
	if d.Next == nil {
		return ""
	}
	return fmt.Sprintf("A schedule changes the number to %s %s.", plural.Of(d.Next.Desired, "machine"), formatDate(d.Next.At, now))
}

// Requests describes, one per line, where the number of a Reserve comes from, its schedules, and the
// next change by one of these.
func Requests(d plan.Decision, now time.Time) (lines []string) {
	lines = append(lines, termsText(d))
	for _, s := range d.Reserve.Spec.Schedules {
		lines = append(lines, fmt.Sprintf("Schedule %s: %s.", s.Name, scheduleText(d, s, now)))
	}
	lines = append(lines, nextText(d, now))
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" })
}

// request is what something requests of a MachineDeployment.
type request struct {
	by       string
	machines int
}

// contest describes what counts in a MachineDeployment that something else requests machines of,
// too; empty if nothing does.
func contest(d plan.Decision, part plan.Part, p reservesPlan) string {
	if part.Machines == 0 {
		return ""
	}
	others, err := rivals(d, part, p)
	if err != nil {
		return fmt.Sprintf("The excess that MachineDeployment %s itself requests is unknown: %v.", part.Deployment.Name, err)
	}
	var texts []string
	counts := request{"this Reserve", part.Machines}
	for _, other := range others {
		if other.by == part.CountedBy {
			other, counts = counts, other
		}
		texts = append(texts, fmt.Sprintf("%s with %d", other.by, other.machines))
	}
	if len(texts) == 0 {
		return ""
	}
	return fmt.Sprintf("In %s, %s counts with %s, and not %s.", part.Deployment.Name, counts.by, plural.Of(counts.machines, "machine"), strings.Join(texts, " and "))
}

// rivals returns what else requests machines of a MachineDeployment.
func rivals(d plan.Decision, part plan.Part, p reservesPlan) (all []request, err error) {
	i := slices.IndexFunc(p.Pools, func(q plan.Pool) bool { return q.Deployment == part.Deployment })
	own, source, err := p.Pools[i].Own()
	if err != nil {
		return nil, err
	}
	if own > 0 {
		all = append(all, request{source, own})
	}
	for _, other := range p.Decisions {
		for _, q := range other.Parts {
			if other.Reserve != d.Reserve && q.Deployment == part.Deployment && q.Machines > 0 {
				all = append(all, request{"Reserve " + other.Reserve.Name, q.Machines})
			}
		}
	}
	return all, nil
}

// reserveNext describes what the controller is about to write, the next change by a schedule, and
// what to do.
func reserveNext(a *Account, d plan.Decision, p reservesPlan, o overview.Objects) {
	if o.MachinesUnknown {
		a.addNext("%s", cmp.Or(nextText(d, o.At), "What happens next depends on machines, which could not be read."))
		return
	}
	for _, r := range p.Requests {
		was := r.Deployment.Annotations[machinev1alpha1.RequestedExcessAnnotation]
		if was != r.Text && slices.ContainsFunc(d.Parts, func(q plan.Part) bool { return q.Deployment == r.Deployment }) {
			a.addNext("The request on MachineDeployment %s is about to change from %s to %s.", r.Deployment.Name, cmp.Or(was, "none"), cmp.Or(r.Text, "none"))
		}
	}
	seen := meta.FindStatusCondition(d.Reserve.Status.Conditions, v1alpha1.ConditionReady)
	if seen == nil {
		a.addNext("No controller reports on it yet: machine-controller-manager must run with --controllers=*, or with reserves among them.")
	} else if seen.Reason != d.Reason && len(o.Missing) == 0 {
		a.addNext("The condition Ready is about to become %s: %s.", d.Reason, d.Message)
	}
	if text := nextText(d, o.At); text != "" {
		a.addNext("%s", text)
	}
	switch known := reason.Reserve[v1alpha1.ConditionReady].Find(d.Reason); {
	case known.Remedy == "":
	case known.Passing:
		a.addNext("If it lasts: %s.", known.RemedyFor(d.Reserve.Namespace, d.Reserve.Name))
	default:
		a.addNext("To change that: %s.", known.RemedyFor(d.Reserve.Namespace, d.Reserve.Name))
	}
	if len(a.Next) == 0 {
		a.addNext("It is at rest: nothing changes until the Reserve, or the replicas, bounds or machines of its MachineDeployments change.")
	}
}
