// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	machinelisters "github.com/gardener/machine-controller-manager/pkg/client/listers/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// unknownFor is how long a creation of unknown outcome counts, if the Machine never appears. No
// request is in progress by then.
const unknownFor = 2 * time.Minute

// minSweep is the number of MachineDeployments up to which unused entries do not matter.
const minSweep = 16

// refusal begins the text of an error for a Machine that is not created (V13). Machine-controller-manager
// copies it into the status of the MachineSet, and from there into that of the MachineDeployment.
const refusal = "Evenkeel lets no machine be created now"

// CreationOptions decide how Machines are created (V9). Either the first three are set, or none.
type CreationOptions struct {
	// ReserveMark decides: nil means that the Machine serves, otherwise it is held in reserve by
	// the contents of the mark. It must be quick, and may read stores but not send requests.
	ReserveMark func(Creation) *machine.Reserve
	// DeploymentOf returns the MachineDeployment that a Machine is created for. It is false if
	// there is none: then the Machine serves. See [OwnedThrough].
	DeploymentOf func(namespace string, m *v1alpha1.Machine) (types.NamespacedName, bool)
	// Seen reports whether the store that ReserveMark counts in shows all Machines up to a
	// resourceVersion.
	Seen func(resourceVersion string) bool
	// Superfluous returns an error if the Machine must not be created (V13). It is called before
	// ReserveMark, and optional.
	Superfluous func(Creation) error
}

// Creation is the input of a decision.
type Creation struct {
	Deployment types.NamespacedName
	// Machine is the Machine that machine-controller-manager asks for; it must not be changed.
	Machine *v1alpha1.Machine
	// InProgress are Machines of the MachineDeployment that are being created, or that the store
	// may not show yet. Those that it does show count once; compare their names.
	InProgress []InProgress
}

// InProgress is a Machine whose creation has been decided.
type InProgress struct {
	Name    string // empty while the server has yet to choose it
	Reserve bool
}

// creationTracker records the creations in progress.
type creationTracker struct {
	CreationOptions
	clock clock.PassiveClock

	mu  sync.Mutex
	all map[types.NamespacedName]*perDeployment
	// sweepAt is the number of MachineDeployments at which unused entries are removed.
	sweepAt int
}

// perDeployment contains the creations of one MachineDeployment. Its lock and that of
// creationTracker are never held at the same time.
type perDeployment struct {
	sync.Mutex
	creations []*creation
	// users have it locked, or wait for the lock. They are counted under the lock of
	// creationTracker: while there are none, that lock is enough.
	users int
}

type creation struct {
	name    string
	mark    *machine.Reserve
	version string    // that it was created with; empty until then
	doubted time.Time // since when its outcome is unknown; zero if it is not
	// uncertain reports whether the outcome of an attempt is unknown. It may take effect although a
	// later attempt was refused.
	uncertain bool
}

func newCreationTracker(b CreationOptions, c clock.PassiveClock) *creationTracker {
	return &creationTracker{CreationOptions: b, clock: c, all: map[types.NamespacedName]*perDeployment{}}
}

// startCreation decides on a Machine. It returns the Machine to create, and a function to call with
// the outcome. An error refuses the creation.
func (c *creationTracker) startCreation(namespace string, m *v1alpha1.Machine) (*v1alpha1.Machine, func(*v1alpha1.Machine, error), error) {
	nothing := func(*v1alpha1.Machine, error) {}
	if c.ReserveMark == nil {
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
	done := func(made *v1alpha1.Machine, err error) { c.recordOutcome(deployment, b, made, err) }
	if b.mark == nil {
		return m, done, nil
	}
	return pool.Mark(m, *b.mark), done, nil
}

// lockDeployment locks the creations of a MachineDeployment until leave is called.
func (c *creationTracker) lockDeployment(deployment types.NamespacedName) (d *perDeployment, leave func()) {
	c.mu.Lock()
	d = c.all[deployment]
	if d == nil {
		c.removeFinished()
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
		c.forgetEmpty(deployment, d)
	}
}

// removeFinished forgets finished creations, each time the number of MachineDeployments has
// doubled. The caller holds the lock.
func (c *creationTracker) removeFinished() {
	if len(c.all) < c.sweepAt {
		return
	}
	for deployment, d := range c.all {
		if d.users == 0 {
			d.creations = slices.DeleteFunc(d.creations, c.isFinished)
			c.forgetEmpty(deployment, d)
		}
	}
	c.sweepAt = max(minSweep, 2*len(c.all))
}

// forgetEmpty removes a MachineDeployment without creations. The caller holds the lock.
func (c *creationTracker) forgetEmpty(deployment types.NamespacedName, d *perDeployment) {
	if d.users == 0 && len(d.creations) == 0 {
		delete(c.all, deployment)
	}
}

// decide calls ReserveMark, once for each name: a creation that is repeated under its name has been
// decided already.
func (c *creationTracker) decide(deployment types.NamespacedName, m *v1alpha1.Machine) (*creation, error) {
	d, leave := c.lockDeployment(deployment)
	defer leave()
	d.creations = slices.DeleteFunc(d.creations, c.isFinished)
	var underWay []InProgress
	for _, b := range d.creations {
		if m.Name != "" && b.name == m.Name {
			b.doubted = time.Time{}
			return b, nil
		}
		underWay = append(underWay, InProgress{Name: b.name, Reserve: b.mark != nil})
	}
	question := Creation{Deployment: deployment, Machine: m, InProgress: underWay}
	if c.Superfluous != nil {
		if err := c.Superfluous(question); err != nil {
			return nil, fmt.Errorf("%s: %w", refusal, err)
		}
	}
	b := &creation{name: m.Name, mark: c.ReserveMark(question)}
	d.creations = append(d.creations, b)
	return b, nil
}

func (c *creationTracker) isFinished(b *creation) bool {
	switch {
	case b.version != "":
		return c.Seen(b.version)
	case !b.doubted.IsZero():
		return c.clock.Since(b.doubted) > unknownFor
	}
	return false
}

// recordOutcome records the outcome of a creation.
func (c *creationTracker) recordOutcome(deployment types.NamespacedName, b *creation, made *v1alpha1.Machine, err error) {
	d, leave := c.lockDeployment(deployment)
	defer leave()
	switch outcome := written.Outcome(err); {
	case outcome == written.Done:
		b.name, b.version = made.Name, made.ResourceVersion
	case outcome == written.Refused && !b.uncertain:
		d.creations = slices.DeleteFunc(d.creations, func(other *creation) bool { return other == b })
	default: // the Machine may exist: an earlier attempt may have made it, or may make it yet
		b.doubted, b.uncertain = c.clock.Now(), true
	}
}

// observe records that a Machine exists whose creation may have had an unknown outcome: it counts
// until the store has shown it, and not longer, since it may be gone soon.
func (c *creationTracker) observe(namespace string, m *v1alpha1.Machine) {
	if c.ReserveMark == nil {
		return
	}
	deployment, owned := c.DeploymentOf(namespace, m)
	if !owned {
		return
	}
	d, leave := c.lockDeployment(deployment)
	defer leave()
	for _, b := range d.creations {
		if b.name == m.Name && !b.doubted.IsZero() {
			b.version, b.doubted = m.ResourceVersion, time.Time{}
		}
	}
}

// OwnedThrough returns a function that finds the MachineDeployment of a Machine through its
// MachineSet. The lister is that of the controllers: it contains each MachineSet that they create
// Machines for, whereas another store may be behind.
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
