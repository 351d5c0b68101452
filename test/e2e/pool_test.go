// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/provider/virtual"
)

// pool is one MachineDeployment, alone in a zone of its own.
type pool struct {
	name string
}

// newPool makes a pool of that many machines that boot in about a second.
func newPool(ctx context.Context, name string, replicas int32, changes ...func(*machine.MachineDeployment)) pool {
	GinkgoHelper()
	p := pool{name}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"userData": "none"}}
	_, err := control.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	p.newClass(ctx, name)
	md := &machine.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	md.Spec.Replicas = replicas
	md.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": name}}
	md.Spec.Strategy = machine.MachineDeploymentStrategy{Type: "RollingUpdate", RollingUpdate: &machine.RollingUpdateMachineDeployment{
		UpdateConfiguration: machine.UpdateConfiguration{MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0))}}}
	md.Spec.Template.Labels = map[string]string{"name": name}
	md.Spec.Template.Spec.Class = machine.ClassSpec{Kind: "MachineClass", Name: name}
	for _, change := range changes {
		change(md)
	}
	_, err = machines.MachineV1alpha1().MachineDeployments(namespace).Create(ctx, md, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(machines.MachineV1alpha1().MachineDeployments(namespace).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
	})
	return p
}

// newClass adds a MachineClass in the pool's zone.
func (p pool) newClass(ctx context.Context, name string) {
	GinkgoHelper()
	spec := fmt.Sprintf(`{"zone":%q,"region":"local","instanceType":"virtual.large","capacity":{"cpu":"4","memory":"16Gi"},"bootDelay":{"from":"500ms","to":"1500ms"}}`, p.name)
	class := &machine.MachineClass{
		ObjectMeta:   metav1.ObjectMeta{Name: name},
		Provider:     "virtual",
		ProviderSpec: runtime.RawExtension{Raw: []byte(spec)},
		SecretRef:    &corev1.SecretReference{Name: p.name, Namespace: namespace},
		NodeTemplate: &machine.NodeTemplate{
			Capacity:     corev1.ResourceList{"cpu": resource.MustParse("4"), "gpu": resource.MustParse("0"), "memory": resource.MustParse("16Gi")},
			InstanceType: "virtual.large", Region: "local", Zone: p.name, Architecture: ptr.To("amd64"),
		},
	}
	_, err := machines.MachineV1alpha1().MachineClasses(namespace).Create(ctx, class, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (p pool) patch(ctx context.Context, merge string) {
	GinkgoHelper()
	_, err := machines.MachineV1alpha1().MachineDeployments(namespace).Patch(ctx, p.name, types.MergePatchType, []byte(merge), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (p pool) scale(ctx context.Context, replicas int32) {
	GinkgoHelper()
	p.patch(ctx, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

func (p pool) deployment(ctx context.Context) (*machine.MachineDeployment, error) {
	return machines.MachineV1alpha1().MachineDeployments(namespace).Get(ctx, p.name, metav1.GetOptions{})
}

func (p pool) machines(ctx context.Context) ([]machine.Machine, error) {
	list, err := machines.MachineV1alpha1().Machines(namespace).List(ctx, metav1.ListOptions{LabelSelector: "name=" + p.name})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (p pool) nodes(ctx context.Context) ([]corev1.Node, error) {
	list, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: corev1.LabelTopologyZone + "=" + p.name})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// vms are the machines that the virtual cloud knows of in the pool's zone.
func (p pool) vms(ctx context.Context) ([]string, error) {
	records, err := control.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: virtual.RecordLabel})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, record := range records.Items {
		var vm virtual.VM
		for _, text := range record.Data {
			if err := json.Unmarshal([]byte(text), &vm); err != nil {
				return nil, err
			}
		}
		if vm.Hardware.Zone == p.name {
			names = append(names, vm.Name)
		}
	}
	return names, nil
}

// settled is nil when the pool is at rest at that many machines: all Running, each with its Ready node and its VM, none
// left over, and status saying so. It is an error to print otherwise.
func (p pool) settled(ctx context.Context, replicas int32) error {
	list, err := p.machines(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, m := range list {
		if m.Status.CurrentStatus.Phase != "Running" || m.DeletionTimestamp != nil {
			return fmt.Errorf("%d machines, %s is %s", len(list), m.Name, m.Status.CurrentStatus.Phase)
		}
		names = append(names, m.Name)
	}
	slices.Sort(names)
	if len(names) != int(replicas) {
		return fmt.Errorf("%d machines, want %d", len(names), replicas)
	}
	nodes, err := p.readyNodes(ctx)
	if err != nil || !slices.Equal(nodes, names) {
		return fmt.Errorf("nodes %v, machines %v: %w", nodes, names, err)
	}
	vms, err := p.vms(ctx)
	if slices.Sort(vms); err != nil || !slices.Equal(vms, names) {
		return fmt.Errorf("VMs %v, machines %v: %w", vms, names, err)
	}
	md, err := p.deployment(ctx)
	if err != nil {
		return err
	}
	if s := md.Status; s.ObservedGeneration != md.Generation || s.Replicas != replicas || s.UpdatedReplicas != replicas || s.AvailableReplicas != replicas || s.UnavailableReplicas != 0 {
		return fmt.Errorf("status %+v at generation %d", s, md.Generation)
	}
	return nil
}

// readyNodes are the names of the pool's nodes, sorted; an error where one is not Ready or is cordoned.
func (p pool) readyNodes(ctx context.Context) ([]string, error) {
	nodes, err := p.nodes(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, node := range nodes {
		if !ready(node) || node.Spec.Unschedulable {
			err = fmt.Errorf("node %s is not ready", node.Name)
		}
		names = append(names, node.Name)
	}
	slices.Sort(names)
	return names, err
}

func ready(node corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// settles waits until the pool is at rest at that many machines.
func (p pool) settles(ctx context.Context, replicas int32) {
	GinkgoHelper()
	Eventually(func() error { return p.settled(ctx, replicas) }).WithContext(ctx).Should(Succeed())
}
