// SPDX-License-Identifier: Apache-2.0

package machinedeployment

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// reserves reads what decides about reserves, and remembers what no object shows of them.
type reserves struct {
	settings machinetaint.Settings
	classes  cache.Indexer
	// pods and budgets are nil if there is no target cluster. budgetsUnknown returns why budgets are not
	// known; empty if they are.
	pods, budgets  cache.Indexer
	podsFilled     func() bool
	budgetsUnknown func() string
	// devices counts the devices of Nodes; nil if there is no target cluster. devicesAwaited reports whether
	// those of some classes will soon be known.
	devices        pool.DeviceCounter
	devicesAwaited func(classes []string) bool

	metrics *reserveMetrics

	mu       sync.Mutex
	memories map[types.UID]machinetaint.Memory
}

// newReserves returns reserves with these settings, of which nothing is remembered.
func newReserves(s machinetaint.Settings) *reserves {
	s.SurplusPatience = cmp.Or(s.SurplusPatience, machinetaint.DefaultSurplusPatience)
	if len(s.Effects) == 0 {
		s.Effects = []corev1.TaintEffect{corev1.TaintEffectNoSchedule}
	}
	return &reserves{settings: s, devicesAwaited: func([]string) bool { return false }, memories: map[types.UID]machinetaint.Memory{}}
}

// memory returns what is remembered of a MachineDeployment.
func (r *reserves) memory(d types.UID) machinetaint.Memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.memories[d]
}

// remember keeps what is to be remembered of a MachineDeployment.
func (r *reserves) remember(d types.UID, m *machinetaint.Memory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if delete(r.memories, d); m != nil {
		r.memories[d] = *m
	}
}

// source reads the machines of a view for package pool.
type source struct {
	*Controller
	view     plan.View
	machines map[types.UID][]*mcm.Machine
}

func newSource(c *Controller, v plan.View) source {
	s := source{c, v, map[types.UID][]*mcm.Machine{}}
	for _, set := range v.Sets {
		s.machines[set.Object.UID] = set.Machines
	}
	return s
}

// Sets implements [pool.Source].
func (s source) Sets(types.UID) (sets []*mcm.MachineSet) {
	for _, set := range s.view.Sets {
		sets = append(sets, set.Object)
	}
	return sets
}

// Machines implements [pool.Source].
func (s source) Machines(set types.UID) []*mcm.Machine { return s.machines[set] }

// Class implements [pool.Source].
func (s source) Class(namespace, name string) *mcm.MachineClass {
	return stores.Find[mcm.MachineClass](s.reserves.classes, namespace+"/"+name)
}

// Node implements [pool.Source].
func (s source) Node(name string) *corev1.Node { return s.view.Nodes[name] }

// Pods implements [pool.Source].
func (s source) Pods(node string) []*corev1.Pod {
	return stores.Indexed[*corev1.Pod](s.reserves.pods, stores.ByNode, node)
}

// Devices implements [pool.Source].
func (s source) Devices(node, class string) (n int, unknown string) {
	if s.reserves.devices == nil {
		return 0, ""
	}
	return s.reserves.devices.Count(node, class)
}

// reserveOf returns what decides about the reserve of a MachineDeployment, nil if there is none and nobody
// asks for one. Most MachineDeployments have none: for them, no pod is read.
func (c *Controller) reserveOf(v plan.View) *machinetaint.View {
	r, d := c.reserves, v.Deployment
	from := newSource(c, v)
	one := machinetaint.View{Now: v.Now, Settings: r.settings, Deployment: d, Targetless: c.nodes == nil, Unclosable: c.memory.unclosableNodes(), Memory: r.memory(d.UID)}
	c.pruned.observe(d)
	one.Pruned, one.WitnessPruned = c.pruned.field.Load(), c.pruned.witness.Load()
	if r.settings.Accounting != nil {
		one.Accounting = r.settings.Accounting(d)
	}
	s := pool.Outline(d, from, v.Now)
	one.Machines = asKept(s.Machines)
	if one.HasNoReserve() {
		return nil
	}
	s.Complete(from)
	one.Machines = asKept(s.Machines)
	one.AllLeaving = c.allLeaving(d, one.Machines)
	for _, set := range s.Sets {
		one.SetReplicas += int(set.Spec.Replicas)
	}
	one.CurrentSet, one.Rollout, one.Allocatable, one.Unknown = s.Rollout.Set, s.Rollout.Replacing, s.Allocatable, s.Unknown
	if c.nodes == nil {
		return &one
	}
	if err := c.target.Err(c.nodes, r.pods); err != nil {
		one.Unreachable = err.Error()
	} else if !r.podsFilled() {
		one.Unreachable = "the pods of the target cluster have not been read yet"
	}
	one.Unhealthy = r.settings.Unready.Exceeded(target.CountUnready(c.nodes))
	if one.NeedsEvictions() {
		one.Evictions = c.evictions(one)
	}
	return &one
}

// forceDeletion is the label with which Gardener deletes machines without a drain, before a cluster
// hibernates or is deleted.
const forceDeletion = "force-deletion"

// allLeaving reports whether the cluster hibernates, so that nothing in the namespace has replicas, or is
// being deleted, so that all machines have the label for that. A client that names a reserve machine may
// lower replicas to 0 as well, but they are restored.
func (c *Controller) allLeaving(d *machine.MachineDeployment, machines []machinetaint.Machine) bool {
	unforced := func(m machinetaint.Machine) bool { return m.Object.Labels[forceDeletion] != "True" }
	forced := len(machines) > 0 && !slices.ContainsFunc(machines, unforced)
	if forced || d.Spec.Replicas > 0 || machinetaint.NamedSpares(d, machines) > 0 {
		return forced
	}
	for other := range stores.All[*machine.MachineDeployment](c.deployments) {
		if other.Namespace == d.Namespace && other.Spec.Replicas > 0 {
			return false
		}
	}
	return true
}

func asKept(machines []pool.Machine) []machinetaint.Machine {
	all := make([]machinetaint.Machine, len(machines))
	for i, m := range machines {
		all[i].Machine = m
	}
	return all
}

// evictions reads which pods decide about a surplus.
func (c *Controller) evictions(v machinetaint.View) *machinetaint.Evictions {
	r := c.reserves
	e := &machinetaint.Evictions{BudgetsUnknown: r.budgetsUnknown(), Pods: map[string][]*corev1.Pod{}}
	if err := c.target.Err(r.budgets); e.BudgetsUnknown == "" && err != nil {
		e.BudgetsUnknown = err.Error()
	}
	namespaces := map[string]bool{}
	for _, m := range v.Machines {
		if m.Reserve() || m.Leaving() || m.Node == nil {
			continue
		}
		e.Pods[m.Object.Name] = stores.Indexed[*corev1.Pod](r.pods, stores.ByNode, m.Node.Name)
		for _, pod := range e.Pods[m.Object.Name] {
			namespaces[pod.Namespace] = true
		}
	}
	e.Budgets = pool.BudgetsOf(slices.DeleteFunc(stores.List[*policyv1.PodDisruptionBudget](r.budgets), func(b *policyv1.PodDisruptionBudget) bool {
		return !namespaces[b.Namespace]
	}))
	for d := range stores.All[*machine.MachineDeployment](c.deployments) {
		if d.UID != v.Deployment.UID {
			e.Expected = append(e.Expected, c.leavingPods(d)...)
		}
	}
	return e
}

// leavingPods returns the pods on machines of a MachineDeployment that are leaving.
func (c *Controller) leavingPods(d *machine.MachineDeployment) (pods []*corev1.Pod) {
	for _, set := range stores.Indexed[*mcm.MachineSet](c.sets, stores.ByOwner, string(d.UID)) {
		for _, m := range stores.Indexed[*mcm.Machine](c.machines, stores.ByOwner, string(set.UID)) {
			if m = c.writtenMachines.Newest(m); m.Labels[mcm.NodeLabelKey] != "" && (pool.BeingDeleted(m) || pool.Condemned(m)) {
				pods = append(pods, stores.Indexed[*corev1.Pod](c.reserves.pods, stores.ByNode, m.Labels[mcm.NodeLabelKey])...)
			}
		}
	}
	return pods
}

// release begins to take machines out of the reserve, and does nothing else of the plan: workload does not
// wait until machines have been created and deleted, nor until those released before have been written.
// What fails is done with the rest of the plan.
func (c *Controller) release(ctx context.Context, k key) error {
	v, err := c.observe(ctx, k)
	if err != nil || v.Reserve == nil {
		return err
	}
	p := c.decide(ctx, v)
	a := newApplication(c, v)
	leaving := takeMoves(&p, leaves)
	c.releasing.Go(func() {
		defer func() {
			if value := recover(); value != nil {
				c.panicked(k.String(), value)
			}
		}()
		err := a.free(ctx, leaving)
		if a.announceMoves(p.Moves); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).V(2).Info("Trying again", "because", err)
			c.add(key{deploymentKind, k.namespace, k.name})
		}
	})
	return nil
}

// moves are machines that enter or leave the reserve, with the changes of their Nodes, by name.
type moves struct {
	machines []plan.MachineChange
	nodes    map[string]plan.NodeChange
}

// takeMoves takes moves out of a plan.
func takeMoves(p *plan.Plan, which func(plan.MachineChange) bool) moves {
	of := moves{nodes: map[string]plan.NodeChange{}}
	of.machines, p.Machines = split(p.Machines, which)
	names := map[string]bool{}
	for _, m := range of.machines {
		names[m.Before.Labels[mcm.NodeLabelKey]] = true
	}
	var theirs []plan.NodeChange
	theirs, p.Nodes = split(p.Nodes, func(n plan.NodeChange) bool { return names[n.Before.Name] })
	for _, n := range theirs {
		of.nodes[n.Before.Name] = n
	}
	return of
}

// leaves reports whether a machine leaves the reserve.
func leaves(m plan.MachineChange) bool { return pool.Marked(m.Before) && !pool.Marked(m.After) }

// enters reports whether a machine that served is put into the reserve.
func enters(m plan.MachineChange) bool { return !pool.Marked(m.Before) && pool.Marked(m.After) }

// stays reports whether a machine is in reserve before and after.
func stays(m plan.MachineChange) bool { return pool.Marked(m.Before) && pool.Marked(m.After) }

// nodeOf returns the change of the Node of a machine, if there is one.
func (all moves) nodeOf(m *mcm.Machine) (change plan.NodeChange, has bool) {
	change, has = all.nodes[m.Labels[mcm.NodeLabelKey]]
	return change, has && pool.IsNodeOf(m, change.Before)
}

// inFlight is how long requests may be under way that an earlier process has sent.
const inFlight = time.Minute

// free takes machines out of the reserve, unless another key does that already. If a request is under way
// that deletes one of them, it fails once its Machine has been written, and only then is its Node opened.
// Otherwise, none begins until both are written. An earlier process may have sent such a request, too.
func (a *application) free(ctx context.Context, leaving moves) error {
	return inParallel(leaving.machines, func(m plan.MachineChange) error {
		if !a.memory.beginMove(m.Before.UID) {
			a.elsewhere.Store(true)
			return nil
		}
		defer a.memory.endMove(m.Before.UID)
		n, has := leaving.nodeOf(m.Before)
		if has && a.clock.Since(a.begun) >= inFlight && a.memory.beginOpening(m.Before.UID) {
			defer a.memory.endOpening(m.Before.UID)
			if pool.BeingDeleted(a.writtenMachines.Newest(m.Before)) || a.memory.isGone(m.Before.UID) {
				return conflictError("machines", m.Before.Name, "it has been deleted since it was read")
			}
			if err := a.open(ctx, n); err != nil {
				return err
			}
			has = false
		}
		if err := a.patchMachine(ctx, m.Before, m.After); err != nil || !has {
			return err
		}
		return a.open(ctx, n)
	})
}

// hold writes machines that stay in reserve: what a Machine says of its Node is written once it is true.
func (a *application) hold(ctx context.Context, held moves) error {
	return inParallel(held.machines, func(m plan.MachineChange) error {
		if n, has := held.nodeOf(m.Before); has {
			if err := a.changeNode(ctx, n); err != nil {
				return err
			}
		}
		return a.patchMachine(ctx, m.Before, m.After)
	})
}

// closeAndMark puts machines into the reserve that served: each Node is closed first, and its pods are
// read once more before its Machine is marked.
func (a *application) closeAndMark(ctx context.Context, entering moves) error {
	return inParallel(entering.machines, func(m plan.MachineChange) error {
		if n, has := entering.nodeOf(m.Before); has {
			if err := a.changeNode(ctx, n); err != nil {
				return err
			}
		}
		if err := a.confirmEmpty(ctx, m.After); err != nil {
			return err
		}
		return a.patchMachine(ctx, m.Before, m.After)
	})
}

// split returns the items of which something is true, and the others.
func split[T any](all []T, is func(T) bool) (those, others []T) {
	for _, item := range all {
		if is(item) {
			those = append(those, item)
		} else {
			others = append(others, item)
		}
	}
	return those, others
}

// confirmEmpty returns a conflict if a pod runs on the Node of a machine in reserve: the cache of pods may
// be late.
func (a *application) confirmEmpty(ctx context.Context, m *mcm.Machine) error {
	node := m.Labels[mcm.NodeLabelKey]
	if !pool.Marked(m) || node == "" || a.podClient == nil {
		return nil
	}
	if shown := a.view.Nodes[node]; shown != nil && !pool.IsNodeOf(m, shown) {
		return nil // another machine has the name now
	}
	pods, err := a.podClient.List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return fmt.Errorf("list pods of node %s: %w", node, err)
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; occupies(pod, m) {
			return conflictError("machines", m.Name, "pod %s/%s runs on its node", pod.Namespace, pod.Name)
		}
	}
	return nil
}

// occupies reports whether a pod on the Node of a machine in reserve must not be there.
func occupies(pod *corev1.Pod, m *mcm.Machine) bool {
	return pool.IsWorkload(pod) && !pool.ToleratesReserve(pod, pool.ReserveEffects(m))
}

// confirmGoing returns a conflict if a pod runs on the Node of a machine in reserve, or may come, because the
// Node has been opened since it was looked at, or may have been. One that cannot be closed has to be open.
func (a *application) confirmGoing(ctx context.Context, m *mcm.Machine) error {
	if a.podClient != nil && pool.Marked(m) {
		node := stores.Find[corev1.Node](a.nodes, m.Labels[mcm.NodeLabelKey])
		if node != nil && pool.IsNodeOf(m, node) && a.mayBeOpen(node) {
			return conflictError("machines", m.Name, "its node may be open")
		}
	}
	return a.confirmEmpty(ctx, m)
}

// mayBeOpen reports whether pods may come to a Node of the reserve that can be closed.
func (a *application) mayBeOpen(node *corev1.Node) bool {
	closed := pool.HasReserveTaint(a.writtenNodes.Newest(node).Spec.Taints) && a.memory.doubtOf(node.Name) == 0
	return !closed && !a.memory.unclosableNodes()[node.Name]
}
