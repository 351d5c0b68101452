// SPDX-License-Identifier: Apache-2.0

package balance_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

const (
	bootTime   = 30 * time.Second
	drainTime  = 10 * time.Second
	settleTime = 15 * time.Second
)

// cloud boots machines in the zone of their MachineDeployment's name, unless that is out.
func (c *cluster) cloud() *world.Cloud {
	out := func(m *mcm.Machine) bool { return c.out[m.Labels["name"]] }
	return &world.Cloud{Waker: c.Waker, Boot: bootTime, Drain: drainTime, Settle: settleTime, Refused: out, BootBlocked: out, ChangeNode: func(m *mcm.Machine, n *corev1.Node) {
		maps.Copy(n.Labels, map[string]string{
			corev1.LabelTopologyZone: m.Labels["name"], corev1.LabelTopologyRegion: "here", corev1.LabelInstanceTypeStable: "large",
			corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		})
		if world.InReserve(m) {
			n.Spec.Taints = []corev1.Taint{{Key: "reserve", Effect: corev1.TaintEffectNoSchedule}}
		}
		c.made++
	}}
}

// scheduler binds each pod to a node of its own, and none to a node whose machine is being deleted.
func (c *cluster) scheduler() world.Scheduler {
	leaves := func(_ *corev1.Pod, n *corev1.Node) bool {
		m := c.Get(machineGVR, ns, n.Name)
		return m != nil && m.GetDeletionTimestamp() != nil
	}
	return world.Scheduler{OnePodPerNode: true, Refuses: leaves, Replace: c.evict}
}

// actor reconciles two seconds after something was written.
func (c *cluster) actor(reconcile world.Reconcile) storm.Program {
	return world.Actor{Waker: c.Waker, Delay: 2 * time.Second, Reconcile: reconcile}.Run
}

// follow does with machines what machine-controller-manager and the controller of MachineDeployments do about replicas and shares.
func (c *cluster) follow(ctx context.Context, config *rest.Config) error {
	sets := map[string]int{}
	return c.actor(func(ctx context.Context, core kubernetes.Interface, ours versioned.Interface) (time.Duration, error) {
		return actor{c, sets, core, ours}.look(ctx)
	})(ctx, config)
}

type actor struct {
	c *cluster
	// sets are the numbers of MachineSets, by MachineDeployment: those of the last look, since machine-controller-manager
	// copies annotations to a MachineSet first, and the number in a write after that.
	sets map[string]int
	core kubernetes.Interface
	ours versioned.Interface
}

// look sees to all machines once.
func (a actor) look(ctx context.Context) (again time.Duration, err error) {
	deployments, err := a.ours.MachineV1alpha1().MachineDeployments(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	list, err := a.ours.MachineV1alpha1().Machines(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	machines := map[string][]*mcm.Machine{}
	for i := range list.Items {
		m := &list.Items[i]
		machines[m.Labels["name"]] = append(machines[m.Labels["name"]], m)
	}
	var errs []error
	for i := range deployments.Items {
		d := &deployments.Items[i]
		before, known := a.sets[d.Name]
		errs = append(errs, a.follow(ctx, d, machines[d.Name]))
		if known && before != a.sets[d.Name] {
			again = time.Second // the number comes a look later
		}
	}
	return again, errors.Join(errs...)
}

func wanted(d *v1alpha1.MachineDeployment) (replicas, excess int) {
	replicas = int(d.Spec.Replicas)
	if n, err := v1alpha1.ParseAppliedReplicas(d.Annotations[v1alpha1.AppliedReplicasAnnotation]); err == nil {
		replicas = int(n)
	}
	if d.Spec.ExcessReplicas != nil {
		excess = int(*d.Spec.ExcessReplicas)
	}
	if n, err := v1alpha1.ParseShare(d.Annotations[v1alpha1.ShareAnnotation]); err == nil {
		excess = int(n)
	}
	return replicas, excess
}

func (a actor) follow(ctx context.Context, d *v1alpha1.MachineDeployment, machines []*mcm.Machine) error {
	replicas, excess := wanted(d)
	number, known := a.sets[d.Name]
	if a.sets[d.Name] = replicas + excess; !known {
		number = replicas + excess
	}
	var live []*mcm.Machine
	serving := 0
	for _, m := range machines {
		switch {
		case m.DeletionTimestamp != nil:
			continue
		case dated(d, m):
			if err := a.remove(ctx, m); err != nil {
				return err
			}
			continue
		}
		if live = append(live, m); !world.InReserve(m) {
			serving++
		}
	}
	for _, m := range live {
		if serving < replicas && world.InReserve(m) && m.Status.CurrentStatus.Phase == mcm.MachineRunning {
			if err := world.Release(ctx, a.core, a.ours, m); err != nil {
				return err
			}
			serving++
		}
	}
	for n := len(live); n < number; n++ {
		if err := a.make(ctx, d, serving >= replicas); err != nil {
			return err
		}
		serving++
	}
	slices.SortFunc(live, func(x, y *mcm.Machine) int {
		return cmp.Or(cmp.Compare(worth(d, x, serving > replicas), worth(d, y, serving > replicas)), cmp.Compare(y.Name, x.Name))
	})
	for n := len(live); n > number; n-- {
		if err := a.remove(ctx, live[0]); err != nil {
			return err
		}
		live = live[1:]
	}
	return a.forget(ctx, d, machines)
}

func (a actor) remove(ctx context.Context, m *mcm.Machine) error {
	return a.ours.MachineV1alpha1().Machines(ns).Delete(ctx, m.Name, metav1.DeleteOptions{})
}

// forget takes names away when a machine that was named is gone.
func (a actor) forget(ctx context.Context, d *v1alpha1.MachineDeployment, machines []*mcm.Machine) error {
	names := pool.Named(d)
	for _, m := range machines {
		delete(names, m.Name)
	}
	if len(names) == 0 {
		return nil
	}
	delete(d.Annotations, machineutils.TriggerDeletionByMCM)
	_, err := a.ours.MachineV1alpha1().MachineDeployments(ns).Update(ctx, d, metav1.UpdateOptions{})
	return err
}

// named names a machine that is deleted before others.
func named(d *v1alpha1.MachineDeployment, m *mcm.Machine) bool {
	return strings.Contains(d.Annotations[machineutils.TriggerDeletionByMCM], m.Name+"~")
}

// dated names a machine that is deleted at once, whatever replicas are: it was named no later than replicas were changed.
func dated(d *v1alpha1.MachineDeployment, m *mcm.Machine) bool {
	at, there := pool.Named(d)[m.Name]
	changed, err := time.Parse(time.RFC3339, d.Annotations[machineutils.LastDeploymentReplicaChangeByScalerTime])
	return there && (err != nil || !at.After(changed))
}

// worth orders machines: what is worth least goes first, and what is named before all others.
func worth(d *v1alpha1.MachineDeployment, m *mcm.Machine, serving bool) int {
	n := 0
	if named(d, m) {
		n -= 4
	}
	if m.Status.CurrentStatus.Phase == mcm.MachineRunning {
		n += 2
	}
	if world.InReserve(m) == serving {
		n++
	}
	return n
}

func (a actor) make(ctx context.Context, d *v1alpha1.MachineDeployment, reserve bool) error {
	set, err := a.ours.MachineV1alpha1().MachineSets(ns).Get(ctx, d.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	m := world.NewMachine(d.Name, "", set, reserve)
	m.Finalizers = []string{world.Finalizer}
	a.c.Do(func() {
		a.c.born++
		a.c.created++
		m.Name = fmt.Sprintf("%s-%04d", d.Name, a.c.born)
	})
	_, err = a.ours.MachineV1alpha1().Machines(ns).Create(ctx, m, metav1.CreateOptions{})
	return err
}

// evict replaces a pod by one like it.
func (c *cluster) evict(ctx context.Context, core kubernetes.Interface, p *corev1.Pod) error {
	next := p.DeepCopy()
	next.ResourceVersion, next.UID, next.Spec.NodeName, next.Status = "", "", "", corev1.PodStatus{}
	c.Do(func() {
		c.born++
		next.Name = "pod-" + strconv.Itoa(c.born)
	})
	if err := core.CoreV1().Pods(ns).Delete(ctx, p.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	c.Do(func() { c.moved[p.Labels["from"]]++ })
	_, err := core.CoreV1().Pods(ns).Create(ctx, next, metav1.CreateOptions{})
	return err
}
