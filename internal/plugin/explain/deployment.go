// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/plural"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment"
	machineplan "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// Deployment explains a MachineDeployment.
func Deployment(o overview.Objects, name string) (Account, error) {
	d, err := findObject(o.Deployments, "machinedeployment", name, o)
	if err != nil {
		return Account{}, err
	}
	z := zoneOf(o, d)
	oracle, err := newOracle(o, d)
	if err != nil {
		return Account{}, err
	}
	a := Account{Title: "MachineDeployment " + name + ": " + standing(z, o)}
	deploymentFacts(&a, d, z, o)
	deploymentWhy(&a, d, z, o.Draining[d.Namespace])
	a.addMissing(o)
	if err := predict(&a, oracle, z); err != nil {
		return a, err
	}
	a.See = []string{"docs/reserve.md: reasons, and what to do", "docs/reserve-rule.md: how the reserve is decided"}
	if d.Annotations[v1alpha1.ShareAnnotation] != "" || d.Annotations[v1alpha1.BalanceAnnotation] != "" {
		a.See = append(a.See, "docs/zones.md: shares and zones")
	}
	return a, nil
}

// predict describes what happens next, and what would change it.
func predict(a *Account, o *oracle, z overview.Zone) error {
	if at := o.deployment.DeletionTimestamp; at != nil {
		a.addNext("It has been in deletion since %s: machine-controller-manager deletes its machines, the reserve included.", formatPast(at.Time, o.objects.At))
		return nil
	}
	if o.objects.MachinesUnknown {
		a.addNext("What happens next depends on its machines, which could not be read.")
		return nil
	}
	now, err := o.current()
	if err != nil {
		return err
	}
	if wrong := now.InvalidSpecOf(o.deployment); wrong != "" {
		a.addNext("Nothing happens to its machines until its spec is corrected: %s.", wrong)
		return nil
	}
	deploymentNext(a, now, o.objects)
	return changes(a, o, z)
}

func standing(z overview.Zone, o overview.Objects) string {
	if o.MachinesUnknown {
		return "its machines could not be read"
	}
	text := fmt.Sprintf("%d of %d machines work", z.Count[overview.Working], z.Replicas)
	if z.Excess > 0 || z.ReserveReady.Status != "" {
		text += fmt.Sprintf(", %d of %d in reserve ready", z.Count[overview.ReserveReady], z.Excess)
	}
	return text
}

func deploymentFacts(a *Account, d *v1alpha1.MachineDeployment, z overview.Zone, o overview.Objects) {
	a.addFact("Replicas (R)", "%d, for workload", z.Replicas)
	a.addFact("Excess (X)", "%d desired beyond that", z.Excess)
	a.addFact("Applied (A)", "%d run beyond R now", z.Applied)
	if z.Bounds != nil {
		a.addFact("Bounds", "min %d, max %d", z.Bounds.Min, z.Bounds.Max)
	}
	if z.Dedicated != "" {
		a.addFact("Dedicated", "%s: machines of the reserve that only pods of these owners can use", z.Dedicated)
	}
	a.addFact("Machines", "%s", countsText(z, o))
	if names := lateDaemons(z, o); len(names) > 0 {
		a.addFact("After a release", "%s: pods of these DaemonSets start only then, because they do not tolerate the reserve taint", strings.Join(names, ", "))
	}
	if z.Prepared != nil {
		a.addFact("Prepared", "%d of %d ready reserve machines have the requested images", *z.Prepared, z.Count[overview.ReserveReady])
	}
	if c := z.ReserveReady; c.Status != "" {
		a.addFact("ReserveReady", "%s, %s: %s", c.Status, c.Reason, c.Message)
	}
	if z.Rollout {
		a.addFact("Rollout", "machines of an older template are being replaced")
	}
	if mode := cmp.Or(d.Annotations[v1alpha1.BalanceAnnotation], d.Spec.Template.Spec.NodeTemplateSpec.Annotations[v1alpha1.BalanceAnnotation]); mode != "" {
		a.addFact("Balance", "%s", mode)
	}
}

// maxDaemons is how many DaemonSets are named.
const maxDaemons = 10

// lateDaemons returns the DaemonSets with a pod on each machine that works and on none that is ready in reserve.
func lateDaemons(z overview.Zone, o overview.Objects) []string {
	if z.Count[overview.ReserveReady] == 0 {
		return nil
	}
	state := map[string]overview.State{}
	for _, m := range z.Machines {
		state[m.Node] = m.State
	}
	working, reserve := map[string]int{}, map[string]bool{}
	for _, p := range o.Pods {
		owner := metav1.GetControllerOfNoCopy(p)
		if owner == nil || owner.Kind != "DaemonSet" {
			continue
		}
		switch name := p.Namespace + "/" + owner.Name; state[p.Spec.NodeName] {
		case overview.Working:
			working[name]++
		case overview.ReserveReady:
			reserve[name] = true
		}
	}
	maps.DeleteFunc(working, func(name string, n int) bool { return n < z.Count[overview.Working] || reserve[name] })
	names := slices.Sorted(maps.Keys(working))
	return names[:min(len(names), maxDaemons)]
}

// countsText counts machines by their state.
func countsText(z overview.Zone, o overview.Objects) string {
	if o.MachinesUnknown {
		return "cannot be read"
	}
	var states []string
	for _, state := range overview.States {
		if n := z.Count[state]; n > 0 {
			states = append(states, fmt.Sprintf("%d %s", n, state))
		}
	}
	return orNone(strings.Join(states, ", "))
}

// deploymentWhy describes where the excess comes from, and the state of the reserve. Draining reports
// whether the manager gives up all reserves.
func deploymentWhy(a *Account, d *v1alpha1.MachineDeployment, z overview.Zone, draining bool) {
	share, bounds := d.Annotations[v1alpha1.ShareAnnotation], d.Annotations[v1alpha1.BoundsAnnotation]
	switch {
	case pool.Drained(d):
		a.addReason("No reserve is desired: the annotation %s overrides everything else.", v1alpha1.DrainReserveAnnotation)
	case draining:
		a.addReason("No reserve is desired: the manager runs with --drain-reserve, which overrides everything else.")
	case z.Reserve != "":
		a.addReason("The excess is %s, because Reserve %s requests that many, which is more than the MachineDeployment's own excess.", z.Asked, z.Reserve)
	case share != "":
		a.addReason("The excess is %s, its share of the pool's excess, which takes precedence over bounds and spec.excessReplicas.", share)
	case strings.Count(bounds, ":") == 2:
		a.addReason("The excess is the third part of the bounds %q, which takes precedence over spec.excessReplicas.", bounds)
	case d.Spec.ExcessReplicas != nil:
		a.addReason("The excess is %d, from spec.excessReplicas.", *d.Spec.ExcessReplicas)
	case z.Asked != "":
		a.addReason("The excess is %s, the value of spec.excessReplicas before that field was removed; the field is about to be restored.", z.Asked)
	default:
		a.addReason("No excess is requested: neither by spec.excessReplicas nor by bounds, for the pool, or by a Reserve.")
	}
	if z.Limited {
		a.addReason("Of the %s requested, max %d leaves room for %d.", z.Asked, z.Bounds.Max, z.Excess)
	}
	if known := reason.ReserveReady.Find(z.ReserveReady.Reason); known.Meaning != "" {
		a.addReason("%s", known.Explain())
	}
	if z.Applied != z.Excess && z.ReserveReady.Status != "" {
		a.addReason("The applied excess is %d, not %d: it changes only when that affects no workload.", z.Applied, z.Excess)
	}
}

// deploymentNext describes what the controller is about to do.
func deploymentNext(a *Account, p prediction, o overview.Objects) {
	plan := p.kept
	for _, move := range plan.Rule.Moves {
		verb := "is about to serve"
		if move.Reserve {
			verb = "is about to enter the reserve"
		}
		a.addNext("Machine %s %s (%s).", move.Name, verb, move.Why)
	}
	p.describeMachines(a)
	if text, set := plan.Deployment.Annotations[v1alpha1.AppliedExcessAnnotation]; set {
		a.addNext("The applied excess is about to become %s.", cmp.Or(text, "0"))
	}
	switch n := plan.Deployment.Replicas; {
	case n > 0 && plan.Rule.Applied.Counted == 0:
		a.addNext("Replicas are about to rise by %d, because a client marked reserve machines for deletion.", n)
	case n != 0:
		a.addNext("Replicas are about to change by %+d, because they include the reserve.", n)
	}
	if n := len(plan.Nodes); n > 0 {
		a.addNext("The reserve taint of %s is about to change.", plural.Of(n, "Node"))
	}
	if plan.Deployment.Field != nil {
		a.addNext("spec.excessReplicas is about to show %d.", *plan.Deployment.Field)
	}
	if p.IsSteady() {
		a.addNext("It is at rest: nothing changes until replicas, the excess, bounds, a machine or its pods change.")
	}
	if plan.Again > 0 {
		a.addNext("The controller checks again %s.", formatFuture(o.At.Add(plan.Again), o.At))
	}
}

// describeMachines describes which machines are about to be deleted, and how many are about to be created.
func (p prediction) describeMachines(a *Account) {
	for _, d := range p.Deletions {
		a.addNext("Machine %s is about to be deleted (%s).", d.Machine.Name, p.why(d))
	}
	all, spare := 0, 0
	for _, c := range p.Creations {
		all, spare = all+c.Count, spare+c.Reserve
	}
	if all > 0 {
		a.addNext("%s about to be created, %d of them in reserve.", isOrAre(all, "machine"), spare)
	}
}

// why returns why a machine is deleted.
func (p prediction) why(d machineplan.Deletion) string {
	for _, going := range p.kept.Rule.Going {
		if going.Name == d.Machine.Name {
			return string(going.Why)
		}
	}
	return string(d.Reason)
}

func isOrAre(n int, noun string) string {
	if n == 1 {
		return plural.Of(n, noun) + " is"
	}
	return plural.Of(n, noun) + " are"
}

func unlessDedicated(z overview.Zone) string {
	if z.Dedicated == "" {
		return ""
	}
	return " that is not dedicated"
}

// changes describes the effect of raising replicas, and of lowering the excess.
func changes(a *Account, o *oracle, z overview.Zone) error {
	if releases := o.releases(); len(releases) > 0 {
		a.addNext("When replicas are raised, machine %s serves at once, and a new machine replaces it in the reserve if max allows.", releases[0])
	} else if z.Replicas > 0 {
		a.addNext("When replicas are raised, pods wait for a machine to boot, because no reserve machine is ready%s.", unlessDedicated(z))
	}
	victims, err := o.victims(z)
	if len(victims) > 0 {
		a.addNext("When the excess falls by one, machine %s is deleted.", victims[0])
	}
	return err
}

// oracle asks the controller of MachineDeployments what it would do, now or after a change.
type oracle struct {
	objects    overview.Objects
	deployment *v1alpha1.MachineDeployment
	preview    *machinedeployment.Preview
}

// prediction is what is about to happen to a MachineDeployment.
type prediction struct {
	machineplan.Plan
	// kept is what is decided about the reserve.
	kept machinetaint.Plan
}

func newOracle(o overview.Objects, d *v1alpha1.MachineDeployment) (*oracle, error) {
	preview, err := machinedeployment.NewPreview(
		machineplan.Settings{ProtectInRollout: true, SafetyUp: safetyUp, SafetyDown: safetyDown},
		machinetaint.Settings{BootPatience: o.BootLimit(), Drain: o.Draining[d.Namespace], Unready: pool.DefaultUnreadyLimits()},
		!o.NodesUnknown && !o.PodsUnknown)
	if err != nil {
		return nil, fmt.Errorf("preview: %w", err)
	}
	return &oracle{o, d, preview}, nil
}

// The defaults of the manager's flags.
const (
	safetyUp   = 2
	safetyDown = 1
)

// predict returns what is about to happen to a changed MachineDeployment.
func (o *oracle) predict(change func(*v1alpha1.MachineDeployment)) (p prediction, err error) {
	d := o.deployment.DeepCopy()
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	change(d)
	deployments := slices.Clone(o.objects.Deployments)
	deployments[slices.Index(deployments, o.deployment)] = d
	err = o.preview.SetObjects(machinedeployment.Objects{
		Deployments: deployments, Sets: o.objects.Sets, Machines: o.objects.Machines, Classes: o.objects.Classes,
		Nodes: o.objects.Nodes, Pods: o.objects.Pods, BudgetsUnknown: "they are not read for this preview", Devices: o.objects.Devices,
		PodsUnknown: o.objects.NodesUnknown || o.objects.PodsUnknown,
	}, o.objects.At)
	if err != nil {
		return prediction{}, fmt.Errorf("preview: %w", err)
	}
	v, made, _ := o.preview.Plan(d.Namespace, d.Name)
	p.Plan = made
	if kept := machinedeployment.Kept(v, made); kept != nil {
		p.kept = *kept
	}
	return p, nil
}

func (o *oracle) current() (prediction, error) {
	return o.predict(func(*v1alpha1.MachineDeployment) {})
}

// releases returns the machines in reserve in the order in which they would be released if replicas
// were raised.
func (o *oracle) releases() []string {
	all := o.objects
	s := pool.Read(o.deployment, pool.NewList(pool.Objects{Sets: all.Sets, Machines: all.Machines, Nodes: all.Nodes, Pods: all.Pods}), all.At)
	return reserve.ReleaseOrder(reserve.ViewOf(s), s.Workload+len(s.Machines))
}

// mostVictims limits how far ahead to look.
const mostVictims = 8

// victims returns the machines in the order in which they would be deleted if the excess were
// lowered, whatever requests it.
func (o *oracle) victims(z overview.Zone) ([]string, error) {
	var names []string
	for n := 1; n <= min(z.Excess, mostVictims); n++ {
		after, err := o.predict(func(d *v1alpha1.MachineDeployment) {
			delete(d.Annotations, v1alpha1.RequestedExcessAnnotation)
			d.Annotations[v1alpha1.ShareAnnotation] = strconv.Itoa(z.Excess - n)
		})
		if err != nil {
			return nil, err
		}
		for _, going := range after.kept.Rule.Going {
			if !slices.Contains(names, going.Name) {
				names = append(names, going.Name)
			}
		}
	}
	return names, nil
}
