// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/internal/target"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	balancerapi "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/balance"
	balanceplan "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/balancer"
	balancerplan "github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer"
	capacitybufferplan "github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment"
	machineplan "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/controller/release"
	releaseplan "github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	reservesplan "github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Settings are the values of the controllers' flags.
type Settings struct {
	Machines machineplan.Settings
	Reserve  machinetaint.Settings
	Zones    balanceplan.Settings
	// Instant reports whether reserve machines are released to waiting pods, by these rules.
	Instant bool
	Release releaseplan.Settings
}

// world contains all objects and all actors. It exists only in memory.
type world struct {
	still Objects
	// devices counts the devices of Nodes; nil if there is no target cluster.
	devices pool.DeviceCounter
	now     time.Time
	made    int
	// begun counts the pods and machines that were created here.
	begun int

	deployments shelf[*machine.MachineDeployment]
	sets        shelf[*mcm.MachineSet]
	machines    shelf[*mcm.Machine]
	nodes       shelf[*corev1.Node]
	// pods are the target cluster's, own the control cluster's; they are the same if there is only
	// one cluster.
	pods, own shelf[*corev1.Pod]
	// ownNodes are the Nodes of own.
	ownNodes  shelf[*corev1.Node]
	balancers shelf[*balancerapi.Balancer]
	reserves  shelf[*autoscaling.Reserve]
	buffers   shelf[*v1beta1.CapacityBuffer]
	workloads map[schema.GroupVersionResource]shelf[*unstructured.Unstructured]

	manager *machinedeployment.Preview
	zones   map[string]*balance.Preview
	shares  *balancer.Preview
	release *release.Preview
	// chunks decides about CapacityBuffers, for the MachineDeployments of the namespace chunksIn;
	// nil if there is nothing to decide.
	chunks   *capacitybuffer.Preview
	chunksIn string

	// unmade contains the error of creating machines, by MachineDeployment; born contains the
	// machines created here.
	unmade map[string]mcm.LastOperation
	born   map[string]bool
	notes  map[string]bool
	// changed are the kinds and keys of the Reserves and CapacityBuffers that differ from those
	// that were read.
	changed map[string]bool
	// plans are the last decisions.
	plans plans
}

// plans contains the plans of each controller for the present state.
type plans struct {
	// requests are those of the Reserves, by namespace.
	requests map[string]reservesplan.Plan
	machines map[string]machinesPlan
	zones    map[string]zonesPlan
	balancer map[string]balancerPlan
	buffers  capacitybufferplan.Plan
	release  releaseplan.Plan
}

type zonesPlan struct {
	balanceplan.View
	balanceplan.Plan
}

type balancerPlan struct {
	balancerplan.View
	balancerplan.Plan
}

// newWorld returns the state that was read.
func newWorld(o Objects, s Settings, clients balancer.Clients) (*world, error) {
	w := &world{
		still: o, now: o.At, deployments: newShelf(o.Deployments), sets: newShelf(o.Sets), machines: newShelf(o.Machines), nodes: newShelf(o.Nodes),
		pods: newShelf(o.Pods), balancers: newShelf(o.Balancers), reserves: newShelf(o.Reserves), buffers: newShelf(o.Buffers), workloads: map[schema.GroupVersionResource]shelf[*unstructured.Unstructured]{},
		zones: map[string]*balance.Preview{}, unmade: map[string]mcm.LastOperation{}, born: map[string]bool{}, notes: map[string]bool{},
	}
	if w.own, w.ownNodes = w.pods, w.nodes; !sameList(o.Own, o.Pods) {
		w.own, w.ownNodes = newShelf(o.Own), newShelf(o.OwnNodes)
	}
	if o.Target {
		w.devices = target.CountsOf(o.Slices, o.DeviceClasses, o.devicesUnknown())
	}
	for resource, objects := range o.Workloads {
		w.workloads[resource] = newShelf(objects)
	}
	var errManager, errShares, errRelease, errZones error
	w.manager, errManager = machinedeployment.NewPreview(s.Machines, s.Reserve, o.seesTarget())
	w.shares, errShares = balancer.NewPreview(clients)
	if s.Instant && o.Target {
		w.release, errRelease = release.NewPreview(s.Release)
	}
	for _, d := range o.Deployments {
		if w.zones[d.Namespace] == nil && errZones == nil {
			w.zones[d.Namespace], errZones = balance.NewPreview(d.Namespace, s.Zones, o.seesTarget())
		}
	}
	if err := errors.Join(errManager, errShares, errRelease, errZones); err != nil {
		return nil, fmt.Errorf("begin a forecast: %w", err)
	}
	w.findFailingPools()
	return w, nil
}

func sameList(a, b []*corev1.Pod) bool {
	return len(a) == len(b) && (len(a) == 0 || a[0] == b[0])
}

// findFailingPools finds the MachineDeployments that cannot create machines.
func (w *world) findFailingPools() {
	for key, d := range w.deployments {
		for _, m := range w.machinesOf(d) {
			if m.Status.CurrentStatus.Phase == mcm.MachineCrashLoopBackOff && m.Spec.ProviderID == "" {
				w.unmade[key] = m.Status.LastOperation
				w.addNote("MachineDeployment %s: creating a machine failed (%s); the prediction assumes that no machine can be created", key, m.Status.LastOperation.ErrorCode)
			}
		}
	}
}

func (w *world) addNote(format string, args ...any) { w.notes[fmt.Sprintf(format, args...)] = true }

// machinesOf returns the machines of a MachineDeployment.
func (w *world) machinesOf(d *machine.MachineDeployment) []*mcm.Machine {
	var all []*mcm.Machine
	for _, set := range w.sets.ownedBy(d.UID) {
		all = append(all, w.machines.ownedBy(set.UID)...)
	}
	return all
}

// snapshot reads a MachineDeployment without its pods.
func (w *world) snapshot(d *machine.MachineDeployment) pool.Snapshot {
	return pool.Read(d, pool.NewList(pool.Objects{
		Sets: w.sets.sorted(), Machines: w.machines.sorted(), Classes: w.still.Classes, Nodes: w.nodes.sorted(),
	}), w.now)
}

// version returns a new resourceVersion, because plans refer to objects by version.
func (w *world) version() string {
	w.made++
	return strconv.Itoa(1_000_000_000 + w.made)
}

func (w *world) putDeployment(d *machine.MachineDeployment) {
	d = d.DeepCopy()
	d.ResourceVersion = w.version()
	w.deployments[keyOf(d)] = d
}

// runOnce runs each controller once. It reports whether anything changed, and when time alone
// changes something.
func (w *world) runOnce(ctx context.Context) (moved bool, again time.Duration, err error) {
	for _, act := range []func(context.Context) (bool, time.Duration, error){
		w.placeReserves, w.request, w.spread, w.manage, w.releaseForPods, w.balance, w.manage, w.advanceMachines,
	} {
		did, wait, err := act(ctx)
		if err != nil {
			return false, 0, err
		}
		moved, again = moved || did, requeue.Sooner(again, wait)
	}
	return moved, again, nil
}

// planAll makes the plans of all controllers and carries out nothing.
func (w *world) planAll(ctx context.Context) error {
	w.lookAtRequests()
	return errors.Join(w.lookAtBuffers(), w.lookAtZones(), w.lookAtMachines(), w.lookAtPods(), w.lookAtBalancers(ctx))
}

func inNamespace[T metav1.Object](namespace string, objects []T) []T {
	var all []T
	for _, o := range objects {
		if o.GetNamespace() == namespace {
			all = append(all, o)
		}
	}
	return all
}

// budgetsUnknown returns why PodDisruptionBudgets are not known; empty if they are.
func (w *world) budgetsUnknown() string { return w.still.Unread["poddisruptionbudgets"] }

func (w *world) lookAtZones() error {
	w.plans.zones = map[string]zonesPlan{}
	for namespace, preview := range w.zones {
		if err := preview.SetObjects(w.zoneObjects(namespace), w.now); err != nil {
			return err
		}
		v, p := preview.Plan()
		w.plans.zones[namespace] = zonesPlan{v, p}
	}
	return nil
}

// spread carries out the plans that keep zones even.
func (w *world) spread(context.Context) (moved bool, again time.Duration, err error) {
	if err := w.lookAtZones(); err != nil {
		return false, 0, err
	}
	for _, namespace := range slices.Sorted(maps.Keys(w.zones)) {
		p := w.plans.zones[namespace].Plan
		changed, err := balance.After(w.plans.zones[namespace].View, p)
		if err != nil {
			return false, 0, err
		}
		for _, d := range changed {
			w.putDeployment(d)
		}
		for _, o := range p.Outcomes {
			moved = moved || !o.Write.IsEmpty()
		}
		again = requeue.Sooner(again, p.Again)
	}
	return moved, again, nil
}

func (w *world) zoneObjects(namespace string) balance.Objects {
	o := balance.Objects{
		Nodes: w.nodes.sorted(), Pods: w.pods.sorted(), Budgets: w.still.Budgets, BudgetsUnknown: w.budgetsUnknown(), Claims: w.still.Claims, Volumes: w.still.Volumes,
		StorageClasses: w.still.storageClasses(), Drivers: w.still.Drivers, Devices: w.devices,
		Garden: w.still.Garden, Workers: inNamespace(namespace, w.still.Workers), Clusters: w.still.Clusters,
	}
	o.Deployments, o.Sets = inNamespace(namespace, w.deployments.sorted()), inNamespace(namespace, w.sets.sorted())
	o.Machines, o.Classes = inNamespace(namespace, w.machines.sorted()), w.still.Classes
	return o
}
