// SPDX-License-Identifier: Apache-2.0

// Package fleet makes many machines with their Nodes and pods, as objects alone.
package fleet

import (
	"context"
	"flag"
	"fmt"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/bench/internal/parallel"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

// writers make objects at the same time.
const writers = 32

// Size is the number of machines, each with a Node, of their MachineDeployments, and of the pods on
// all machines. Three MachineDeployments form a pool. One machine in ten is in reserve.
type Size struct {
	Machines, Deployments, Pods int
}

// Flags defines flags for the numbers of a Size.
func Flags(flags *flag.FlagSet) *Size {
	s := &Size{}
	flags.IntVar(&s.Machines, "machines", 1000, "number of machines, with a Node each")
	flags.IntVar(&s.Deployments, "deployments", 20, "number of MachineDeployments")
	flags.IntVar(&s.Pods, "pods", 10_000, "pods on all machines")
	return s
}

// Fleet is all objects of a benchmark.
type Fleet struct {
	Size
	core     kubernetes.Interface
	machines versioned.Interface
}

// New creates a fleet in a cluster, and prints how long that took.
func New(ctx context.Context, cluster *localcluster.Cluster, s Size) (*Fleet, error) {
	if err := cluster.Apply(ctx, "kubernetes/crds"); err != nil {
		return nil, err
	}
	f, err := connect(cluster.Config(), s)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := f.populate(ctx); err != nil {
		return nil, err
	}
	fmt.Printf("%d machines in %d MachineDeployments, %d pods made in %.0f s\n", s.Machines, s.Deployments, s.Pods, time.Since(begin).Seconds())
	return f, nil
}

func connect(config *rest.Config, s Size) (*Fleet, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	machines, err := versioned.NewForConfig(config)
	return &Fleet{s, core, machines}, err
}

// Deployment is the name of one of the MachineDeployments.
func Deployment(i int) string { return fmt.Sprintf("pool-%02d-z%d", i/3, i%3) }

// Machine is the name of one of the machines.
func Machine(i int) string { return fmt.Sprintf("machine-%04d", i) }

// populate makes all objects.
func (f *Fleet) populate(ctx context.Context) error {
	owners := make([]types.UID, f.Deployments)
	for i := range owners {
		var err error
		if owners[i], err = f.deployment(ctx, i); err != nil {
			return err
		}
	}
	return parallel.Each(f.Machines, writers, func(i int) error {
		if err := f.machine(ctx, i, owners[i%len(owners)]); err != nil {
			return err
		}
		for n := range f.Pods / f.Machines {
			if err := f.pod(ctx, fmt.Sprintf("pod-%d-%d", i, n), Machine(i)); err != nil {
				return err
			}
		}
		return nil
	})
}

// deployment makes a MachineDeployment with its MachineSet, whose UID it returns.
func (f *Fleet) deployment(ctx context.Context, i int) (types.UID, error) {
	each := f.Machines / f.Deployments
	plain := fixture.MachineDeployment(Deployment(i), int32(each-each/10))
	d := &v1alpha1.MachineDeployment{ObjectMeta: plain.ObjectMeta}
	d.Spec.StockMachineDeploymentSpec = plain.Spec
	d.Spec.ExcessReplicas = ptr.To(int32(each / 10))
	d.Labels = map[string]string{"worker.gardener.cloud/pool": fmt.Sprintf("pool-%02d", i/3)}
	api := f.machines.MachineV1alpha1()
	d, err := api.MachineDeployments(fixture.Namespace).Create(ctx, d, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	set := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: d.Name, OwnerReferences: owned("MachineDeployment", d.Name, d.UID)}}
	set.Spec = mcm.MachineSetSpec{Replicas: int32(each), Selector: d.Spec.Selector, Template: d.Spec.Template}
	set, err = api.MachineSets(fixture.Namespace).Create(ctx, set, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return set.UID, nil
}

func owned(kind, name string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}}
}

// machine makes one that runs, with its Node.
func (f *Fleet) machine(ctx context.Context, i int, owner types.UID) error {
	deployment := Deployment(i % f.Deployments)
	api := f.machines.MachineV1alpha1().Machines(fixture.Namespace)
	_, err := api.Create(ctx, fixture.Machine(Machine(i), func(m *mcm.Machine) {
		m.OwnerReferences = owned("MachineSet", deployment, owner)
		m.Labels = map[string]string{"name": deployment, mcm.NodeLabelKey: m.Name}
		m.Spec.ProviderID = "virtual:///" + m.Name
		if i/f.Deployments%10 == 0 {
			m.Annotations = map[string]string{v1alpha1.ReserveAnnotation: v1alpha1.Reserve{Since: time.Now().Truncate(time.Second)}.String()}
		}
	}), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := f.Becomes(ctx, i, mcm.MachineRunning); err != nil {
		return err
	}
	node := fixture.Node(Machine(i), func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = fmt.Sprint("zone-", i%f.Deployments%3) })
	_, err = f.core.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	return err
}

// Becomes changes what a machine does.
func (f *Fleet) Becomes(ctx context.Context, i int, phase mcm.MachinePhase) error {
	api := f.machines.MachineV1alpha1().Machines(fixture.Namespace)
	m, err := api.Get(ctx, Machine(i), metav1.GetOptions{})
	if err != nil {
		return err
	}
	m.Status.CurrentStatus = mcm.CurrentStatus{Phase: phase, LastUpdateTime: metav1.Now()}
	_, err = api.UpdateStatus(ctx, m, metav1.UpdateOptions{})
	return err
}

func (f *Fleet) pod(ctx context.Context, name, node string) error {
	pod := fixture.Pod(name, func(p *corev1.Pod) { p.Spec.NodeName = node })
	_, err := f.core.CoreV1().Pods(fixture.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}
