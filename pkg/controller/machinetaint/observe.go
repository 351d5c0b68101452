// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"maps"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/keep"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// caches of both clusters. Those of the target cluster are nil if there is none.
type caches struct {
	deployments, sets, machines, classes cache.Indexer
	nodes, pods, budgets                 cache.Indexer
	// budgetsUnknown returns why budgets are not known; empty if they are.
	budgetsUnknown func() string
	// Those that machine-controller-manager's controllers see. These controllers write into the
	// specs there, so only metadata, status and replicas may be read.
	seenDeployments, seenMachines, seenSets cache.Indexer
}

// observe builds the view of a MachineDeployment. It is false if there is nothing to decide: the
// MachineDeployment is gone or being deleted, or the store does not show our last write yet, and
// its event causes the next sync. If a store is behind, Machines and Nodes are used as the API
// server returned them. Most MachineDeployments of most clusters have no reserve, and every change
// of theirs comes here: for them, only what shows that is read.
func (c *Controller) observe(key string) (keep.View, bool) {
	shown, found := c.stores.deployment(key)
	if !found || shown.DeletionTimestamp != nil {
		c.states.forgetDeployment(key)
		return keep.View{}, false
	}
	d := c.latest.external.Newest(shown)
	if !c.latest.deployments.UpToDate(d) || c.latest.seenLater(key, d) != nil {
		return keep.View{}, false
	}
	if d == shown && d.Spec.ExcessReplicas != nil {
		c.fieldPruned.Store(false)
	}
	if d == shown && d.Spec.ReserveWitness {
		c.witnessPruned.Store(false)
	}
	v := keep.View{Now: c.clock.Now(), Settings: c.settings, Deployment: d, Accounting: c.accountingOf(d)}
	v.Memory, v.Pruned, v.WitnessPruned = c.states.memory(d, v.Now), c.fieldPruned.Load(), c.witnessPruned.Load()
	s := pool.Outline(d, c.latest, v.Now)
	v.NamedGone = c.states.completeNames(d, s.Machines)
	if v.Machines = withoutPriorities(s.Machines); v.HasNoReserve() {
		return v, true
	}
	s.Complete(c.latest)
	v.Machines = c.withPriorities(s.Machines)
	v.CurrentSet, v.Rollout, v.Allocatable = s.Rollout.Set, s.Rollout.Replacing, s.Allocatable
	v.SetReplicas, v.MaxSetReplicas, v.Behind = c.compareSeen(d, v.Machines)
	if v.NeedsEvictions() && c.stores.nodes != nil {
		v.Evictions = c.evictions(key, v)
	}
	v.Unreachable, v.Unhealthy, v.Targetless = c.unreachable(), c.unhealthy(), c.stores.nodes == nil
	c.states.setDoubtful(key, v.Machines, v.Now)
	c.states.setOpened(key, v, c.latest)
	v.AllLeaving = c.allLeaving(d, s.Machines, v.NamedGone > 0)
	return v, true
}

// accountingOf returns where the reserve of a MachineDeployment is counted by default, empty to
// leave it where it is.
func (c *Controller) accountingOf(d *v1alpha1.MachineDeployment) pool.Accounting {
	if c.settings.Accounting == nil {
		return ""
	}
	return c.settings.Accounting(d)
}

func withoutPriorities(machines []pool.Machine) []keep.Machine {
	all := make([]keep.Machine, len(machines))
	for i, m := range machines {
		all[i].Machine = m
	}
	return all
}

// withPriorities adds the priorities that machine-controller-manager's store shows.
func (c *Controller) withPriorities(machines []pool.Machine) []keep.Machine {
	all := withoutPriorities(machines)
	for i, m := range all {
		shown := m.Object
		if seen := stores.Find[mcm.Machine](c.stores.seenMachines, shown.Namespace+"/"+shown.Name); seen != nil {
			shown = seen
		}
		all[i].SeenPriority = pool.Priority(shown)
	}
	return all
}

// unreachable returns why the target cluster does not respond, or that its caches have yet to show
// what happened meanwhile.
func (c *Controller) unreachable() string {
	if c.stores.nodes == nil {
		return ""
	}
	if err := c.cluster.Err(c.stores.nodes, c.stores.pods); err != nil {
		return err.Error()
	}
	return ""
}

// evictions reads which pods decide about a surplus.
func (c *Controller) evictions(key string, v keep.View) *keep.Evictions {
	e := &keep.Evictions{BudgetsUnknown: c.stores.budgetsUnknown(), Pods: map[string][]*corev1.Pod{}}
	if err := c.cluster.Err(c.stores.budgets); e.BudgetsUnknown == "" && err != nil {
		e.BudgetsUnknown = err.Error()
	}
	namespaces, chosen := map[string]bool{}, false
	for _, m := range v.Machines {
		if m.Reserve() || m.Leaving() || m.Node == nil {
			continue
		}
		chosen = chosen || m.Going()
		e.Pods[m.Object.Name] = c.latest.Pods(m.Node.Name)
		for _, pod := range e.Pods[m.Object.Name] {
			namespaces[pod.Namespace] = true
		}
	}
	e.Budgets = pool.BudgetsOf(slices.DeleteFunc(stores.List[*policyv1.PodDisruptionBudget](c.stores.budgets), func(b *policyv1.PodDisruptionBudget) bool {
		return !namespaces[b.Namespace]
	}))
	e.Expected = c.expectedEvictions(key, chosen, v.Now)
	return e
}

// expectedEvictions returns the pods on machines of other MachineDeployments that are about to go. If
// two MachineDeployments have chosen a machine at the same time, the first by name goes on with it.
func (c *Controller) expectedEvictions(key string, chosen bool, now time.Time) (pods []*corev1.Pod) {
	for d := range stores.All[*v1alpha1.MachineDeployment](c.stores.deployments) {
		if keyOf(d) == key {
			continue
		}
		for _, m := range pool.Outline(d, c.latest, now).Machines {
			if m.Node != nil && m.Going() && (m.Leaving() || !chosen || keyOf(d) < key) {
				pods = append(pods, c.latest.Pods(m.Node.Name)...)
			}
		}
	}
	return pods
}

// unhealthy reports whether many Nodes of the target cluster are not ready, whatever they belong
// to.
func (c *Controller) unhealthy() bool {
	if c.stores.nodes == nil {
		return false
	}
	return c.settings.Unready.Exceeded(target.CountUnready(c.stores.nodes))
}

// compareSeen compares with what machine-controller-manager has seen.
func (c *Controller) compareSeen(d *v1alpha1.MachineDeployment, machines []keep.Machine) (least, most int, behind bool) {
	c.states.locked(keyOf(d), func(s *state) { least, most = s.totalReplicas(c.latest.seenSets(d), c.clock.Now()) })
	seen, here := map[types.UID]bool{}, map[types.UID]bool{}
	for _, m := range c.latest.seenMachines(d) {
		seen[m.UID] = pool.BeingDeleted(m)
	}
	for _, m := range machines {
		here[m.Object.UID] = pool.BeingDeleted(m.Object)
	}
	return least, most, !maps.Equal(seen, here)
}

// forceDeletion is the label with which Gardener deletes machines without a drain, before a cluster
// hibernates or is deleted.
const forceDeletion = "force-deletion"

// allLeaving reports whether the cluster hibernates, so that nothing in the namespace has replicas,
// or is being deleted, so that all machines have the label for that. If replicas include the
// reserve, it is deleted, too. A client that names a reserve machine may lower replicas to 0 as
// well, but they are restored, also if the machine is gone.
func (c *Controller) allLeaving(d *v1alpha1.MachineDeployment, machines []pool.Machine, namedGone bool) bool {
	forced := len(machines) > 0
	for _, m := range machines {
		forced = forced && m.Object.Labels[forceDeletion] == "True"
	}
	if forced || d.Spec.Replicas > 0 || namedGone || reserveNamed(d, machines) {
		return forced
	}
	for _, item := range c.stores.deployments.List() {
		if other, ok := item.(*v1alpha1.MachineDeployment); ok && other.Namespace == d.Namespace && other.Spec.Replicas > 0 {
			return false
		}
	}
	return true
}

// reserveNamed reports whether a reserve machine is named for deletion, and replicas may still have
// to be restored for it.
func reserveNamed(d *v1alpha1.MachineDeployment, machines []pool.Machine) bool {
	settled := keep.Returned(d)
	return slices.ContainsFunc(machines, func(m pool.Machine) bool {
		return m.Named && m.Marked() && !settled[m.Object.Name]
	})
}

// ownedBy returns what an object controls.
func ownedBy[T metav1.Object](store cache.Indexer, owner metav1.Object) []T {
	return stores.Indexed[T](store, stores.ByOwner, string(owner.GetUID()))
}

func (s caches) deployment(key string) (*v1alpha1.MachineDeployment, bool) {
	d := stores.Find[v1alpha1.MachineDeployment](s.deployments, key)
	return d, d != nil
}

// deploymentOf finds the key of the MachineDeployment of a Machine through its MachineSet.
func (s caches) deploymentOf(m *mcm.Machine) (string, bool) {
	owner := metav1.GetControllerOfNoCopy(m)
	if owner == nil || owner.Kind != "MachineSet" {
		return "", false
	}
	set := stores.Find[mcm.MachineSet](s.sets, m.Namespace+"/"+owner.Name)
	if set == nil {
		return "", false
	}
	return keyOfSet(set)
}

// keyOf returns the key of an object in stores and queues.
func keyOf(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

func keyOfSet(set *mcm.MachineSet) (string, bool) {
	owner := metav1.GetControllerOfNoCopy(set)
	if owner == nil || owner.Kind != "MachineDeployment" {
		return "", false
	}
	return set.Namespace + "/" + owner.Name, true
}

// deploymentsOfNode finds the keys of the MachineDeployments whose Machines have this Node name.
// There may be more than one: see [pool.IsNodeOf].
func (s caches) deploymentsOfNode(name string) (keys []string) {
	for _, m := range stores.Indexed[*mcm.Machine](s.machines, stores.ByNode, name) {
		if key, found := s.deploymentOf(m); found {
			keys = append(keys, key)
		}
	}
	return keys
}

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
