// SPDX-License-Identifier: Apache-2.0

package machinedeployment

import (
	"context"
	"errors"
	"fmt"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/stores"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// observe collects the view of a key. Where a store is behind the answers to our writes, the answers
// are used.
func (c *Controller) observe(ctx context.Context, k key) (plan.View, error) {
	v := plan.View{Now: c.clock.Now(), Settings: c.settings, Deployment: c.deploymentOf(k)}
	for _, set := range c.setsOf(k) {
		if err := c.resolve(ctx, k, set); err != nil {
			return v, err
		}
		v.Sets = append(v.Sets, plan.Set{Object: c.writtenSets.Newest(set)})
	}
	if v.Deployment != nil {
		v.OrphanSets = c.orphanSets(k.namespace)
		v.Others = c.others(v)
	}
	machines := c.machinesOf(v.Sets, k.namespace)
	if found, err := c.findCreated(ctx, k, v.Sets, machines); err != nil {
		return v, err
	} else if found {
		machines = c.machinesOf(v.Sets, k.namespace)
	}
	for i := range v.Sets {
		set := &v.Sets[i]
		set.Machines = machines[set.Object.UID]
		if k.kind != releaseKind { // another key may be about to use the names
			c.memory.forgetNames(set.Object.UID, func(name string) bool {
				return slices.ContainsFunc(set.Machines, func(m *mcm.Machine) bool { return m.Name == name })
			})
		}
	}
	v.Orphans = machines[""]
	if c.nodes != nil {
		var err error
		if v.Nodes, err = c.nodesOf(ctx, v); err != nil {
			return v, err
		}
	}
	if v.Deployment != nil && v.Deployment.DeletionTimestamp == nil {
		v.Reserve = c.reserveOf(v)
	}
	return v, nil
}

// deploymentOf returns the MachineDeployment of a key, nil if there is none.
func (c *Controller) deploymentOf(k key) *machine.MachineDeployment {
	if k.kind == setKind {
		return nil
	}
	d := stores.Find[machine.MachineDeployment](c.deployments, k.namespace+"/"+k.name)
	if d == nil {
		return nil
	}
	return c.writtenDeployments.Newest(d)
}

// keyOf returns the key of a MachineSet: that of the MachineDeployment that controls it, if that
// exists.
func (c *Controller) keyOf(set *mcm.MachineSet) key {
	if d := stores.Controller[machine.MachineDeployment](c.deployments, set); d != nil {
		return key{deploymentKind, d.Namespace, d.Name}
	}
	return key{setKind, set.Namespace, set.Name}
}

// setsOf returns the MachineSets that a key is about.
func (c *Controller) setsOf(k key) (all []*mcm.MachineSet) {
	for _, set := range c.candidates(k) {
		if set = c.writtenSets.Newest(set); c.keyOf(set) == k.ofSets() {
			all = append(all, set)
		}
	}
	return all
}

// candidates returns the MachineSets that may be among those of a key. Of those that have just been
// created or adopted, the store may not show that yet.
func (c *Controller) candidates(k key) []*mcm.MachineSet {
	if k.kind == setKind {
		if set := stores.Find[mcm.MachineSet](c.sets, k.namespace+"/"+k.name); set != nil {
			return []*mcm.MachineSet{set}
		}
		return nil
	}
	d := c.deploymentOf(k)
	if d == nil {
		return nil
	}
	all := append(stores.Indexed[*mcm.MachineSet](c.sets, stores.Orphans, k.namespace), c.writtenSets.Unseen()...)
	// What the store has shown since Unseen was asked is in the index.
	return unique(append(all, stores.Indexed[*mcm.MachineSet](c.sets, stores.ByOwner, string(d.UID))...))
}

// orphanSets returns the MachineSets of a namespace that nothing controls.
func (c *Controller) orphanSets(namespace string) (all []*mcm.MachineSet) {
	for _, set := range stores.Indexed[*mcm.MachineSet](c.sets, stores.Orphans, namespace) {
		if set = c.writtenSets.Newest(set); metav1.GetControllerOfNoCopy(set) == nil {
			all = append(all, set)
		}
	}
	return all
}

// others returns the other MachineDeployments that may adopt the MachineSets that nothing controls.
func (c *Controller) others(v plan.View) (all []*machine.MachineDeployment) {
	if len(v.OrphanSets) == 0 {
		return nil
	}
	for d := range stores.All[*machine.MachineDeployment](c.deployments) {
		if d.Namespace == v.Deployment.Namespace && d.UID != v.Deployment.UID {
			all = append(all, c.writtenDeployments.Newest(d))
		}
	}
	return all
}

// setsFor returns the MachineSets that a key may decide about.
func (c *Controller) setsFor(k key) []*mcm.MachineSet {
	all := c.setsOf(k)
	if d := c.deploymentOf(k); d != nil {
		for _, set := range c.orphanSets(k.namespace) {
			if selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector); err == nil && selector.Matches(labels.Set(set.Labels)) {
				all = append(all, set)
			}
		}
	}
	return all
}

// unique returns objects without those whose UID is among those before.
func unique[T metav1.Object](all []T) []T {
	seen := map[types.UID]bool{}
	return slices.DeleteFunc(all, func(o T) bool {
		was := seen[o.GetUID()]
		seen[o.GetUID()] = true
		return was
	})
}

// machinesOf returns the machines of MachineSets by the UID of the MachineSet, and those of the
// namespace that nothing controls by an empty one.
func (c *Controller) machinesOf(sets []plan.Set, namespace string) map[types.UID][]*mcm.Machine {
	candidates := append(stores.Indexed[*mcm.Machine](c.machines, stores.Orphans, namespace), c.writtenMachines.Unseen()...)
	// What the store has shown since Unseen was asked is in the index.
	for _, s := range sets {
		candidates = append(candidates, stores.Indexed[*mcm.Machine](c.machines, stores.ByOwner, string(s.Object.UID))...)
	}
	machines, seen := map[types.UID][]*mcm.Machine{}, map[types.UID]bool{}
	for _, m := range candidates {
		m = c.writtenMachines.Newest(m)
		if m.Namespace != namespace || seen[m.UID] || c.memory.isGone(m.UID) {
			continue
		}
		seen[m.UID] = true
		owner := types.UID("")
		if ref := metav1.GetControllerOfNoCopy(m); ref != nil {
			owner = ref.UID
		}
		machines[owner] = append(machines[owner], m)
	}
	return machines
}

// nodesOf returns the Nodes of machines: without a MachineDeployment, only those of failed ones, which
// may be preserved. It reads those that may have been written.
func (c *Controller) nodesOf(ctx context.Context, v plan.View) (map[string]*corev1.Node, error) {
	nodes := map[string]*corev1.Node{}
	for _, s := range v.Sets {
		for _, m := range s.Machines {
			if v.Deployment == nil && m.Status.CurrentStatus.Phase != mcm.MachineFailed {
				continue
			}
			node := stores.Find[corev1.Node](c.nodes, m.Labels[mcm.NodeLabelKey])
			if node == nil {
				continue
			}
			if err := c.resolveNode(ctx, node.Name); err != nil {
				return nil, err
			}
			nodes[node.Name] = c.writtenNodes.Newest(node)
		}
	}
	return nodes, nil
}

// resolveNode reads a Node that may have been written, unless the target cluster does not answer: then
// nothing is decided that depends on it.
func (c *Controller) resolveNode(ctx context.Context, name string) error {
	doubt := c.memory.doubtOf(name)
	if doubt == 0 {
		return nil
	}
	live, err := c.nodeClient.Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil:
		c.writtenNodes.Record(live)
	case !written.Answered(err) && c.target.Err() == nil:
		return fmt.Errorf("read node %s: %w", name, err)
	case !written.Answered(err):
		return nil
	}
	c.memory.endDoubt(name, doubt)
	return nil
}

// resolve reads a MachineSet that may have been written, because the sizes of others follow from its own,
// and its machines that may have been deleted: if one has been, another one must not be deleted in its
// place.
func (c *Controller) resolve(ctx context.Context, k key, set *mcm.MachineSet) error {
	var errs []error
	if k.kind != releaseKind && c.memory.takeUnsure(set.UID) { // a release depends on no size
		switch live, err := c.client.MachineSets(set.Namespace).Get(ctx, set.Name, metav1.GetOptions{}); {
		case err == nil:
			c.writtenSets.Record(live)
		case !written.Answered(err):
			c.memory.noteUnsure(set.UID)
			errs = append(errs, fmt.Errorf("read machine set %s: %w", set.Name, err))
		}
	}
	for _, m := range c.memory.doubtsAbout(set.UID) {
		if _, err := c.readMachine(ctx, m); !written.Answered(err) {
			errs = append(errs, err)
			continue
		}
		c.memory.forgetDoubt(set.UID, m)
	}
	return errors.Join(errs...)
}

// findCreated reads machines that may have been created, if their MachineSets are to have no more than are seen:
// they take room that others would be given. Otherwise, their names are used again, which shows it, too.
func (c *Controller) findCreated(ctx context.Context, k key, all []plan.Set, machines map[types.UID][]*mcm.Machine) (found bool, err error) {
	if k.kind == releaseKind { // a release depends on no size
		return false, nil
	}
	var errs []error
	for _, s := range all {
		if set := s.Object; int(set.Spec.Replicas) <= len(machines[set.UID]) {
			is, err := c.readNames(ctx, set)
			found, errs = found || is, append(errs, err)
		}
	}
	return found, errors.Join(errs...)
}

// readNames reads the machines of a MachineSet that may have been created.
func (c *Controller) readNames(ctx context.Context, set *mcm.MachineSet) (found bool, err error) {
	var errs []error
	for _, name := range c.memory.takeUnread(set.UID) {
		is, err := c.isCreated(ctx, set, name)
		found, errs = found || is, append(errs, err)
	}
	return found, errors.Join(errs...)
}

// isCreated reads a machine that may have been created for a MachineSet.
func (c *Controller) isCreated(ctx context.Context, set *mcm.MachineSet, name string) (bool, error) {
	live, err := c.client.Machines(set.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil && metav1.IsControlledBy(live, set):
		c.noteCreated(ctx, set, live)
		return true, nil
	case err == nil: // another one has this name
		c.memory.forgetNames(set.UID, func(one string) bool { return one == name })
	case !written.Answered(err):
		c.memory.noteUnread(set.UID, name)
		return false, fmt.Errorf("read machine %s: %w", name, err)
	}
	return false, nil
}

// readMachine reads a machine, and remembers what it has read. Another machine of the same name is
// not the one.
func (c *Controller) readMachine(ctx context.Context, m *mcm.Machine) (*mcm.Machine, error) {
	live, err := c.client.Machines(m.Namespace).Get(ctx, m.Name, metav1.GetOptions{})
	if err == nil {
		c.writtenMachines.Record(live)
		if live.UID != m.UID {
			err = apierrors.NewNotFound(machine.Resource("machines"), m.Name)
		}
	}
	if err != nil {
		if apierrors.IsNotFound(err) {
			c.memory.noteGone(m, c.isShown)
		}
		return nil, fmt.Errorf("read machine %s: %w", m.Name, err)
	}
	return live, nil
}

// isShown reports whether a machine is in the store, or will be.
func (c *Controller) isShown(m *mcm.Machine) bool { return isShown(c.machines, c.writtenMachines, m) }

// isSetShown reports whether a MachineSet is in the store, or will be.
func (c *Controller) isSetShown(s *mcm.MachineSet) bool { return isShown(c.sets, c.writtenSets, s) }

func isShown[T any, P interface {
	*T
	metav1.Object
}](store cache.Indexer, answers *written.Cache[P], o P) bool {
	same := func(other P) bool { return other.GetUID() == o.GetUID() }
	stored := P(stores.Find[T](store, o.GetNamespace()+"/"+o.GetName()))
	return stored != nil && same(stored) || slices.ContainsFunc(answers.Unseen(), same)
}
