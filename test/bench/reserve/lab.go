// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"

	"github.com/evenkeel/evenkeel/test/localcluster"
)

const (
	namespace = "default"
	bare      = "bare" // the bare client's namespace, MachineDeployment and region
	// identity is who the manager is, and nobody else.
	identity = "machine-controller-manager"
	// limit bounds one wait.
	limit = 20 * time.Minute
)

// Gardener's limits of requests per second, for everybody here.
const qps, burst = 150, 200

var limits = []string{fmt.Sprintf("--kube-api-qps=%d", qps), fmt.Sprintf("--kube-api-burst=%d", burst)}

// The contestants.
var (
	ours  = localcluster.Program{Name: "manager", Package: "./cmd/" + identity, Binary: "bench-reserve-manager"}
	stock = localcluster.Program{Name: "manager", Package: "github.com/gardener/machine-controller-manager/cmd/" + identity, Binary: "bench-reserve-stock"}
)

//go:embed *.yaml
var manifests embed.FS

// lab is a cluster with a machine controller, one of the contestants, and clients: some to watch,
// and a bare one.
type lab struct {
	cluster *localcluster.Cluster
	manager *localcluster.Process
	clients
	bare clients
}

type clients struct {
	kube     kubernetes.Interface
	machines versioned.Interface
}

func newClients(config *rest.Config) (c clients, err error) {
	if c.kube, err = kubernetes.NewForConfig(config); err != nil {
		return c, err
	}
	c.machines, err = versioned.NewForConfig(config)
	return c, err
}

// runInLab calls do with a new lab for a fleet of this size, so that all contestants start alike.
func runInLab(ctx context.Context, contestant localcluster.Program, n size, do func(*lab) error) (err error) {
	cluster, err := localcluster.Start(ctx, localcluster.Options{
		Name: "bench-reserve", Out: os.Stderr, Audit: true, UnsafeNoFsync: true, ExtraArgs: heartbeats(n.machines),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Reset()) }()
	l := &lab{cluster: cluster}
	if err := l.furnish(ctx, contestant); err != nil {
		return err
	}
	return do(l)
}

// heartbeats returns flags with which at most 20 Leases of Nodes are renewed per second. Otherwise,
// kwok could not renew those of 5,000 Nodes in time while they are created, and they would become Unknown.
func heartbeats(nodes int) map[string][]string {
	lease := max(40, 4*nodes/20) // kwok renews it four times as often
	return map[string][]string{
		localcluster.Kwok:              {fmt.Sprintf("--node-lease-duration-seconds=%d", lease)},
		localcluster.ControllerManager: {fmt.Sprintf("--node-monitor-grace-period=%ds", lease+10)},
	}
}

func (l *lab) furnish(ctx context.Context, contestant localcluster.Program) (err error) {
	if err := l.cluster.Apply(ctx, "kubernetes/crds"); err != nil {
		return err
	}
	config := l.cluster.Config()
	if l.clients, err = newClients(config); err != nil {
		return err
	}
	config.QPS, config.Burst = qps, burst
	if l.bare, err = newClients(config); err != nil {
		return err
	}
	driver := localcluster.Program{Name: "driver", Package: "./cmd/machine-controller", Binary: "bench-reserve-driver", Flags: limits}
	if _, err := l.cluster.RunProgram(ctx, driver); err != nil {
		return err
	}
	if contestant.Kubeconfig, err = l.cluster.KubeconfigFor(identity, "system:masters"); err != nil {
		return err
	}
	contestant.Flags = append([]string{"--concurrent-syncs=30"}, limits...)
	l.manager, err = l.cluster.RunProgram(ctx, contestant)
	return err
}

// apply fills in a manifest and brings it to the cluster.
func (l *lab) apply(ctx context.Context, name string, values any) error {
	t, err := template.ParseFS(manifests, name)
	if err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(l.cluster.Dir(), name))
	if err != nil {
		return err
	}
	if err := errors.Join(t.Execute(file, values), file.Close()); err != nil {
		return err
	}
	return l.cluster.Apply(ctx, file.Name())
}

// pool is a MachineDeployment as it is asked for.
type pool struct {
	Name             string
	Replicas, Excess int
	// Max is the most machines that pods may have; 0: the pool has no bounds.
	Max int
	// Surge is the maxSurge of a rolling update; 1 if it is empty.
	Surge string
}

// complete waits until each pool has all that it is asked for, ready.
func (l *lab) complete(ctx context.Context, pools ...pool) error {
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		for _, p := range pools {
			d, err := l.machines.MachineV1alpha1().MachineDeployments(namespace).Get(ctx, p.Name, metav1.GetOptions{})
			if err != nil || !p.isComplete(d) {
				return false, err
			}
		}
		return true, nil
	})
}

func (p pool) isComplete(d *machine.MachineDeployment) bool {
	all, s := int32(p.Replicas+p.Excess), d.Status
	return s.ObservedGeneration == d.Generation && s.Replicas == all && s.AvailableReplicas == all &&
		s.ExcessReplicas == int32(p.Excess) && s.ReadyExcessReplicas == int32(p.Excess)
}

// patch changes one field of a pool's spec.
func (l *lab) patch(ctx context.Context, name, field string, value int) error {
	return l.patchSpec(ctx, name, fmt.Sprintf(`{%q:%d}`, field, value))
}

func (l *lab) patchSpec(ctx context.Context, name, spec string) error {
	merge := fmt.Appendf(nil, `{"spec":%s}`, spec)
	_, err := l.machines.MachineV1alpha1().MachineDeployments(namespace).Patch(ctx, name, types.MergePatchType, merge, metav1.PatchOptions{})
	return err
}
