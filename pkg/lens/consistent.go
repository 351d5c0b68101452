// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	machineclient "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	machineinformers "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions/machine/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

// ErrStopped is returned by every write and every Get after the context given to New has ended.
var ErrStopped = errors.New("clientset has stopped")

// DefaultPatience is how long a write waits for the store by default. A healthy watch takes
// milliseconds.
const DefaultPatience = 2 * time.Second

// Options of a Consistent clientset. The zero value is suitable for production.
type Options struct {
	// Patience bounds how long one write waits for the store. It does not apply to lists.
	Patience time.Duration
	// Clock is the real one unless set.
	Clock clock.Clock
	// Registerer takes the metrics. Without it, they are counted but not exported.
	Registerer prometheus.Registerer
	// First reports whether a Machine comes before others in the lists that
	// machine-controller-manager selects from: an in-place update takes machines in the order of
	// such a list. It is first called when an informer of [Consistent.Bind] is read.
	First func(*v1alpha1.Machine) bool
}

// Consistent is a clientset with which machine-controller-manager's controllers read their own
// writes.
type Consistent struct {
	versioned.Interface

	stop        context.Context
	clock       clock.Clock
	metrics     *metrics
	first       func(*v1alpha1.Machine) bool
	machines    *writeTracker
	sets        *writeTracker
	deployments *writeTracker
}

var _ versioned.Interface = &Consistent{}

// New wraps a clientset. Build informers on the result and pass them to Bind before the first
// write. Everything ends with ctx.
func New(ctx context.Context, inner versioned.Interface, o Options) *Consistent {
	if o.Patience <= 0 {
		o.Patience = DefaultPatience
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Consistent{Interface: inner, stop: ctx, clock: o.Clock, metrics: newMetrics(o.Registerer), first: o.First}
	c.machines = newWriteTracker(ctx, "machines", o.Patience, o.Clock, c.metrics)
	c.sets = newWriteTracker(ctx, "machinesets", o.Patience, o.Clock, c.metrics)
	c.deployments = newWriteTracker(ctx, "machinedeployments", o.Patience, o.Clock, c.metrics)
	return c
}

// Bind follows the stores of these informers, which must have been built on this clientset and not
// be started yet. It returns informers for the controllers, whose listers keep law L4.1.
func (c *Consistent) Bind(in machineinformers.Interface) (machineinformers.Interface, error) {
	err := errors.Join(
		c.machines.follow(in.Machines().Informer()),
		c.sets.follow(in.MachineSets().Informer()),
		c.deployments.follow(in.MachineDeployments().Informer()),
	)
	if err != nil {
		return nil, fmt.Errorf("bind informers: %w", err)
	}
	return informers{Interface: in, c: c}, nil
}

// MachineV1alpha1 returns the client for the controllers.
func (c *Consistent) MachineV1alpha1() machineclient.MachineV1alpha1Interface {
	return typed{MachineV1alpha1Interface: c.Interface.MachineV1alpha1(), c: c}
}

// typed passes MachineClasses through unchanged: the controllers never write them.
type typed struct {
	machineclient.MachineV1alpha1Interface
	c *Consistent
}

func (t typed) Machines(namespace string) machineclient.MachineInterface {
	return &kindClient[*v1alpha1.Machine, *v1alpha1.MachineList]{
		verbs: t.MachineV1alpha1Interface.Machines(namespace), tracker: t.c.machines, c: t.c, namespace: namespace,
		blank: func() *v1alpha1.Machine { return &v1alpha1.Machine{} },
	}
}

func (t typed) MachineSets(namespace string) machineclient.MachineSetInterface {
	inner := t.MachineV1alpha1Interface.MachineSets(namespace)
	return scalable[*v1alpha1.MachineSet, *v1alpha1.MachineSetList]{
		kindClient: &kindClient[*v1alpha1.MachineSet, *v1alpha1.MachineSetList]{
			verbs: inner, tracker: t.c.sets, c: t.c, namespace: namespace,
			blank: func() *v1alpha1.MachineSet { return &v1alpha1.MachineSet{} },
		},
		inner: inner,
	}
}

func (t typed) MachineDeployments(namespace string) machineclient.MachineDeploymentInterface {
	inner := t.MachineV1alpha1Interface.MachineDeployments(namespace)
	return scalable[*v1alpha1.MachineDeployment, *v1alpha1.MachineDeploymentList]{
		kindClient: &kindClient[*v1alpha1.MachineDeployment, *v1alpha1.MachineDeploymentList]{
			verbs: inner, tracker: t.c.deployments, c: t.c, namespace: namespace,
			blank: func() *v1alpha1.MachineDeployment { return &v1alpha1.MachineDeployment{} },
		},
		inner: inner,
	}
}
