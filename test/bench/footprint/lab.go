// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/bench/internal/parallel"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

const (
	namespace = "default"
	// identity is the user of the manager alone.
	identity = "machine-controller-manager"
	// limit bounds one wait.
	limit = 20 * time.Minute
	// writers create pods at the same time.
	writers = 8
)

// contestant is a manager, and whether its fleet has a reserve.
type contestant struct {
	name, pkg string
	reserve   bool
}

const ours = "./cmd/" + identity

var contestants = []contestant{
	{name: "stock", pkg: "github.com/gardener/machine-controller-manager/cmd/" + identity},
	{name: "ours", pkg: ours},
	{name: "reserve", pkg: ours, reserve: true},
}

// limits are Gardener's.
var limits = []string{"--kube-api-qps=150", "--kube-api-burst=200", "--concurrent-syncs=30"}

//go:embed fleet.yaml
var manifest string

// lab is a contestant in a cluster of its own, with the controller that makes virtual machines.
type lab struct {
	contestant
	cluster  *localcluster.Cluster
	manager  *localcluster.Process
	machines versioned.Interface
	kube     kubernetes.Interface
}

func newLab(ctx context.Context, c contestant) (*lab, error) {
	cluster, err := localcluster.Start(ctx, options(c.name))
	if err != nil {
		return nil, err
	}
	l := &lab{contestant: c, cluster: cluster}
	if err := l.furnish(ctx); err != nil {
		return nil, errors.Join(err, cluster.Reset())
	}
	return l, nil
}

func (l *lab) furnish(ctx context.Context) (err error) {
	if l.kube, err = kubernetes.NewForConfig(l.cluster.Config()); err != nil {
		return err
	}
	if l.machines, err = versioned.NewForConfig(l.cluster.Config()); err != nil {
		return err
	}
	if err := l.cluster.Apply(ctx, "kubernetes/crds"); err != nil {
		return err
	}
	_, err = l.cluster.RunProgram(ctx, localcluster.Program{Name: "machine-controller", Binary: "footprint-driver", Flags: limits})
	return err
}

// startManager runs the manager with Gardener's flags; profiling is not among them.
func (l *lab) startManager(ctx context.Context, profiling bool) error {
	access, err := l.cluster.KubeconfigFor(identity, "system:masters")
	if err != nil {
		return err
	}
	l.manager, err = l.cluster.RunProgram(ctx, localcluster.Program{
		Name: "manager", Package: l.pkg, Binary: "footprint-" + l.name, Kubeconfig: access, Flags: append([]string{fmt.Sprint("--profiling=", profiling)}, limits...),
	})
	return err
}

// pool is a MachineDeployment as it is asked for. Another Version replaces its machines.
type pool struct {
	Name                      string
	Replicas, Excess, Version int
}

// fleet is n machines in pools, with the contestant's reserve.
func (l *lab) fleet(s size, n, version int) []pool {
	all := make([]pool, s.pools)
	for i := range all {
		all[i] = pool{Name: fmt.Sprintf("pool-%d", i), Replicas: portion(n, s.pools, i), Version: version}
		if l.reserve {
			all[i].Excess = portion(s.reserve, s.pools, i)
		}
		if s.included {
			all[i].Replicas -= all[i].Excess
		}
	}
	return all
}

// portion is the size of part i of n in as many parts.
func portion(n, parts, i int) int {
	if i < n%parts {
		return n/parts + 1
	}
	return n / parts
}

// become applies a fleet and waits until it is complete, and no other machine is left.
func (l *lab) become(ctx context.Context, fleet []pool) error {
	path := filepath.Join(l.cluster.Dir(), "fleet.yaml")
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(template.Must(template.New("fleet").Parse(manifest)).Execute(file, fleet), file.Close()); err != nil {
		return err
	}
	if err := l.cluster.Apply(ctx, path); err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, time.Second, limit, true, func(ctx context.Context) (bool, error) { return l.complete(ctx, fleet) })
	if err != nil {
		return fmt.Errorf("wait for the fleet of %s: %w", l.name, err)
	}
	return nil
}

func (l *lab) complete(ctx context.Context, fleet []pool) (bool, error) {
	want := 0
	for _, p := range fleet {
		d, err := l.machines.MachineV1alpha1().MachineDeployments(namespace).Get(ctx, p.Name, metav1.GetOptions{})
		if err != nil || !p.isComplete(d) {
			return false, err
		}
		want += p.Replicas + p.Excess
	}
	list, err := l.machines.MachineV1alpha1().Machines(namespace).List(ctx, metav1.ListOptions{})
	return err == nil && len(list.Items) == want, err
}

func (p pool) isComplete(d *machine.MachineDeployment) bool {
	all, s := int32(p.Replicas+p.Excess), d.Status
	return s.ObservedGeneration == d.Generation && s.Replicas == all && s.UpdatedReplicas == all && s.AvailableReplicas == all &&
		s.ExcessReplicas == int32(p.Excess) && s.ReadyExcessReplicas == int32(p.Excess)
}

// populate puts pods of DaemonSets on all Nodes. Nothing runs them.
func (l *lab) populate(ctx context.Context, each int) error {
	nodes, err := l.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	return parallel.Each(len(nodes.Items)*each, writers, func(i int) error {
		set, node := fmt.Sprintf("system-%d", i%each), nodes.Items[i/each].Name
		pod := fixture.Pod(set+"-"+node, func(p *corev1.Pod) {
			p.Namespace, p.Spec.NodeName = "kube-system", node
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: set, UID: types.UID(set), Controller: ptr.To(true)}}
		})
		_, err := l.kube.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
}
