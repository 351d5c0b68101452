// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	machinelisters "github.com/gardener/machine-controller-manager/pkg/client/listers/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// forgotten is how long a birth of unknown outcome counts, if it is never shown. By then no request is under way.
const forgotten = 2 * time.Minute

// Births say how Machines begin (V9). All three are set, or none.
type Births struct {
	// Born decides: nil means that the Machine serves, otherwise it is held in reserve by what the mark names. It
	// must be quick, and may look into stores but not ask a server.
	Born func(Birth) *machine.Reserve
	// DeploymentOf names the MachineDeployment that a Machine is made for; false where there is none, then it
	// serves. See [OwnedThrough].
	DeploymentOf func(namespace string, m *v1alpha1.Machine) (types.NamespacedName, bool)
	// Seen tells whether the store from which Born counts shows all Machines up to a resourceVersion.
	Seen func(resourceVersion string) bool
}

// Birth is what is to be decided.
type Birth struct {
	Deployment types.NamespacedName
	// Machine is as machine-controller-manager asks for it; not to be changed.
	Machine *v1alpha1.Machine
	// UnderWay are Machines of the MachineDeployment being created, or created but perhaps not yet shown by
	// the store; those that it does show, by their names, are to be counted once.
	UnderWay []UnderWay
}

// UnderWay is a Machine that has been decided upon.
type UnderWay struct {
	Name    string // empty while the server has yet to choose it
	Reserve bool
}

// nursery knows the births under way.
type nursery struct {
	Births
	clock clock.PassiveClock

	mu    sync.Mutex
	rooms map[types.NamespacedName]*room
}

// room is that of one MachineDeployment.
type room struct {
	sync.Mutex
	births []*birth
}

type birth struct {
	name    string
	mark    *machine.Reserve
	version string    // that it was created with; empty until then
	doubted time.Time // since when its outcome is unknown; zero if it is not
}

func newNursery(b Births, c clock.PassiveClock) *nursery {
	return &nursery{Births: b, clock: c, rooms: map[types.NamespacedName]*room{}}
}

// begin decides on a Machine and returns it as it is to be created, and what to call with the outcome.
func (n *nursery) begin(namespace string, m *v1alpha1.Machine) (*v1alpha1.Machine, func(*v1alpha1.Machine, error)) {
	nothing := func(*v1alpha1.Machine, error) {}
	if n.Born == nil {
		return m, nothing
	}
	deployment, owned := n.DeploymentOf(namespace, m)
	if !owned {
		return m, nothing
	}
	r := n.room(deployment)
	b := n.decide(r, deployment, m)
	done := func(made *v1alpha1.Machine, err error) { n.end(r, b, made, err) }
	if b.mark == nil {
		return m, done
	}
	return Mark(m, *b.mark), done
}

func (n *nursery) room(deployment types.NamespacedName) *room {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.rooms[deployment]
	if r == nil {
		r = &room{}
		n.rooms[deployment] = r
	}
	return r
}

// decide asks Born, once for each name: a create that is repeated under its name has been decided.
func (n *nursery) decide(r *room, deployment types.NamespacedName, m *v1alpha1.Machine) *birth {
	r.Lock()
	defer r.Unlock()
	r.births = slices.DeleteFunc(r.births, n.over)
	var underWay []UnderWay
	for _, b := range r.births {
		if m.Name != "" && b.name == m.Name {
			b.doubted = time.Time{}
			return b
		}
		underWay = append(underWay, UnderWay{Name: b.name, Reserve: b.mark != nil})
	}
	b := &birth{name: m.Name, mark: n.Born(Birth{Deployment: deployment, Machine: m, UnderWay: underWay})}
	r.births = append(r.births, b)
	return b
}

func (n *nursery) over(b *birth) bool {
	switch {
	case b.version != "":
		return n.Seen(b.version)
	case !b.doubted.IsZero():
		return n.clock.Since(b.doubted) > forgotten
	}
	return false
}

// end notes the outcome.
func (n *nursery) end(r *room, b *birth, made *v1alpha1.Machine, err error) {
	r.Lock()
	defer r.Unlock()
	switch written.Outcome(err) {
	case written.Done:
		b.name, b.version = made.Name, made.ResourceVersion
	case written.Refused:
		r.births = slices.DeleteFunc(r.births, func(other *birth) bool { return other == b })
	default: // the Machine may exist: a conflict may be about the Machine that an earlier attempt made
		b.doubted = n.clock.Now()
	}
}

// OwnedThrough finds the MachineDeployment of a Machine by way of its MachineSet. The lister is that of the controllers:
// a MachineSet that they make Machines for is there, whereas a store of one's own may be behind.
func OwnedThrough(sets machinelisters.MachineSetLister) func(string, *v1alpha1.Machine) (types.NamespacedName, bool) {
	return func(namespace string, m *v1alpha1.Machine) (types.NamespacedName, bool) {
		owner := metav1.GetControllerOfNoCopy(m)
		if owner == nil || owner.Kind != "MachineSet" {
			return types.NamespacedName{}, false
		}
		set, err := sets.MachineSets(namespace).Get(owner.Name)
		if err != nil || set.UID != owner.UID {
			return types.NamespacedName{}, false
		}
		if owner = metav1.GetControllerOfNoCopy(set); owner == nil || owner.Kind != "MachineDeployment" {
			return types.NamespacedName{}, false
		}
		return types.NamespacedName{Namespace: namespace, Name: owner.Name}, true
	}
}
