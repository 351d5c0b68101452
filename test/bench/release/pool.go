// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

const (
	ownedPool, employedPool, ownerlessPool, groupedPool, autoscaledPool = "owned", "employed", "ownerless", "grouped", "autoscaled"
	barePool                                                            = "unreserved"
)

// reserves are those of the pools that have one: what all rounds take, since nothing goes back
// between them.
var reserves = map[string]int{ownedPool: 70, employedPool: 70, ownerlessPool: 70, groupedPool: 70, autoscaledPool: 40}

// prepare makes nodes and pools, and waits until the reserve is ready.
func (b *bench) prepare(ctx context.Context, boot time.Duration) error {
	if err := b.prepareBare(ctx); err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bench"}, StringData: map[string]string{"userData": "none"}}
	if _, err := b.kube.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return err
	}
	// With no room above replicas and excess, no machine is made when one is released: that would be
	// in the way of others.
	for name, spare := range reserves {
		if err := b.pool(ctx, name, 1, fmt.Sprintf("1:%d:%d", 1+spare, spare), time.Second); err != nil {
			return err
		}
	}
	if err := b.pool(ctx, barePool, 0, fmt.Sprintf("0:%d:0", largest/perMachine), boot); err != nil {
		return err
	}
	if err := b.manage(ctx); err != nil {
		return err
	}
	for name, spare := range reserves {
		if err := b.ready(ctx, name, spare); err != nil {
			return fmt.Errorf("wait for the reserve of %s: %w", name, err)
		}
		if _, err := b.fill(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) pool(ctx context.Context, name string, replicas int32, bounds string, boot time.Duration) error {
	class := &machine.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provider: "virtual",
		SecretRef: &corev1.SecretReference{Name: "bench", Namespace: namespace},
		ProviderSpec: runtime.RawExtension{Raw: fmt.Appendf(nil,
			`{"zone":%q,"region":"local","instanceType":"virtual.large","capacity":{"cpu":"%d","memory":"64Gi"},"bootDelay":%q,"taintsAtRegistration":true}`, name, perMachine, boot)},
	}
	if _, err := b.ours.MachineV1alpha1().MachineClasses(namespace).Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return err
	}
	d := &machine.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{machine.BoundsAnnotation: bounds}}}
	labels := map[string]string{"name": name}
	d.Spec.Replicas, d.Spec.Selector = replicas, &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Strategy.Type = "RollingUpdate"
	d.Spec.Strategy.RollingUpdate = &machine.RollingUpdateMachineDeployment{UpdateConfiguration: machine.UpdateConfiguration{
		MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0))}}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Class = machine.ClassSpec{Kind: "MachineClass", Name: name}
	_, err := b.ours.MachineV1alpha1().MachineDeployments(namespace).Create(ctx, d, metav1.CreateOptions{})
	return err
}

// ready waits until so many machines are ready in reserve, and the Nodes say the same.
func (b *bench) ready(ctx context.Context, name string, n int) error {
	return poll(ctx, func() (bool, error) {
		d, err := b.ours.MachineV1alpha1().MachineDeployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil || int(d.Status.ReadyExcessReplicas) != n || int(d.Status.ExcessReplicas) != n {
			return false, err
		}
		nodes, err := b.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: corev1.LabelTopologyZone + "=" + name})
		if err != nil {
			return false, err
		}
		held := 0
		for _, node := range nodes.Items {
			for _, t := range node.Spec.Taints {
				if t.Key == machine.ReserveTaintKey {
					held++
				}
			}
		}
		return held == n, nil
	})
}

// fill leaves no room on the machines that serve, and returns how many those are.
func (b *bench) fill(ctx context.Context, pool string) (machines int, err error) {
	if machines, err = b.replicas(ctx, pool); err != nil {
		return 0, err
	}
	pods := b.kube.CoreV1().Pods(namespace)
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "zone=" + pool})
	if err != nil {
		return 0, err
	}
	for i := len(list.Items); i < machines*perMachine; i++ {
		if _, err := pods.Create(ctx, workload(fmt.Sprintf("fill-%s-%d", pool, i), pool, "", "fill"), metav1.CreateOptions{}); err != nil {
			return 0, err
		}
	}
	return machines, poll(ctx, func() (bool, error) {
		list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "zone=" + pool, FieldSelector: "spec.nodeName!="})
		return err == nil && len(list.Items) == machines*perMachine, err
	})
}

func (b *bench) scale(ctx context.Context, name string, replicas int) error {
	_, err := b.ours.MachineV1alpha1().MachineDeployments(namespace).Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{})
	return err
}

func (b *bench) replicas(ctx context.Context, name string) (int, error) {
	d, err := b.ours.MachineV1alpha1().MachineDeployments(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	return int(d.Spec.Replicas), nil
}

// instant leaves everything to our controllers. The pods stay, and what they leave free is filled.
func (b *bench) instant(pool string) way {
	before := 0
	return way{
		name: "instant release", keep: true,
		begin: func(ctx context.Context, _ int) (s start, err error) {
			before, err = b.replicas(ctx, pool)
			return start{zone: pool}, err
		},
		end: func(ctx context.Context) (int, error) {
			after, err := b.fill(ctx, pool)
			return after - before, err
		},
	}
}

// unprepared has machines made when pods wait.
func (b *bench) unprepared() way {
	return way{
		name: "no reserve, replicas raised by hand", rounds: 3,
		begin: func(_ context.Context, pods int) (start, error) {
			return start{zone: barePool, react: func(ctx context.Context) error { return b.scale(ctx, barePool, machinesFor(pods)) }}, nil
		},
		end: func(ctx context.Context) (int, error) {
			n, err := b.replicas(ctx, barePool)
			if err != nil {
				return 0, err
			}
			if err := b.scale(ctx, barePool, 0); err != nil {
				return 0, err
			}
			return n, poll(ctx, func() (bool, error) {
				list, err := b.ours.MachineV1alpha1().Machines(namespace).List(ctx, metav1.ListOptions{LabelSelector: "name=" + barePool})
				return err == nil && len(list.Items) == 0, err
			})
		},
	}
}
