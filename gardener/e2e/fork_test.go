// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fork is a double of Gardener's fork of cluster-autoscaler, of what its machine-controller-manager provider reads and writes. It
// decides nothing. It writes whole MachineDeployments with types that know no field of ours, as it read them some time ago.
type fork struct {
	namespace string
	// read is what the fork's cache holds.
	read map[string]machinev1alpha1.MachineDeployment
}

const (
	// forkRetry is between two attempts of a write.
	forkRetry = 5 * time.Second
	// Annotations that the fork writes and reads.
	deletedByMCM      = "node.machine.sapcloud.io/trigger-deletion-by-mcm"
	scaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
)

// newFork is a fork whose cache is as fresh as can be. It runs nothing where no replica of machine-controller-manager is available.
func newFork(ctx context.Context, namespace string) *fork {
	GinkgoHelper()
	f := &fork{namespace: namespace, read: map[string]machinev1alpha1.MachineDeployment{}}
	var manager appsv1.Deployment
	Expect(seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "machine-controller-manager"}, &manager)).To(Succeed())
	Expect(manager.Status.AvailableReplicas).To(BeNumerically(">", 0), "the fork is suspended")
	var list machinev1alpha1.MachineDeploymentList
	Expect(seed.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
	for _, d := range list.Items {
		f.read[d.Name] = d
	}
	return f
}

// grow is IncreaseSize: the number is computed once, from the cache, and written until that succeeds.
func (f *fork) grow(ctx context.Context, name string, delta, maximum int32) error {
	size := f.read[name].Spec.Replicas + delta
	if size > maximum {
		return fmt.Errorf("grow %s: size %d is above the maximum %d", name, size, maximum)
	}
	return f.write(ctx, name, func(d *machinev1alpha1.MachineDeployment) { d.Spec.Replicas = size })
}

// shrink is DeleteNodes: the names are added to those that are named already, replicas fall by the new ones, then their Nodes are
// cordoned. Nodes that must not be scaled down are left alone.
func (f *fork) shrink(ctx context.Context, name string, machines ...machinev1alpha1.Machine) error {
	var doomed []string
	for _, m := range machines {
		var node corev1.Node
		if err := target.Get(ctx, client.ObjectKey{Name: m.Labels["node"]}, &node); err != nil {
			return err
		}
		if node.Annotations[scaleDownDisabled] != "true" {
			doomed = append(doomed, m.Name)
		}
	}
	if err := f.write(ctx, name, func(d *machinev1alpha1.MachineDeployment) { markForDeletion(d, doomed) }); err != nil {
		return err
	}
	for _, m := range machines {
		if !slices.Contains(doomed, m.Name) {
			continue
		}
		node := &corev1.Node{}
		node.Name = m.Labels["node"]
		if err := target.Patch(ctx, node, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"unschedulable":true}}`))); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

func markForDeletion(d *machinev1alpha1.MachineDeployment, doomed []string) {
	named := strings.FieldsFunc(d.Annotations[deletedByMCM], func(r rune) bool { return r == ',' })
	fresh := slices.DeleteFunc(slices.Clone(doomed), func(name string) bool { return slices.Contains(named, name) })
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	d.Annotations[deletedByMCM] = strings.Join(append(named, fresh...), ",")
	d.Spec.Replicas -= int32(len(fresh))
}

// write updates the object as the cache has it, and after a conflict as it is then, with the same change.
func (f *fork) write(ctx context.Context, name string, change func(*machinev1alpha1.MachineDeployment)) error {
	d := f.read[name]
	for {
		copied := d.DeepCopy()
		change(copied)
		err := seed.Update(ctx, copied)
		if !apierrors.IsConflict(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(forkRetry):
		}
		if err := seed.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, &d); err != nil {
			return err
		}
	}
}

// instances is how many instances the fork counts for a node group: all its Machines, with a Node or without.
func (f *fork) instances(ctx context.Context, name string) int {
	GinkgoHelper()
	var list machinev1alpha1.MachineList
	Expect(seed.List(ctx, &list, client.InNamespace(f.namespace), client.MatchingLabels{"name": name})).To(Succeed())
	return len(list.Items)
}
