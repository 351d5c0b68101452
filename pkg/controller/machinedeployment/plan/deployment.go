// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// deployment is a MachineDeployment with the MachineSets that it has claimed.
type deployment struct {
	View
	stored *machine.MachineDeployment
	// Object is the MachineDeployment as it will be.
	Object *machine.MachineDeployment
	// newest has the template of the MachineDeployment; nil if there is none.
	newest *set
	// old are the others, by age.
	old []*set
	// nodes are those that are changed, as they will be, by name, and urgent those among them that pods may
	// wait for.
	nodes  map[string]*corev1.Node
	urgent map[string]bool
	events []Event

	// creatable is how many machines may be created, and serving how many of them serve. The others get
	// the mark.
	creatable, serving int
	mark               machine.Reserve
}

// decideDeployment adds what is to be done about a MachineDeployment and its MachineSets: first what
// the MachineSets are to be, then what follows for the machines of each.
func (p *Plan) decideDeployment(v View, adopted map[types.UID]bool) {
	d := &deployment{View: v, stored: v.Deployment, Object: v.Deployment.DeepCopy(), nodes: map[string]*corev1.Node{}, urgent: map[string]bool{}}
	selector, invalid := validateDeployment(d.stored)
	leaving := d.stored.DeletionTimestamp != nil
	mine, claims := claimSets(v, selector, invalid != nil)
	p.SetClaims = claims
	var all, settled []*set
	for _, s := range mine {
		after := s.Object.DeepCopy()
		if after.Spec.Replicas < 0 && invalid == nil {
			after.Spec.Replicas = liveMachines(s.Machines) // whoever wrote that: from here, it is scaled as any other
		}
		one, claimed := p.claimMachines(v, s, after, adopted)
		one.of = d
		if all = append(all, one); claimed {
			settled = append(settled, one)
		}
	}
	switch {
	case invalid != nil && !leaving:
		p.reportInvalidDeployment(d, *invalid)
	case len(claims) > 0 || len(settled) < len(all):
		// It is decided about once it has its MachineSets, and these have their machines.
	case leaving:
		p.dismantleDeployment(d, all)
	default:
		d.newest, d.old = d.split(all)
		p.manageDeployment(d)
	}
	for _, s := range settled {
		if !slices.Contains(p.SetDeletions, s.stored) { // what is left of those is for the next plan
			p.manage(s)
		}
	}
	p.finish(d)
}

// liveMachines counts machines that are not leaving.
func liveMachines(machines []*mcm.Machine) (n int32) {
	for _, m := range machines {
		if m.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

// finish adds what differs in a MachineDeployment and in Nodes.
func (p *Plan) finish(d *deployment) {
	if !equality.Semantic.DeepEqual(d.stored.ObjectMeta, d.Object.ObjectMeta) || !equality.Semantic.DeepEqual(d.stored.Spec, d.Object.Spec) {
		p.Deployment = &DeploymentChange{d.stored, d.Object, d.events}
	}
	p.Nodes = append(p.Nodes, d.nodeChanges()...)
}

// dismantleDeployment decides about a MachineDeployment that is being deleted: first its MachineSets
// go, then its finalizer.
func (p *Plan) dismantleDeployment(d *deployment, all []*set) {
	if !slices.Contains(d.stored.Finalizers, Finalizer) {
		return
	}
	if len(all) == 0 {
		d.Object.Finalizers = slices.DeleteFunc(d.Object.Finalizers, func(f string) bool { return f == Finalizer })
		return
	}
	for _, s := range all {
		if s.stored.DeletionTimestamp == nil {
			p.SetDeletions = append(p.SetDeletions, s.stored)
		}
	}
	d.newest, d.old = d.split(all)
	p.reportDeployment(d, resting)
}

// manageDeployment decides about the MachineSets of a MachineDeployment that stays.
func (p *Plan) manageDeployment(d *deployment) {
	if !slices.Contains(d.Object.Finalizers, Finalizer) {
		d.Object.Finalizers = append(d.Object.Finalizers, Finalizer)
	}
	p.keepReserve(d)
	d.nameVictims()
	d.addHashes()
	d.syncNewest()
	d.syncFreeze()
	switch {
	case d.stored.Spec.Paused:
		d.scale()
		if d.stored.Spec.RollbackTo == nil {
			p.cleanUp(d)
		}
		p.reportDeployment(d, resting)
	case d.stored.Spec.RollbackTo != nil:
		p.rollBack(d)
	default:
		p.rollOut(d)
		p.reportDeployment(d, rolling)
	}
}

// rollOut takes the next step of the strategy. If replicas have changed, they are distributed first, except
// by Recreate: its step does that.
func (p *Plan) rollOut(d *deployment) {
	strategy := d.stored.Spec.Strategy.Type
	if strategy == mcm.RecreateMachineDeploymentStrategyType {
		p.recreateMachines(d)
		return
	}
	if d.newest != nil && d.isScaled() {
		d.scale()
	}
	if strategy == mcm.InPlaceUpdateMachineDeploymentStrategyType {
		p.updateMachinesInPlace(d)
	} else {
		p.rollMachines(d)
	}
}

// sets returns all MachineSets, the old ones first.
func (d *deployment) sets() []*set {
	all := slices.Clone(d.old)
	if d.newest != nil {
		all = append(all, d.newest)
	}
	return all
}

// replicas is how many machines the MachineDeployment is to have, those in reserve included.
func (d *deployment) replicas() int32 { return ptr.Deref(d.total, d.stored.Spec.Replicas) }

// resize changes how many machines a MachineSet is to have, and says for what number of replicas.
func (d *deployment) resize(s *set, size int32) {
	s.Object.Spec.Replicas = size
	d.annotateSize(s.Object)
}
