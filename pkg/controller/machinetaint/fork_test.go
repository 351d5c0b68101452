// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinetaint_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	stock "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// fork is a double of Gardener's fork of cluster-autoscaler, beside one MachineDeployment in which each pod takes a machine. It decides
// as simply as can be, removes nothing in a rollout, and reads and writes as the fork's machine-controller-manager provider does: it counts all Machines, writes whole
// MachineDeployments by types that know no field of ours, and computes replicas once, from what it has read some time ago.
type fork struct {
	machines stock.Interface
	nodes    kubernetes.Interface
	// least and most are the limits that it was started with.
	least, most int32
	// aside is until when it does not scale up, since a machine could not be created.
	aside time.Time
	// idle is since when no pod runs on a Node, and bare since when a Machine has none.
	idle, bare map[string]time.Time
	// short is since when there are fewer Machines than replicas.
	short time.Time
}

const (
	forkInterval = 10 * time.Second
	forkRetry    = 5 * time.Second
	// forkPatience is after how long it removes what is idle, forkGiveUp what has no Node, and forkAside how long it then waits.
	forkPatience = 10 * time.Minute
	forkGiveUp   = 20 * time.Minute
	forkAside    = 5 * time.Minute
	forkUser     = "fork"
)

// sight is what the fork sees in one loop.
type sight struct {
	d        mcmapi.MachineDeployment
	machines []mcmapi.Machine
	nodes    map[string]corev1.Node
	busy     map[string]bool
	waiting  int
}

func (f *fork) run(ctx context.Context, config *rest.Config) error {
	config.QPS = -1
	f.machines, f.nodes = stock.NewForConfigOrDie(storm.Control(config)), kubernetes.NewForConfigOrDie(storm.Target(config))
	f.idle, f.bare = map[string]time.Time{}, map[string]time.Time{}
	for ctx.Err() == nil {
		if s, err := f.look(ctx); err == nil {
			f.loop(ctx, s)
		}
		sleep(ctx, forkInterval)
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (f *fork) look(ctx context.Context) (s sight, err error) {
	d, err := f.machines.MachineV1alpha1().MachineDeployments(ns).Get(ctx, "pool", metav1.GetOptions{})
	if err != nil {
		return s, err
	}
	machines, err := f.machines.MachineV1alpha1().Machines(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, err
	}
	nodes, err := f.nodes.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, err
	}
	pods, err := f.nodes.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, err
	}
	s = sight{d: *d, machines: machines.Items, nodes: map[string]corev1.Node{}, busy: map[string]bool{}}
	for _, n := range nodes.Items {
		s.nodes[n.Name] = n
	}
	for _, p := range pods.Items {
		if s.busy[p.Spec.NodeName] = true; p.Spec.NodeName == "" && len(p.Status.Conditions) > 0 {
			s.waiting++
		}
	}
	return s, nil
}

func (f *fork) loop(ctx context.Context, s sight) {
	failed, rolled := f.failed(s), slices.ContainsFunc(s.d.Status.Conditions, func(c mcmapi.MachineDeploymentCondition) bool {
		return c.Type == mcmapi.MachineDeploymentProgressing && c.Status == mcmapi.ConditionTrue && c.Reason == "NewMachineSetAvailable"
	})
	if len(failed) > 0 {
		f.aside = time.Now().Add(forkAside)
	}
	switch {
	case len(failed) > 0 && rolled:
		f.remove(ctx, s, failed)
	case f.shrinks(s):
		f.write(ctx, func(d *mcmapi.MachineDeployment) { d.Spec.Replicas = int32(len(s.machines)) })
	default:
		if n := f.wanted(s); n > s.d.Spec.Replicas {
			f.write(ctx, func(d *mcmapi.MachineDeployment) { d.Spec.Replicas = n })
			return
		}
		if rolled {
			f.remove(ctx, s, f.unneeded(s))
		}
	}
}

// failed are Machines that could not be created, or that have had no Node for too long.
func (f *fork) failed(s sight) (names []string) {
	for _, m := range s.machines {
		if _, has := s.nodes[m.Name]; has || m.DeletionTimestamp != nil {
			delete(f.bare, m.Name)
			continue
		}
		since, known := f.bare[m.Name]
		if !known {
			f.bare[m.Name] = time.Now()
			continue
		}
		if m.Status.LastOperation.ErrorCode == "ResourceExhausted" || time.Since(since) > forkGiveUp {
			names = append(names, m.Name)
		}
	}
	return names
}

// shrinks reports whether there have been fewer Machines than replicas for so long that the fork does not expect them any more.
func (f *fork) shrinks(s sight) bool {
	if len(s.machines) >= int(s.d.Spec.Replicas) {
		f.short = time.Time{}
		return false
	}
	if f.short.IsZero() {
		f.short = time.Now()
	}
	return time.Since(f.short) > forkGiveUp
}

// wanted are the replicas with which the pods that wait have machines, beside those that come.
func (f *fork) wanted(s sight) int32 {
	if time.Now().Before(f.aside) {
		return 0
	}
	coming := s.d.Spec.Replicas
	for _, m := range s.machines {
		if _, has := s.nodes[m.Name]; has {
			coming--
		}
	}
	return max(f.least, min(f.most, s.d.Spec.Replicas+max(0, int32(s.waiting)-max(0, coming))))
}

// unneeded are the Machines whose Nodes no pod has run on for long. While pods wait, there are none.
func (f *fork) unneeded(s sight) (names []string) {
	for _, m := range s.machines {
		node, has := s.nodes[m.Name]
		if s.waiting > 0 || !has || s.busy[m.Name] || m.DeletionTimestamp != nil || node.Annotations["cluster-autoscaler.kubernetes.io/scale-down-disabled"] == "true" {
			delete(f.idle, m.Name)
			continue
		}
		if _, known := f.idle[m.Name]; !known {
			f.idle[m.Name] = time.Now()
		}
		if time.Since(f.idle[m.Name]) > forkPatience && s.d.Spec.Replicas-int32(len(names)) > f.least {
			names = append(names, m.Name)
		}
	}
	return names
}

// remove names Machines beside those that are named already, and lowers replicas by those that are new. It skips those that
// machine-controller-manager removes by itself. At its min it refuses, but from above it may pass that.
func (f *fork) remove(ctx context.Context, s sight, names []string) {
	for _, m := range s.machines {
		if machineutils.IsMachineFailedOrTerminating(&m) {
			names = slices.DeleteFunc(names, func(name string) bool { return name == m.Name })
		}
	}
	if len(names) == 0 || s.d.Spec.Replicas <= f.least {
		return
	}
	written := f.write(ctx, func(d *mcmapi.MachineDeployment) {
		var named []string
		if d.Annotations[machineutils.TriggerDeletionByMCM] != "" {
			named = strings.Split(d.Annotations[machineutils.TriggerDeletionByMCM], ",")
		}
		now := time.Now().UTC().Format(time.RFC3339)
		for _, name := range names {
			if !slices.ContainsFunc(named, func(n string) bool { return strings.HasPrefix(n, name+"~") }) {
				named = append(named, name+"~"+now)
				d.Spec.Replicas--
			}
		}
		d.Annotations[machineutils.TriggerDeletionByMCM] = strings.Join(named, ",")
		d.Annotations["machine.sapcloud.io/last-deployment-replica-change-by-scaler-time"] = now
	})
	for _, name := range names {
		if node, has := s.nodes[name]; has && written {
			node.Spec.Unschedulable = true
			_, _ = f.nodes.CoreV1().Nodes().Update(ctx, &node, metav1.UpdateOptions{}) // the machine goes all the same
		}
	}
}

// write makes one change until it succeeds, for a minute, each time on the object as it is then.
func (f *fork) write(ctx context.Context, change func(*mcmapi.MachineDeployment)) bool {
	for range 12 {
		d, err := f.machines.MachineV1alpha1().MachineDeployments(ns).Get(ctx, "pool", metav1.GetOptions{})
		if err == nil {
			change(d)
			_, err = f.machines.MachineV1alpha1().MachineDeployments(ns).Update(ctx, d, metav1.UpdateOptions{})
		}
		if err == nil {
			return true
		}
		sleep(ctx, forkRetry)
	}
	return false
}

// limits are the bounds annotation.
func (f *fork) limits(excess int) string {
	return strings.Join([]string{strconv.Itoa(int(f.least)), strconv.Itoa(int(f.most)), strconv.Itoa(excess)}, ":")
}
