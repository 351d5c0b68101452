// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/keep"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
	"github.com/evenkeel/evenkeel/pkg/written"
)

const (
	// maxParallel is how many machines are written at the same time.
	maxParallel = 16
	// nodeAttempts bounds how often a Node is read again because another client wrote it meanwhile:
	// kubelets do so all the time.
	nodeAttempts = 5
)

// applyPlan carries out a plan. First it writes restored replicas, so that they are restored only
// once; then each machine, the Node before the Machine; then the annotations for
// machine-controller-manager. These wait until the next sync if machines were released: while pods
// wait for these, more may be needed already. They do not wait if a machine could not be written,
// so that they are not delayed forever. It returns the MachineDeployment after the writes.
func (c *Controller) applyPlan(ctx context.Context, v keep.View, p keep.Plan) (*v1alpha1.MachineDeployment, error) {
	d, change := v.Deployment, p.Deployment
	var err error
	if len(p.Rule.Returned) > 0 {
		if d, err = c.resizeDeployment(ctx, v, p); err != nil {
			return d, err
		}
		change = keep.DeploymentChange{}
	}
	machinesErr := c.writeMachines(ctx, v, p)
	if releasesMachines(p) && machinesErr == nil {
		return d, nil
	}
	if !change.IsEmpty() {
		d, err = c.resizeDeployment(ctx, v, p)
	}
	if err == nil {
		c.announceShrink(d, v.Memory.AppliedTo(v.Deployment), p.Rule.Applied)
	}
	return d, errors.Join(machinesErr, err)
}

// releasesMachines reports whether machines leave the reserve.
func releasesMachines(p keep.Plan) bool {
	return slices.ContainsFunc(p.Machines, func(c keep.MachineChange) bool { return c.Mark == keep.Free })
}

// writeMachine changes one Machine, and its Node first if that changes. The Node of a machine that
// enters the reserve is closed first, and its pods are read once more, since what was seen of them
// may be old. A priority does not depend on the Node: the reserve can be removed also where a policy
// refuses the taint. If the machine may be being deleted, its Node is opened only after the Machine was
// written, which makes deletions of the earlier version fail.
func (c *Controller) writeMachine(ctx context.Context, v keep.View, change keep.MachineChange, n keep.NodeChange, withNode bool) error {
	before := v.MachineByName(change.Name).Object
	if change.Mark == keep.Free {
		defer c.guards.release(keyOf(v.Deployment), before.UID)()
		if withNode && c.guards.mayBeRemoved(keyOf(v.Deployment), before) {
			if err := c.patchMachine(ctx, v, before, change); err != nil {
				return err
			}
			return c.openNode(ctx, v, n)
		}
	}
	if withNode {
		switch err := c.openNode(ctx, v, n); {
		case err != nil && change.Mark == keep.Keep && change.Priority != 0:
			change.State = nil // it would tell what the Node has
			return errors.Join(err, c.patchMachine(ctx, v, before, change))
		case err != nil:
			return err
		}
	}
	if change.Mark == keep.Hold {
		if err := c.checkEmpty(ctx, before); err != nil {
			return err
		}
	}
	return c.patchMachine(ctx, v, before, change)
}

// openNode writes the Node of a machine, and measures how long its release took.
func (c *Controller) openNode(ctx context.Context, v keep.View, n keep.NodeChange) error {
	err := c.writeNode(ctx, keyOf(v.Deployment), n)
	if err == nil && !n.Hold {
		c.metrics.observeRelease(c.clock.Since(v.Now))
	}
	return err
}

func (c *Controller) patchMachine(ctx context.Context, v keep.View, before *mcm.Machine, change keep.MachineChange) error {
	after := v.Changed(change)
	answer, err := c.clients.Machine.Machines(before.Namespace).Patch(ctx, before.Name, types.MergePatchType, machinePatch(before, after), metav1.PatchOptions{})
	c.metrics.countWrite("machine", err)
	if change.Mark == keep.Hold && written.Outcome(err) == written.Unknown {
		c.states.noteDoubt(keyOf(v.Deployment), before, c.clock.Now())
	}
	if err != nil {
		return fmt.Errorf("write machine %s: %w", before.Name, err)
	}
	c.countRedundant(before.ResourceVersion, answer.ResourceVersion)
	c.latest.machines.Record(answer)
	klog.FromContext(ctx).V(2).Info("Wrote machine", "machine", before.Name, "why", change.Why, "held", change.Mark == keep.Hold, "freed", change.Mark == keep.Free, "priority", change.Priority)
	c.announce(answer, change)
	return nil
}

// checkEmpty returns a conflict if pods run on a machine that seemed to be empty.
func (c *Controller) checkEmpty(ctx context.Context, m *mcm.Machine) error {
	node := m.Labels[mcm.NodeLabelKey]
	if c.clients.Target == nil || node == "" {
		return nil
	}
	if n := c.latest.Node(node); n != nil && !pool.IsNodeOf(m, n) {
		return nil // they are another machine's pods
	}
	return c.checkPods(ctx, m, node, pool.IsWorkload)
}

// checkVictims returns a conflict if workload runs on a machine that is to be deleted as one of the
// reserve. A pod may have been bound shortly before its Node got the taint, and no pod is bound after
// that: the pods are read once more unless the store shows all that there were then.
func (c *Controller) checkVictims(ctx context.Context, v keep.View, victims []reserve.Victim) error {
	for _, victim := range victims {
		m := v.MachineByName(victim.Name)
		if !m.Reserve() || m.Node == nil || c.latest.showsLastPods(m.Node.Name) {
			continue
		}
		effects := pool.ReserveEffects(m.Object)
		serves := func(pod *corev1.Pod) bool { return pool.IsWorkload(pod) && !pool.ToleratesReserve(pod, effects) }
		if err := c.checkPods(ctx, m.Object, m.Node.Name, serves); err != nil {
			return err
		}
	}
	return nil
}

// checkPods returns a conflict if such a pod runs on the Node of a machine.
func (c *Controller) checkPods(ctx context.Context, m *mcm.Machine, node string, such func(*corev1.Pod) bool) error {
	pods, err := c.clients.Target.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return fmt.Errorf("list pods of node %s: %w", node, err)
	}
	if i := slices.IndexFunc(pods.Items, func(pod corev1.Pod) bool { return such(&pod) }); i >= 0 {
		pod := pods.Items[i]
		return conflictError("machines", m.Name, "pod %s/%s runs on its node", pod.Namespace, pod.Name)
	}
	return nil
}

// writeNode marks a Node or removes its mark. If another client, usually the kubelet, has written
// the Node meanwhile, the change is computed again.
func (c *Controller) writeNode(ctx context.Context, key string, n keep.NodeChange) error {
	nodes := c.clients.Target.CoreV1().Nodes()
	for attempt := 1; ; attempt++ {
		node := n.Machine.Node
		answer, err := nodes.Patch(ctx, node.Name, types.MergePatchType, nodePatch(n), metav1.PatchOptions{})
		c.metrics.countWrite("node", err)
		c.followOpening(key, n, err)
		switch {
		case err == nil:
			c.countRedundant(node.ResourceVersion, answer.ResourceVersion)
			c.latest.nodes.Record(answer)
			klog.FromContext(ctx).V(2).Info("Wrote node", "node", node.Name, "held", n.Hold)
			return nil
		case !apierrors.IsConflict(err) || attempt == nodeAttempts:
			return written.IgnoreNotFound(fmt.Errorf("write node %s: %w", node.Name, err))
		}
		if node, err = nodes.Get(ctx, node.Name, metav1.GetOptions{}); err != nil {
			return written.IgnoreNotFound(fmt.Errorf("read node %s: %w", n.Machine.Node.Name, err))
		}
		c.latest.nodes.Record(node)
		again, differs := n.Rebase(node, c.settings, c.clock.Now())
		if !differs || !pool.IsNodeOf(n.Machine.Object, node) {
			return nil
		}
		n = again
	}
}

// followOpening remembers that a write may have opened a Node, until it is closed or cannot be.
func (c *Controller) followOpening(key string, n keep.NodeChange, err error) {
	machine := n.Machine.Object.UID
	switch {
	case !n.Hold && !ineffective(err):
		c.states.noteOpening(key, machine, n.Machine.Node, c.clock.Now())
	case n.Hold && written.Outcome(err) == written.Refused:
		c.states.forgetOpening(key, machine)
	}
}

// resizeDeployment changes the MachineDeployment. If it shows fewer machines afterwards, its
// MachineSets do not grow meanwhile.
func (c *Controller) resizeDeployment(ctx context.Context, v keep.View, p keep.Plan) (*v1alpha1.MachineDeployment, error) {
	d, shown := v.Deployment, pool.VisibleReplicas(p.Rule.Replicas, p.Rule.Applied)
	if shown >= v.Memory.Visible(d) {
		return c.writeDeployment(ctx, d, p.Deployment)
	}
	if err := c.checkVictims(ctx, v, p.Rule.Victims); err != nil {
		return d, err
	}
	ended, err := c.guards.reduce(d, shown, v.MaxSetReplicas)
	if err != nil {
		return d, err
	}
	answer, err := c.writeDeployment(ctx, d, p.Deployment)
	ended(err)
	return answer, err
}

// writeDeployment changes the MachineDeployment, except for its status.
func (c *Controller) writeDeployment(ctx context.Context, d *v1alpha1.MachineDeployment, change keep.DeploymentChange) (*v1alpha1.MachineDeployment, error) {
	answer, err := c.clients.Machine.MachineDeployments(d.Namespace).Patch(ctx, d.Name, types.MergePatchType, deploymentPatch(d, change), metav1.PatchOptions{FieldManager: keep.FieldManager})
	c.metrics.countWrite("machinedeployment", err)
	switch {
	case written.Outcome(err) == written.Unknown:
		return d, fmt.Errorf("write machine deployment %s: %w: %w", d.Name, errUnknown, err)
	case err != nil:
		return d, fmt.Errorf("write machine deployment %s: %w", d.Name, err)
	}
	c.countRedundant(d.ResourceVersion, answer.ResourceVersion)
	c.latest.deployments.Record(answer)
	klog.FromContext(ctx).V(2).Info("Wrote machine deployment", "replicas", change.Replicas, "field", change.Field, "annotations", change.Annotations)
	c.announceField(answer, change)
	return answer, nil
}

// announceField records as an event what became of a field that was removed. If the API server does
// not store what was written, the status is to say so.
func (c *Controller) announceField(d *v1alpha1.MachineDeployment, change keep.DeploymentChange) {
	pruned := change.Field != nil && d.Spec.ExcessReplicas == nil
	if pruned {
		c.fieldPruned.Store(true)
	}
	witnessPruned := change.Witness != nil && *change.Witness && !d.Spec.ReserveWitness
	if witnessPruned {
		c.witnessPruned.Store(true)
	}
	if pruned || witnessPruned {
		c.loop.Add(keyOf(d))
	}
	switch {
	case change.Restored && !pruned:
		c.metrics.restored.Inc()
		c.recorder.Eventf(v1alpha1.ReferenceTo(d), corev1.EventTypeNormal, "ExcessRestored",
			"spec.excessReplicas was removed and has been restored to %d; set it to 0 to disable the reserve", *change.Field)
	case change.Removed:
		c.recorder.Event(v1alpha1.ReferenceTo(d), corev1.EventTypeNormal, "ExcessRemoved", "spec.excessReplicas was removed, which means 0")
	}
}

// errUnknown is part of an error if a write of a MachineDeployment may have taken effect.
var errUnknown = errors.New("its outcome is unknown")

// countRedundant counts a write that changed nothing.
func (c *Controller) countRedundant(before, after string) {
	if before == after {
		c.metrics.redundant.Inc()
	}
}

// All writes are merge patches on the version that they were decided on, so fields that this
// program does not know are kept.

type tree = map[string]any

// machinePatch returns the differences of a Machine: annotations, and taints and annotations of its
// node template.
func machinePatch(before, after *mcm.Machine) []byte {
	patch := guarded(before.ResourceVersion, mapPatch(before.Annotations, after.Annotations))
	was, is := before.Spec.NodeTemplateSpec, after.Spec.NodeTemplateSpec
	template := tree{}
	if !slices.EqualFunc(was.Spec.Taints, is.Spec.Taints, fit.SameTaint) {
		template["spec"] = tree{"taints": orNullList(is.Spec.Taints)}
	}
	if d := mapPatch(was.Annotations, is.Annotations); len(d) > 0 {
		template["metadata"] = tree{"annotations": d}
	}
	if len(template) > 0 {
		patch["spec"] = tree{"nodeTemplate": template}
	}
	return encode(patch)
}

func nodePatch(n keep.NodeChange) []byte {
	annotations := tree{}
	for key, value := range n.Annotations {
		annotations[key] = orNull(value)
	}
	patch := guarded(n.Machine.Node.ResourceVersion, annotations)
	if !slices.EqualFunc(n.Taints, n.Machine.Node.Spec.Taints, fit.SameTaint) {
		patch["spec"] = tree{"taints": orNullList(n.Taints)}
	}
	return encode(patch)
}

func deploymentPatch(d *v1alpha1.MachineDeployment, change keep.DeploymentChange) []byte {
	annotations := tree{}
	for key, value := range change.Annotations {
		annotations[key] = orNull(value)
	}
	spec := tree{}
	if change.Replicas != 0 {
		spec["replicas"] = d.Spec.Replicas + int32(change.Replicas)
	}
	if change.Field != nil {
		spec["excessReplicas"] = *change.Field
	}
	if change.Witness != nil {
		spec["reserveWitness"] = orNull(*change.Witness)
	}
	patch := guarded(d.ResourceVersion, annotations)
	if len(spec) > 0 {
		patch["spec"] = spec
	}
	if metadata, is := patch["metadata"].(tree); is && change.Managed != nil {
		metadata["managedFields"] = change.Managed
	}
	return encode(patch)
}

// statusPatch replaces all conditions, which is safe because of the version.
func statusPatch(d *v1alpha1.MachineDeployment, s v1alpha1.MachineDeploymentStatus) []byte {
	patch := guarded(d.ResourceVersion, nil)
	patch["status"] = tree{
		"excessReplicas": orNull(s.ExcessReplicas), "readyExcessReplicas": orNull(s.ReadyExcessReplicas),
		"selector": orNull(s.Selector), "conditions": orNullList(s.Conditions),
	}
	return encode(patch)
}

func guarded(version string, annotations tree) tree {
	metadata := tree{"resourceVersion": version}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	return tree{"metadata": metadata}
}

// mapPatch returns a merge patch from one map to another.
func mapPatch(was, is map[string]string) tree {
	d := tree{}
	for key := range was {
		if _, there := is[key]; !there {
			d[key] = nil
		}
	}
	for key, value := range is {
		if old, there := was[key]; !there || old != value {
			d[key] = value
		}
	}
	return d
}

// orNull returns null, which removes a field, for the zero value.
func orNull[T comparable](value T) any {
	var zero T
	if value == zero {
		return nil
	}
	return value
}

func orNullList[T any](list []T) any {
	if len(list) == 0 {
		return nil
	}
	return list
}

func encode(patch tree) []byte {
	text, err := json.Marshal(patch)
	if err != nil {
		panic(fmt.Sprintf("encode patch: %v", err)) // made of strings and API types, which always encode
	}
	return text
}
