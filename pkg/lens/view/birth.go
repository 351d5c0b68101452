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

// smallest is the number of MachineDeployments up to which it does not matter if some of them have no births left.
const smallest = 16

// Births say how Machines begin (V9). The first three are set, or none.
type Births struct {
	// Born decides: nil means that the Machine serves, otherwise it is held in reserve by what the mark names. It
	// must be quick, and may look into stores but not ask a server.
	Born func(Birth) *machine.Reserve
	// DeploymentOf names the MachineDeployment that a Machine is made for; false where there is none, then it
	// serves. See [OwnedThrough].
	DeploymentOf func(namespace string, m *v1alpha1.Machine) (types.NamespacedName, bool)
	// Seen tells whether the store from which Born counts shows all Machines up to a resourceVersion.
	Seen func(resourceVersion string) bool
	// Superfluous is an error where the Machine must not be created (V13), asked before Born. It is optional.
	Superfluous func(Birth) error
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

// creations knows the births under way.
type creations struct {
	Births
	clock clock.PassiveClock

	mu  sync.Mutex
	all map[types.NamespacedName]*perDeployment
	// sweepAt is the number of MachineDeployments at which those without births are looked for.
	sweepAt int
}

// perDeployment are the births of one MachineDeployment. No one holds its lock and that of creations at a time.
type perDeployment struct {
	sync.Mutex
	births []*birth
	// users have it locked, or wait for that. They are counted under the lock of creations: while there are none, that
	// lock is enough.
	users int
}

type birth struct {
	name    string
	mark    *machine.Reserve
	version string    // that it was created with; empty until then
	doubted time.Time // since when its outcome is unknown; zero if it is not
}

func newCreations(b Births, c clock.PassiveClock) *creations {
	return &creations{Births: b, clock: c, all: map[types.NamespacedName]*perDeployment{}}
}

// begin decides on a Machine and returns it as it is to be created, and what to call with the outcome. An error refuses it.
func (c *creations) begin(namespace string, m *v1alpha1.Machine) (*v1alpha1.Machine, func(*v1alpha1.Machine, error), error) {
	nothing := func(*v1alpha1.Machine, error) {}
	if c.Born == nil {
		return m, nothing, nil
	}
	deployment, owned := c.DeploymentOf(namespace, m)
	if !owned {
		return m, nothing, nil
	}
	b, err := c.decide(deployment, m)
	if err != nil {
		return nil, nil, err
	}
	done := func(made *v1alpha1.Machine, err error) { c.end(deployment, b, made, err) }
	if b.mark == nil {
		return m, done, nil
	}
	return Mark(m, *b.mark), done, nil
}

// enter locks the births of a MachineDeployment, until leave is called.
func (c *creations) enter(deployment types.NamespacedName) (d *perDeployment, leave func()) {
	c.mu.Lock()
	d = c.all[deployment]
	if d == nil {
		c.sweep()
		d = &perDeployment{}
		c.all[deployment] = d
	}
	d.users++
	c.mu.Unlock()
	d.Lock()
	return d, func() {
		d.Unlock()
		c.mu.Lock()
		defer c.mu.Unlock()
		d.users--
		c.forget(deployment, d)
	}
}

// sweep forgets what is over, each time the number of MachineDeployments has doubled. It is called with the lock held.
func (c *creations) sweep() {
	if len(c.all) < c.sweepAt {
		return
	}
	for deployment, d := range c.all {
		if d.users == 0 {
			d.births = slices.DeleteFunc(d.births, c.over)
			c.forget(deployment, d)
		}
	}
	c.sweepAt = max(smallest, 2*len(c.all))
}

// forget a MachineDeployment of which nothing is left. It is called with the lock held.
func (c *creations) forget(deployment types.NamespacedName, d *perDeployment) {
	if d.users == 0 && len(d.births) == 0 {
		delete(c.all, deployment)
	}
}

// decide asks Born, once for each name: a create that is repeated under its name has been decided.
func (c *creations) decide(deployment types.NamespacedName, m *v1alpha1.Machine) (*birth, error) {
	d, leave := c.enter(deployment)
	defer leave()
	d.births = slices.DeleteFunc(d.births, c.over)
	var underWay []UnderWay
	for _, b := range d.births {
		if m.Name != "" && b.name == m.Name {
			b.doubted = time.Time{}
			return b, nil
		}
		underWay = append(underWay, UnderWay{Name: b.name, Reserve: b.mark != nil})
	}
	question := Birth{Deployment: deployment, Machine: m, UnderWay: underWay}
	if c.Superfluous != nil {
		if err := c.Superfluous(question); err != nil {
			return nil, err
		}
	}
	b := &birth{name: m.Name, mark: c.Born(question)}
	d.births = append(d.births, b)
	return b, nil
}

func (c *creations) over(b *birth) bool {
	switch {
	case b.version != "":
		return c.Seen(b.version)
	case !b.doubted.IsZero():
		return c.clock.Since(b.doubted) > forgotten
	}
	return false
}

// end notes the outcome.
func (c *creations) end(deployment types.NamespacedName, b *birth, made *v1alpha1.Machine, err error) {
	d, leave := c.enter(deployment)
	defer leave()
	switch written.Outcome(err) {
	case written.Done:
		b.name, b.version = made.Name, made.ResourceVersion
	case written.Refused:
		d.births = slices.DeleteFunc(d.births, func(other *birth) bool { return other == b })
	default: // the Machine may exist: a conflict may be about the Machine that an earlier attempt made
		b.doubted = c.clock.Now()
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
