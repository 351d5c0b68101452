// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// latest reads objects as the stores show them, or as the API server returned them to a write of
// this process, whichever is later. It is a source for [pool.Outline].
type latest struct {
	stores.Source
	stores *caches
	// deployments, machines and nodes are as this controller wrote them. A sync waits until the
	// store shows its deployments; ReserveMark does not.
	deployments *written.Cache[*v1alpha1.MachineDeployment]
	machines    *written.Cache[*mcm.Machine]
	nodes       *written.Cache[*corev1.Node]
	// external are MachineDeployments as other controllers of this process wrote them.
	external *written.Cache[*v1alpha1.MachineDeployment]
}

func newLatest(s *caches, c clock.PassiveClock) *latest {
	l := &latest{
		Source:      stores.Source{Kinds: stores.Kinds{Sets: s.sets, Machines: s.machines, Classes: s.classes, Nodes: s.nodes, Pods: s.pods}},
		stores:      s,
		deployments: written.NewCache[*v1alpha1.MachineDeployment](s.deployments, c),
		machines:    written.NewCache[*mcm.Machine](s.machines, c),
		external:    written.NewCache[*v1alpha1.MachineDeployment](s.deployments, c),
	}
	if s.nodes != nil {
		l.nodes = written.NewCache[*corev1.Node](s.nodes, c)
	}
	return l
}

// Deployment returns a MachineDeployment, nil if there is none.
func (l *latest) Deployment(key string) *v1alpha1.MachineDeployment {
	d, _ := l.stores.deployment(key)
	if d != nil {
		d = l.deployments.Newest(l.external.Newest(d))
	}
	return d
}

// Machines implements pool.Source.
func (l *latest) Machines(set types.UID) []*mcm.Machine {
	all := l.Source.Machines(set)
	for i, m := range all {
		all[i] = l.machines.Newest(m)
	}
	return all
}

// Node implements pool.Source.
func (l *latest) Node(name string) *corev1.Node {
	if node := l.Source.Node(name); node != nil {
		return l.nodes.Newest(node)
	}
	return nil
}

// seenLater returns the version of a MachineDeployment that machine-controller-manager has seen if
// it is later than this one, otherwise nil. Machine-controller-manager may have acted on it, and the
// machines that it deletes for lower replicas must not be replaced. The event of that version causes
// the next sync.
func (l *latest) seenLater(key string, d *v1alpha1.MachineDeployment) *mcm.MachineDeployment {
	seen := stores.Find[mcm.MachineDeployment](l.stores.seenDeployments, key)
	if seen == nil {
		return nil
	}
	if order, err := resourceversion.CompareResourceVersion(d.ResourceVersion, seen.ResourceVersion); err != nil || order >= 0 {
		return nil
	}
	return seen
}

// seenMachines returns the machines of a MachineDeployment that machine-controller-manager's store
// shows.
func (l *latest) seenMachines(d *v1alpha1.MachineDeployment) (all []*mcm.Machine) {
	for _, set := range l.seenSets(d) {
		all = append(all, ownedBy[*mcm.Machine](l.stores.seenMachines, set)...)
	}
	return all
}

// seenSets returns the MachineSets that machine-controller-manager's store shows.
func (l *latest) seenSets(d *v1alpha1.MachineDeployment) []*mcm.MachineSet {
	return ownedBy[*mcm.MachineSet](l.stores.seenSets, d)
}

// seenMachine returns a Machine that machine-controller-manager's store shows, with its MachineSet
// and the key of its MachineDeployment; nil if one of them is not known.
func (l *latest) seenMachine(name string) (*mcm.Machine, *mcm.MachineSet, string) {
	m := stores.Find[mcm.Machine](l.stores.seenMachines, name)
	if m == nil {
		return nil, nil, ""
	}
	owner := metav1.GetControllerOfNoCopy(m)
	if owner == nil {
		return nil, nil, ""
	}
	set := stores.Find[mcm.MachineSet](l.stores.seenSets, m.Namespace+"/"+owner.Name)
	if set == nil {
		return nil, nil, ""
	}
	key, owned := keyOfSet(set)
	if !owned {
		return nil, nil, ""
	}
	return m, set, key
}

// isMarked reports whether a Machine is in reserve. The one that machine-controller-manager sees
// does not have its mark.
func (l *latest) isMarked(seen *mcm.Machine) bool { return l.inReserve(keyOf(seen)) }

func (l *latest) inReserve(machine string) bool {
	m := stores.Find[mcm.Machine](l.stores.machines, machine)
	return m != nil && pool.Marked(m)
}

// isKnown reports whether the store shows a Machine that machine-controller-manager sees.
func (l *latest) isKnown(seen *mcm.Machine) bool {
	return stores.Find[mcm.Machine](l.stores.machines, keyOf(seen)) != nil
}

// wasMarked reports whether a Machine is in reserve, or was.
func (l *latest) wasMarked(seen *mcm.Machine) bool {
	m := stores.Find[mcm.Machine](l.stores.machines, seen.Namespace+"/"+seen.Name)
	return m != nil && (pool.Marked(m) || m.Annotations[v1alpha1.ReserveStateAnnotation] != "")
}

// showsMachines reports whether the store shows all Machines up to a version.
func (l *latest) showsMachines(version string) bool {
	return written.Reached(l.stores.machines.LastStoreSyncResourceVersion(), version)
}

// showsPods reports whether the store shows all pods up to a version.
func (l *latest) showsPods(version string) bool {
	return written.Reached(l.stores.pods.LastStoreSyncResourceVersion(), version)
}

// showsLastPods reports whether a Node has the reserve taint, and the store of pods shows all that
// were bound there before.
func (l *latest) showsLastPods(node string) bool {
	n := l.Node(node)
	return n != nil && pool.HasReserveTaint(n.Spec.Taints) && l.showsPods(n.ResourceVersion)
}

// mayHavePods reports whether pods that no store shows may run on a Machine in reserve: its Node may
// have been opened, and it is not seen to be closed with all pods that came before.
func (l *latest) mayHavePods(m *mcm.Machine, opening doubt, now time.Time) bool {
	n := l.Node(m.Labels[mcm.NodeLabelKey])
	switch {
	case n == nil:
		return false
	case n.ResourceVersion == opening.version:
		return !passed(opening.until, now)
	}
	return !l.showsLastPods(n.Name)
}

// lateDeletions returns the machines that machine-controller-manager's store shows as being deleted,
// by UID, in versions that the controller's store does not show yet.
func (l *latest) lateDeletions(d *v1alpha1.MachineDeployment) map[types.UID]*mcm.Machine {
	late := map[types.UID]*mcm.Machine{}
	for _, m := range l.seenMachines(d) {
		if pool.BeingDeleted(m) && !l.showsMachines(m.ResourceVersion) {
			late[m.UID] = m
		}
	}
	return late
}

// seenSpread reports whether machine-controller-manager's store shows a rollout.
func (l *latest) seenSpread(d *v1alpha1.MachineDeployment) bool {
	sets, staying := l.seenSets(d), map[string]int{}
	for _, set := range sets {
		for _, m := range ownedBy[*mcm.Machine](l.stores.seenMachines, set) {
			if !pool.BeingDeleted(m) {
				staying[set.Name]++
			}
		}
	}
	return pool.Spread(sets, staying)
}
