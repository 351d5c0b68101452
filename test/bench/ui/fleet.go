// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/gen"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
)

// writers make objects at the same time.
const writers = 32

// fleet is all objects of the benchmark.
type fleet struct {
	size
	kube kubernetes.Interface
	ours versioned.Interface
}

func newFleet(config *rest.Config, s size) (*fleet, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	ours, err := versioned.NewForConfig(config)
	return &fleet{s, kube, ours}, err
}

func zoneName(i int) string    { return fmt.Sprintf("pool-z%d", i) }
func machineName(i int) string { return fmt.Sprintf("machine-%04d", i) }

func (f *fleet) populate(ctx context.Context) error {
	owners := make([]types.UID, f.zones)
	for i := range f.zones {
		owner, err := f.newZone(ctx, zoneName(i))
		if err != nil {
			return err
		}
		owners[i] = owner
	}
	return inParallel(f.machines, func(i int) error {
		zone := i % f.zones
		if err := f.newMachine(ctx, i, zoneName(zone), owners[zone]); err != nil {
			return err
		}
		for pod := range f.pods / f.machines {
			if err := f.newPod(ctx, fmt.Sprintf("pod-%d-%d", i, pod), machineName(i)); err != nil {
				return err
			}
		}
		return nil
	})
}

// newZone makes a MachineDeployment with its MachineSet, whose UID it returns.
func (f *fleet) newZone(ctx context.Context, name string) (types.UID, error) {
	plain := gen.MachineDeployment(name, int32(f.machines/f.zones))
	d := &v1alpha1.MachineDeployment{ObjectMeta: plain.ObjectMeta}
	d.Spec.StockMachineDeploymentSpec = plain.Spec
	d.Labels = map[string]string{"worker.gardener.cloud/pool": "pool"}
	machines := f.ours.MachineV1alpha1()
	d, err := machines.MachineDeployments(gen.Namespace).Create(ctx, d, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	set := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owned("MachineDeployment", name, d.UID)}}
	set.Spec = mcm.MachineSetSpec{Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Template: d.Spec.Template}
	set, err = machines.MachineSets(gen.Namespace).Create(ctx, set, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return set.UID, nil
}

func owned(kind, name string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}}
}

// newMachine makes a machine that runs, with its Node.
func (f *fleet) newMachine(ctx context.Context, i int, zone string, owner types.UID) error {
	m := gen.Machine(machineName(i), func(m *mcm.Machine) {
		m.OwnerReferences = owned("MachineSet", zone, owner)
		m.Labels = map[string]string{"name": zone, mcm.NodeLabelKey: m.Name}
	})
	if _, err := f.ours.MachineV1alpha1().Machines(gen.Namespace).Create(ctx, m, metav1.CreateOptions{}); err != nil {
		return err
	}
	node := gen.Node(machineName(i), func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = zone })
	if _, err := f.kube.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return err
	}
	return f.becomes(ctx, i, mcm.MachineRunning)
}

// becomes changes what a machine does.
func (f *fleet) becomes(ctx context.Context, i int, phase mcm.MachinePhase) error {
	machines := f.ours.MachineV1alpha1().Machines(gen.Namespace)
	m, err := machines.Get(ctx, machineName(i), metav1.GetOptions{})
	if err != nil {
		return err
	}
	m.Status.CurrentStatus = mcm.CurrentStatus{Phase: phase, LastUpdateTime: metav1.Now()}
	_, err = machines.UpdateStatus(ctx, m, metav1.UpdateOptions{})
	return err
}

func (f *fleet) newPod(ctx context.Context, name, node string) error {
	pod := gen.Pod(name, func(p *corev1.Pod) {
		p.Namespace, p.Spec.NodeName = gen.Namespace, node
		p.Spec.Containers = []corev1.Container{{Name: "main", Image: "none"}}
	})
	_, err := f.kube.CoreV1().Pods(gen.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

// inParallel does n things, some at the same time.
func inParallel(n int, do func(i int) error) error {
	numbers, errs := make(chan int), make([]error, n)
	var working sync.WaitGroup
	for range writers {
		working.Go(func() {
			for i := range numbers {
				errs[i] = do(i)
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	working.Wait()
	return errors.Join(errs...)
}
