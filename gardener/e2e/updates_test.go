// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
)

// Stories about pools whose nodes get another version, in the ways that Gardener has.
var updates = []story{
	{name: "nodes are rolled without a surge beside a reserve of two", shape: unavailable, act: func(ctx context.Context, t *told) {
		t.addReserve(ctx)
		t.wishNewer(ctx)
		t.expect("the extension is content with the rollout", t.rolled(ctx))
	}},
	{name: "nodes are updated in place beside a reserve of two", shape: inPlace(gardencorev1beta1.AutoInPlaceUpdate), act: func(ctx context.Context, t *told) {
		t.addReserve(ctx)
		before := t.names(ctx)
		t.tendNodes(ctx)
		t.wishNewer(ctx)
		t.expect("the extension is content with the update", t.rolled(ctx))
		t.expect("no machine goes", t.gone(ctx, before))
		t.expect("all machines are updated", t.eventually(ctx, func() error { return t.outdated(ctx) }))
		t.expect("the Worker's status shows it", t.eventually(ctx, func() error { return t.updatePending(ctx) }))
	}},
	{name: "nodes are updated in place by hand beside a reserve of two", shape: inPlace(gardencorev1beta1.ManualInPlaceUpdate), act: func(ctx context.Context, t *told) {
		t.addReserve(ctx)
		before := t.names(ctx)
		t.tendNodes(ctx)
		t.wishNewer(ctx)
		t.expect("the extension is content while nobody updates", t.reconciled(ctx))
		t.updateByHand(ctx)
		t.expect("the extension is content with the update", t.reconciled(ctx))
		t.expect("no machine goes", t.gone(ctx, before))
		t.expect("the Worker's status shows it", t.eventually(ctx, func() error { return t.updatePending(ctx) }))
	}},
	{name: "a reserve cannot be made while nodes wait for an update by hand", shape: inPlace(gardencorev1beta1.ManualInPlaceUpdate), act: func(ctx context.Context, t *told) {
		t.tendNodes(ctx)
		t.wishNewer(ctx)
		t.expect("the extension is content while nobody updates", t.reconciled(ctx))
		if t.shoot.image == evenkeel {
			t.faults(ctx, "outage: true")
			t.askForReserve(ctx)
			t.expect("the extension is content while no spare can be made", t.reconciled(ctx))
			t.expect("all machines that wait for an update stay, and no other", t.settling(ctx, t.n))
			t.faults(ctx, "extraBootDelay: 10m")
			t.expect("one is tried, and boots", t.booting(ctx, 1))
			t.expect("the extension is content while it boots", t.reconciled(ctx))
			t.faults(ctx, "")
			t.n += spares
			t.expect("the reserve comes up", t.settling(ctx, t.n))
		}
		t.updateByHand(ctx)
		t.expect("the extension is content with the update", t.reconciled(ctx))
	}},
}

// unavailable is a pool that may lack a machine in a rollout, and may not have one more.
func unavailable(pool *extensionsv1alpha1.WorkerPool) {
	pool.MaxSurge, pool.MaxUnavailable = intstr.FromInt32(0), intstr.FromInt32(1)
}

// inPlace is a pool as gardenlet makes it of one with this strategy. In an update by hand, neither number applies.
func inPlace(strategy gardencorev1beta1.MachineUpdateStrategy) func(*extensionsv1alpha1.WorkerPool) {
	return func(pool *extensionsv1alpha1.WorkerPool) {
		unavailable(pool)
		if strategy == gardencorev1beta1.ManualInPlaceUpdate {
			pool.MaxUnavailable = intstr.FromInt32(0)
		}
		pool.UpdateStrategy, pool.KubernetesVersion = ptr.To(strategy), ptr.To("1.34.0")
	}
}

// wishNewer asks for the newer machine image. With an update in place, the name of the Secret stays.
func (t *told) wishNewer(ctx context.Context) {
	GinkgoHelper()
	t.update(ctx, func(w *extensionsv1alpha1.WorkerSpec) {
		pool := &w.Pools[0]
		if pool.MachineImage.Version = newerVersion; pool.UpdateStrategy == nil {
			*pool.NodeAgentSecretName += "0"
		}
	})
}

// outdated is an error that names the machines of old MachineSets, or that there is no other. The class of a Machine stays when it is
// updated in place.
func (s *shoot) outdated(ctx context.Context) error {
	GinkgoHelper()
	d := s.deployments(ctx)[0]
	var sets machinev1alpha1.MachineSetList
	Expect(seed.List(ctx, &sets, client.InNamespace(s.namespace))).To(Succeed())
	old := map[string]bool{}
	for _, set := range sets.Items {
		old[set.Name] = set.Spec.Template.Spec.Class.Name != d.Spec.Template.Spec.Class.Name
	}
	var names []string
	for _, m := range s.machines(ctx) {
		if owner := metav1.GetControllerOf(&m); owner == nil || old[owner.Name] {
			names = append(names, m.Name+" is outdated")
		}
	}
	return joined(names)
}

// updated is an error where a machine is outdated.
func (s *shoot) updated(ctx context.Context, name string) error {
	GinkgoHelper()
	if err := s.outdated(ctx); err != nil && strings.Contains(err.Error(), name+" ") {
		return err
	}
	return nil
}

// updatePending is an error until a reconcile has found the pool updated.
func (s *shoot) updatePending(ctx context.Context) error {
	if err := s.reconciled(ctx); err != nil {
		return err
	}
	status := s.worker.Status.InPlaceUpdates
	if status == nil || status.WorkerPoolToHashMap["pool"] == "" {
		return errors.New("the Worker's status has no hash for the pool")
	}
	return nil
}

// updateByHand is what a person does: one node after the other.
func (t *told) updateByHand(ctx context.Context) {
	GinkgoHelper()
	for _, m := range t.machines(ctx) {
		if t.updated(ctx, m.Name) == nil {
			continue
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Labels[machinev1alpha1.NodeLabelKey]}}
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"true"}}}`, machinev1alpha1.LabelKeyNodeSelectedForUpdate)
		Expect(target.Patch(ctx, node, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
		t.expect(m.Name+" is updated", t.eventually(ctx, func() error { return t.updated(ctx, m.Name) }))
	}
}

// tendNodes plays, until the end of the spec, gardener-node-agent, which updates a Node that is ready for it, and
// gardener-resource-manager, which removes the taint of a Node whose components are ready.
func (t *told) tendNodes(ctx context.Context) {
	again(ctx, func(ctx context.Context) {
		var nodes corev1.NodeList
		if target.List(ctx, &nodes) != nil {
			return
		}
		for _, node := range nodes.Items {
			tend(ctx, node)
		}
	})
}

func tend(ctx context.Context, node corev1.Node) {
	changed := node.DeepCopy()
	_, done := node.Labels[machinev1alpha1.LabelKeyNodeUpdateResult]
	switch {
	case done:
		return
	case slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == machinev1alpha1.NodeInPlaceUpdate && c.Reason == machinev1alpha1.ReadyForUpdate
	}):
		changed.Labels[machinev1alpha1.LabelKeyNodeUpdateResult] = machinev1alpha1.LabelValueNodeUpdateSuccessful
	}
	changed.Spec.Taints = slices.DeleteFunc(changed.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1beta1constants.TaintNodeCriticalComponentsNotReady })
	if len(changed.Spec.Taints) != len(node.Spec.Taints) || len(changed.Labels) != len(node.Labels) {
		_ = target.Update(ctx, changed) // whoever was faster, the next look sees it
	}
}
