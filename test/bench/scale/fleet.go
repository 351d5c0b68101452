// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	machineclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
)

const (
	namespace = "default"
	interval  = 500 * time.Millisecond
	// limit bounds one way, up or down.
	limit = 20 * time.Minute
)

// fleet is some MachineDeployments of virtual machines that boot in two seconds.
type fleet struct {
	client machineclient.MachineV1alpha1Interface
	pools  []string
}

func newFleet(ctx context.Context, config *rest.Config, pools int) (*fleet, error) {
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "scale"}, StringData: map[string]string{"userData": "none"}}
	if _, err := kube.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	f := &fleet{client: clients.MachineV1alpha1()}
	for i := range pools {
		name := fmt.Sprintf("scale-%d", i)
		f.pools = append(f.pools, name)
		if err := f.create(ctx, name); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *fleet) create(ctx context.Context, name string) error {
	class := &machine.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provider: "virtual",
		SecretRef: &corev1.SecretReference{Name: "scale", Namespace: namespace},
		ProviderSpec: runtime.RawExtension{Raw: fmt.Appendf(nil,
			`{"zone":%q,"region":"local","instanceType":"virtual.large","capacity":{"cpu":"4","memory":"16Gi"},"bootDelay":"2s"}`, name)},
	}
	if _, err := f.client.MachineClasses(namespace).Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return err
	}
	md := &machine.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	labels := map[string]string{"name": name}
	md.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	md.Spec.Strategy.Type = "RollingUpdate"
	md.Spec.Strategy.RollingUpdate = &machine.RollingUpdateMachineDeployment{UpdateConfiguration: machine.UpdateConfiguration{
		MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0))}}
	md.Spec.Template.Labels = labels
	md.Spec.Template.Spec.Class = machine.ClassSpec{Kind: "MachineClass", Name: name}
	_, err := f.client.MachineDeployments(namespace).Create(ctx, md, metav1.CreateOptions{})
	return err
}

// scale brings the fleet to n machines and waits until all run and no other is left.
func (f *fleet) scale(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for i, name := range f.pools {
		share := n / len(f.pools)
		if i < n%len(f.pools) {
			share++
		}
		merge := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, share)
		if _, err := f.client.MachineDeployments(namespace).Patch(ctx, name, types.MergePatchType, merge, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	for last := -1; ; {
		running, others, err := f.count(ctx)
		if err != nil {
			return err
		}
		if running == n && others == 0 {
			return nil
		}
		if done := running * 10 / max(n, 1); n > 0 && done != last {
			last = done
			fmt.Printf("%d of %d run\n", running, n)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %d machines: %d run, %d others: %w", n, running, others, context.Cause(ctx))
		case <-time.After(interval):
		}
	}
}

func (f *fleet) count(ctx context.Context) (running, others int, err error) {
	list, err := f.client.Machines(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return 0, 0, err
	}
	for _, m := range list.Items {
		if m.Status.CurrentStatus.Phase == "Running" && m.DeletionTimestamp == nil {
			running++
		} else {
			others++
		}
	}
	return running, others, nil
}
