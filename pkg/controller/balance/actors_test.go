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

	"github.com/evenkeel/evenkeel/internal/fixture"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

const (
	bootTime  = 30 * time.Second
	drainTime = 10 * time.Second
	// restTime after the last write nothing is left to do, until somebody writes again.
	restTime = bootTime + drainTime
)

// follow does with machines what machine-controller-manager, the machine-taint controller and a cloud do about replicas and shares.
func (c *cluster) follow(ctx context.Context, config *rest.Config) error {
	config.QPS = -1
	a := actor{c: c, sets: map[string]int{}, core: kubernetes.NewForConfigOrDie(config), ours: versioned.NewForConfigOrDie(config)}
	seen, due := -1, time.Time{}
	for ctx.Err() == nil {
		// What failed is tried again; where nothing was written, there is nothing to do before a machine boots or is drained.
		if beats := c.beats(); beats != seen || !due.IsZero() && !time.Now().Before(due) {
			var err error
			if due, err = a.look(ctx); err == nil {
				seen = beats
			}
		}
		c.wait(ctx)
	}
	return nil
}

type actor struct {
	c *cluster
	// sets are the numbers of MachineSets, by MachineDeployment: those of the last look, since machine-controller-manager
	// copies annotations to a MachineSet first, and the number in a write after that.
	sets map[string]int
	core kubernetes.Interface
	ours versioned.Interface
}

// look sees to all machines once, and says when to look again though nothing is written; zero is never.
func (a actor) look(ctx context.Context) (due time.Time, err error) {
	deployments, err := a.ours.MachineV1alpha1().MachineDeployments(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return due, err
	}
	list, err := a.ours.MachineV1alpha1().Machines(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return due, err
	}
	machines := map[string][]*mcm.Machine{}
	for i := range list.Items {
		m := &list.Items[i]
		machines[m.Labels["name"]] = append(machines[m.Labels["name"]], m)
		if at := ends(m); due.IsZero() || !at.IsZero() && at.Before(due) {
			due = at
		}
	}
	var errs []error
	for i := range deployments.Items {
		d := &deployments.Items[i]
		before, known := a.sets[d.Name]
		errs = append(errs, a.follow(ctx, d, machines[d.Name]))
		if known && before != a.sets[d.Name] {
			due = time.Now() // the number comes a look later
		}
	}
	return due, errors.Join(errs...)
}

// ends is when a machine has booted or is drained, zero where it does neither.
func ends(m *mcm.Machine) time.Time {
	switch status := m.Status.CurrentStatus; status.Phase {
	case mcm.MachinePending:
		return status.LastUpdateTime.Add(bootTime)
	case mcm.MachineTerminating:
		return status.LastUpdateTime.Add(drainTime)
	}
	return time.Time{}
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
		if gone, err := a.step(ctx, d, m); gone || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		if live = append(live, m); m.Annotations[v1alpha1.ReserveAnnotation] == "" {
			serving++
		}
	}
	for _, m := range live {
		if serving < replicas && m.Annotations[v1alpha1.ReserveAnnotation] != "" && m.Status.CurrentStatus.Phase == mcm.MachineRunning {
			if err := a.release(ctx, m); err != nil {
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
		if err := a.ours.MachineV1alpha1().Machines(ns).Delete(ctx, live[0].Name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		live = live[1:]
	}
	return nil
}

// named says that a machine is to go before others.
func named(d *v1alpha1.MachineDeployment, m *mcm.Machine) bool {
	return strings.Contains(d.Annotations[machineutils.TriggerDeletionByMCM], m.Name+"~")
}

// dated says that a machine is to go at once, however many are wanted: it was named no later than replicas were changed.
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
	if (m.Annotations[v1alpha1.ReserveAnnotation] == "") != serving {
		n++
	}
	return n
}

func (a actor) make(ctx context.Context, d *v1alpha1.MachineDeployment, reserve bool) error {
	a.c.mu.Lock()
	a.c.born++
	name := fmt.Sprintf("%s-%04d", d.Name, a.c.born)
	a.c.mu.Unlock()
	set, err := a.ours.MachineV1alpha1().MachineSets(ns).Get(ctx, d.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	m := fixture.Machine(name, func(m *mcm.Machine) {
		m.Labels = map[string]string{"name": d.Name, mcm.NodeLabelKey: name}
		m.OwnerReferences = owned("MachineSet", set)
		m.Finalizers = []string{"machine.sapcloud.io/machine-controller-manager"}
		if reserve {
			m.Annotations = map[string]string{v1alpha1.ReserveAnnotation: v1alpha1.Reserve{Since: time.Now().UTC().Truncate(time.Second)}.String()}
		}
	})
	a.c.set(func() { a.c.created++ })
	_, err = a.ours.MachineV1alpha1().Machines(ns).Create(ctx, m, metav1.CreateOptions{})
	return err
}

// step takes a machine's next step, by times of this clock alone: the server's jumps. gone says that it counts no more.
func (a actor) step(ctx context.Context, d *v1alpha1.MachineDeployment, m *mcm.Machine) (gone bool, err error) {
	phase := m.Status.CurrentStatus.Phase
	a.c.mu.Lock()
	out := a.c.out[d.Name]
	a.c.mu.Unlock()
	switch {
	case m.DeletionTimestamp != nil:
		return true, a.end(ctx, m)
	case dated(d, m):
		return true, a.ours.MachineV1alpha1().Machines(ns).Delete(ctx, m.Name, metav1.DeleteOptions{})
	case phase == mcm.MachineRunning:
	case out && phase != mcm.MachineCrashLoopBackOff:
		return false, a.report(ctx, m, mcm.MachineCrashLoopBackOff, "ResourceExhausted")
	case out:
	case phase != mcm.MachinePending:
		return false, a.report(ctx, m, mcm.MachinePending, "")
	case time.Since(m.Status.CurrentStatus.LastUpdateTime.Time) >= bootTime:
		node := fixture.Node(m.Name, func(n *corev1.Node) {
			maps.Copy(n.Labels, map[string]string{
				corev1.LabelTopologyZone: d.Name, corev1.LabelTopologyRegion: "here", corev1.LabelInstanceTypeStable: "large",
				corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
			})
		})
		if m.Annotations[v1alpha1.ReserveAnnotation] != "" {
			node.Spec.Taints = []corev1.Taint{{Key: "reserve", Effect: corev1.TaintEffectNoSchedule}}
		}
		if _, err := a.core.CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{}); err != nil {
			if _, err := a.core.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
				return false, err
			}
		}
		a.c.mu.Lock()
		a.c.made++
		a.c.mu.Unlock()
		return false, a.report(ctx, m, mcm.MachineRunning, "")
	}
	return false, nil
}

func (a actor) report(ctx context.Context, m *mcm.Machine, phase mcm.MachinePhase, code string) error {
	m.Status.CurrentStatus = mcm.CurrentStatus{Phase: phase, LastUpdateTime: metav1.Now()}
	m.Status.LastOperation = mcm.LastOperation{Type: mcm.MachineOperationCreate, State: mcm.MachineStateProcessing, ErrorCode: code, LastUpdateTime: metav1.Now()}
	if code != "" {
		m.Status.LastOperation.State = mcm.MachineStateFailed
	}
	updated, err := a.ours.MachineV1alpha1().Machines(ns).UpdateStatus(ctx, m, metav1.UpdateOptions{})
	if err == nil {
		*m = *updated
	}
	return err
}

func (a actor) release(ctx context.Context, m *mcm.Machine) error {
	node, err := a.core.CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	node.Spec.Taints = nil
	if _, err := a.core.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil {
		return err
	}
	m = m.DeepCopy()
	delete(m.Annotations, v1alpha1.ReserveAnnotation)
	_, err = a.ours.MachineV1alpha1().Machines(ns).Update(ctx, m, metav1.UpdateOptions{})
	return err
}

// end drains a machine and lets it go; its name goes from where it was named.
func (a actor) end(ctx context.Context, m *mcm.Machine) error {
	if m.Status.CurrentStatus.Phase != mcm.MachineTerminating {
		return a.report(ctx, m, mcm.MachineTerminating, "")
	}
	if time.Since(m.Status.CurrentStatus.LastUpdateTime.Time) < drainTime {
		return nil
	}
	if _, err := a.core.CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{}); err == nil {
		if err := a.core.CoreV1().Nodes().Delete(ctx, m.Name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	d, err := a.ours.MachineV1alpha1().MachineDeployments(ns).Get(ctx, m.Labels["name"], metav1.GetOptions{})
	if err == nil && strings.Contains(d.Annotations[machineutils.TriggerDeletionByMCM], m.Name+"~") {
		delete(d.Annotations, machineutils.TriggerDeletionByMCM)
		if _, err := a.ours.MachineV1alpha1().MachineDeployments(ns).Update(ctx, d, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	m.Finalizers = nil
	_, err = a.ours.MachineV1alpha1().Machines(ns).Update(ctx, m, metav1.UpdateOptions{})
	return err
}

// schedule binds each pod to a node of its own, says which find none, and replaces those whose node drains or is gone.
func (c *cluster) schedule(ctx context.Context, config *rest.Config) error {
	config.QPS = -1
	core, ours := kubernetes.NewForConfigOrDie(config), versioned.NewForConfigOrDie(config)
	seen := -1
	for ctx.Err() == nil {
		// What failed is tried again; where nothing was written, there is nothing to do.
		if beats := c.beats(); beats != seen && c.place(ctx, core, ours) == nil {
			seen = beats
		}
		c.wait(ctx)
	}
	return nil
}

func (c *cluster) place(ctx context.Context, core kubernetes.Interface, ours versioned.Interface) error {
	nodes, err := core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	machines, err := ours.MachineV1alpha1().Machines(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	pods, err := core.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	free := map[string]*corev1.Node{}
	for i := range nodes.Items {
		if n := &nodes.Items[i]; len(n.Spec.Taints) == 0 {
			free[n.Name] = n
		}
	}
	for _, m := range machines.Items {
		if m.DeletionTimestamp != nil {
			delete(free, m.Name)
		}
	}
	var waiting []*corev1.Pod
	for i := range pods.Items {
		p := &pods.Items[i]
		switch {
		case p.Spec.NodeName == "":
			waiting = append(waiting, p)
		case free[p.Spec.NodeName] != nil:
			delete(free, p.Spec.NodeName)
		default:
			if err := c.evict(ctx, core, p); err != nil {
				return err
			}
		}
	}
	for _, p := range waiting {
		if err := bind(ctx, core, p, free); err != nil {
			return err
		}
	}
	return nil
}

// evict replaces a pod by one like it.
func (c *cluster) evict(ctx context.Context, core kubernetes.Interface, p *corev1.Pod) error {
	c.mu.Lock()
	c.born++
	next := p.DeepCopy()
	next.Name, next.ResourceVersion, next.UID, next.Spec.NodeName, next.Status = "pod-"+strconv.Itoa(c.born), "", "", "", corev1.PodStatus{}
	c.mu.Unlock()
	if err := core.CoreV1().Pods(ns).Delete(ctx, p.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	c.mu.Lock()
	c.moved[p.Labels["from"]]++
	c.mu.Unlock()
	_, err := core.CoreV1().Pods(ns).Create(ctx, next, metav1.CreateOptions{})
	return err
}

func bind(ctx context.Context, core kubernetes.Interface, p *corev1.Pod, free map[string]*corev1.Node) error {
	for _, name := range slices.Sorted(maps.Keys(free)) {
		if zone := p.Spec.NodeSelector[corev1.LabelTopologyZone]; zone != "" && free[name].Labels[corev1.LabelTopologyZone] != zone {
			continue
		}
		delete(free, name)
		p.Spec.NodeName = name
		_, err := core.CoreV1().Pods(ns).Update(ctx, p, metav1.UpdateOptions{})
		return err
	}
	if len(p.Status.Conditions) > 0 {
		return nil
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	_, err := core.CoreV1().Pods(ns).UpdateStatus(ctx, p, metav1.UpdateOptions{})
	return err
}
