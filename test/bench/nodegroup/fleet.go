// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"sync"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	machineclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
)

// writers make objects at the same time.
const writers = 16

// fleet is so many Nodes with their Machines, over so many groups. Nobody acts on them.
type fleet struct {
	ours          machineclient.MachineV1alpha1Interface
	core          kubernetes.Interface
	nodes, groups int
}

func groupName(i int) string    { return fmt.Sprintf("pool-%02d", i) }
func nodeName(i int) string     { return fmt.Sprintf("machine-%04d", i) }
func (f fleet) of(node int) int { return node % f.groups }

func (f fleet) create(ctx context.Context) error {
	sets := make([]*machine.MachineSet, f.groups)
	if err := parallel(f.groups, func(i int) (err error) { sets[i], err = f.createGroup(ctx, groupName(i)); return err }); err != nil {
		return err
	}
	return parallel(f.nodes, func(i int) error { return f.createNode(ctx, nodeName(i), sets[f.of(i)]) })
}

func (f fleet) createGroup(ctx context.Context, name string) (*machine.MachineSet, error) {
	md := &machine.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{machine.BoundsAnnotation: "0:1000000:2"}}}
	md.Spec.Replicas = int32(f.nodes / f.groups)
	md.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": name}}
	md.Spec.Template.Labels = md.Spec.Selector.MatchLabels
	md.Spec.Template.Spec.Class = machine.ClassSpec{Kind: "MachineClass", Name: name}
	md, err := f.ours.MachineDeployments(namespace).Create(ctx, md, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	set := &machine.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owned("MachineDeployment", md)}}
	set.Spec.Selector = md.Spec.Selector
	return f.ours.MachineSets(namespace).Create(ctx, set, metav1.CreateOptions{})
}

func owned(kind string, by metav1.Object) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(by, mcm.SchemeGroupVersion.WithKind(kind))}
}

func (f fleet) createNode(ctx context.Context, name string, set *machine.MachineSet) error {
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owned("MachineSet", set), Labels: map[string]string{"name": set.Name, "node": name}}}
	m.Spec.ProviderID, m.Spec.Class = "virtual:///"+name, machine.ClassSpec{Kind: "MachineClass", Name: set.Name}
	m, err := f.ours.Machines(namespace).Create(ctx, m, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	m.Status.CurrentStatus.Phase = mcm.MachineRunning
	if _, err := f.ours.Machines(namespace).UpdateStatus(ctx, m, metav1.UpdateOptions{}); err != nil {
		return err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}, Spec: corev1.NodeSpec{ProviderID: m.Spec.ProviderID}}
	node.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("110")}
	node.Status.Allocatable = node.Status.Capacity
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	_, err = f.core.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	return err
}

// parallel does n things, some at the same time, and returns the first error.
func parallel(n int, do func(int) error) error {
	var all sync.WaitGroup
	failed := make(chan error, n)
	next := make(chan int)
	for range writers {
		all.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					failed <- err
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}
