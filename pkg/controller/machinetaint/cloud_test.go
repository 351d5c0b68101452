// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinetaint_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	stock "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/fixture"
	"github.com/evenkeel/evenkeel/internal/sim"
)

const (
	finalizer   = "machine.sapcloud.io/machine-controller-manager"
	lastApplied = "node.machine.sapcloud.io/last-applied-anno-labels-taints"
	bootTime    = 20 * time.Second
	drainTime   = 10 * time.Second
)

// cloud does what a machine-controller and its provider do, once a second: machines boot, their Nodes get what their templates say, as
// far as its own bookkeeping knows, they fail and recover when told, and go.
type cloud struct {
	mu sync.Mutex
	// out says that no machine can be made; bare that Nodes register without the taints of their machines.
	out, bare bool
	// broken is the class of which no machine can be made.
	broken string
	// sick names machines whose Node is not ready.
	sick map[string]bool
	// late names machines that do not boot for now.
	late map[string]bool
	// lost names machines whose Node a restore has left out: they do not recover.
	lost map[string]bool
	// drain is how long a machine takes to go.
	drain time.Duration
	// told says that something of this was set since it looked last.
	externalUpdates bool

	version  func() string
	machines stock.Interface
	nodes    kubernetes.Interface
	pulse    *pulse
}

// pulse makes those who look at everything look every second while things happen, seldom a while after, and then not until something
// is written again.
type pulse struct {
	mu   sync.Mutex
	last time.Time
	beat chan struct{}
	// held are the machines that pods run on, as the workload last saw or bound them.
	held map[string]bool
}

func (p *pulse) busy() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.held))
}

func (p *pulse) hold(nodes map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = nodes
}

func newPulse() *pulse { return &pulse{last: time.Now(), beat: make(chan struct{})} }

// wrote is a hook of the server. Leases, which are renewed for ever, are nobody's concern.
func (p *pulse) wrote(w sim.Write) error {
	if w.Resource == "leases" {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
	close(p.beat)
	p.beat = make(chan struct{})
	return nil
}

func (p *pulse) wait(ctx context.Context) {
	p.mu.Lock()
	beat, since := p.beat, time.Since(p.last)
	p.mu.Unlock()
	pause := time.Second
	switch {
	case since > 15*time.Minute:
		pause = 1000 * time.Hour
	case since > time.Minute:
		pause = 30 * time.Second
	default:
		beat = nil
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-beat:
	case <-timer.C:
	}
}

func (c *cloud) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	c.externalUpdates = true
}

// heard tells whether something was set since it was asked last.
func (c *cloud) heard() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	told := c.externalUpdates
	c.externalUpdates = false
	return told
}

func (c *cloud) run(ctx context.Context, config *rest.Config) error {
	config.QPS = -1
	c.machines, c.nodes = stock.NewForConfigOrDie(config), kubernetes.NewForConfigOrDie(config)
	seen, waits := "", true
	for ctx.Err() == nil {
		if version, told := c.version(), c.heard(); waits || told || version != seen {
			seen, waits = version, c.look(ctx)
		}
		c.pulse.wait(ctx)
	}
	return nil
}

// look takes the next step of each machine. It waits where it has to look again though nothing is written.
func (c *cloud) look(ctx context.Context) (waits bool) {
	list, err := c.machines.MachineV1alpha1().Machines(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return true
	}
	for _, m := range list.Items {
		failed := c.act(ctx, &m) != nil
		waits = waits || failed || m.DeletionTimestamp != nil || m.Status.CurrentStatus.Phase != mcmapi.MachineRunning
	}
	return waits
}

// act takes a machine's next step.
func (c *cloud) act(ctx context.Context, m *mcmapi.Machine) error {
	c.mu.Lock()
	out, sick := c.out || c.broken == m.Spec.Class.Name, c.sick[m.Name] || c.lost[m.Name]
	c.mu.Unlock()
	phase := m.Status.CurrentStatus.Phase
	switch {
	case m.DeletionTimestamp != nil:
		return c.end(ctx, m)
	case !slices.Contains(m.Finalizers, finalizer):
		m.Finalizers = append(m.Finalizers, finalizer)
		return c.update(ctx, m)
	case m.Spec.ProviderID == "" && out:
		if phase == mcmapi.MachineCrashLoopBackOff {
			return nil
		}
		return c.report(ctx, m, mcmapi.MachineCrashLoopBackOff, mcmapi.MachineStateFailed, "ResourceExhausted")
	case m.Spec.ProviderID == "":
		if m.Spec.ProviderID, m.Labels = "sim:///"+m.Name, with(m.Labels, "node", m.Name); m.Annotations["machinepriority.machine.sapcloud.io"] == "" {
			m.Annotations = with(m.Annotations, "machinepriority.machine.sapcloud.io", "3")
		}
		return c.update(ctx, m)
	case phase == "" || phase == mcmapi.MachineCrashLoopBackOff:
		return c.report(ctx, m, mcmapi.MachinePending, mcmapi.MachineStateProcessing, "")
	case phase == mcmapi.MachinePending:
		return c.boot(ctx, m)
	case phase == mcmapi.MachineRunning && sick:
		return c.report(ctx, m, mcmapi.MachineUnknown, mcmapi.MachineStateProcessing, "")
	case phase == mcmapi.MachineUnknown && !sick:
		return c.report(ctx, m, mcmapi.MachineRunning, mcmapi.MachineStateSuccessful, "")
	case phase == mcmapi.MachineUnknown && time.Since(m.Status.CurrentStatus.LastUpdateTime.Time) > 10*time.Minute:
		return c.report(ctx, m, mcmapi.MachineFailed, mcmapi.MachineStateFailed, "")
	case phase == mcmapi.MachineFailed:
		return nil
	}
	return c.keep(ctx, m)
}

func (c *cloud) boot(ctx context.Context, m *mcmapi.Machine) error {
	if time.Since(m.CreationTimestamp.Time) < bootTime {
		return nil
	}
	if _, err := c.nodes.CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{}); err == nil {
		return c.report(ctx, m, mcmapi.MachineRunning, mcmapi.MachineStateSuccessful, "")
	}
	c.mu.Lock()
	bare, late := c.bare, c.late[m.Name]
	c.mu.Unlock()
	if late {
		return nil
	}
	node := fixture.Node(m.Name)
	if !bare {
		var noted mcmapi.NodeTemplateSpec
		noted.Spec.Taints = m.Spec.NodeTemplateSpec.Spec.Taints
		text, _ := json.Marshal(noted) // it always encodes
		node.Spec.Taints, node.Annotations = noted.Spec.Taints, map[string]string{lastApplied: string(text)}
	}
	_, err := c.nodes.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	return err
}

// keep brings a Node to what its machine's template says. Only what it has given itself does it take away.
func (c *cloud) keep(ctx context.Context, m *mcmapi.Machine) error {
	node, err := c.nodes.CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	var last mcmapi.NodeTemplateSpec
	_ = json.Unmarshal([]byte(node.Annotations[lastApplied]), &last) // absent at first
	want := m.Spec.NodeTemplateSpec
	before := node.DeepCopy()
	for key := range last.Annotations {
		if _, still := want.Annotations[key]; !still {
			delete(node.Annotations, key)
		}
	}
	node.Annotations = maps.Clone(node.Annotations)
	for key, value := range want.Annotations {
		node.Annotations = with(node.Annotations, key, value)
	}
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return slices.Contains(last.Spec.Taints, t) && !slices.Contains(want.Spec.Taints, t)
	})
	for _, taint := range want.Spec.Taints {
		if !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			node.Spec.Taints = append(node.Spec.Taints, taint)
		}
	}
	forgotten := slices.ContainsFunc(last.Spec.Taints, func(t corev1.Taint) bool { return !slices.Contains(want.Spec.Taints, t) })
	if !forgotten && maps.Equal(before.Annotations, node.Annotations) && len(before.Spec.Taints) == len(node.Spec.Taints) {
		return nil
	}
	text, _ := json.Marshal(want) // it always encodes
	node.Annotations = with(node.Annotations, lastApplied, string(text))
	_, err = c.nodes.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
	return err
}

func (c *cloud) end(ctx context.Context, m *mcmapi.Machine) error {
	c.mu.Lock()
	drain := c.drain
	c.mu.Unlock()
	if m.Status.CurrentStatus.Phase != mcmapi.MachineTerminating {
		return c.report(ctx, m, mcmapi.MachineTerminating, mcmapi.MachineStateProcessing, "")
	}
	if time.Since(m.DeletionTimestamp.Time) < drain {
		_, err := c.nodes.CoreV1().Nodes().Patch(ctx, m.Name, types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
		return err
	}
	if err := c.nodes.CoreV1().Nodes().Delete(ctx, m.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	m.Finalizers = nil
	return c.update(ctx, m)
}

func (c *cloud) update(ctx context.Context, m *mcmapi.Machine) error {
	_, err := c.machines.MachineV1alpha1().Machines(ns).Update(ctx, m, metav1.UpdateOptions{})
	return err
}

func (c *cloud) report(ctx context.Context, m *mcmapi.Machine, phase mcmapi.MachinePhase, state mcmapi.MachineState, code string) error {
	operation := mcmapi.MachineOperationCreate
	if phase == mcmapi.MachineTerminating {
		operation = mcmapi.MachineOperationDelete
	}
	now := metav1.Now()
	m.Status.CurrentStatus = mcmapi.CurrentStatus{Phase: phase, LastUpdateTime: now}
	m.Status.LastOperation = mcmapi.LastOperation{Description: string(operation), LastUpdateTime: now, State: state, Type: operation, ErrorCode: code}
	_, err := c.machines.MachineV1alpha1().Machines(ns).UpdateStatus(ctx, m, metav1.UpdateOptions{})
	return err
}

func with(m map[string]string, key, value string) map[string]string {
	m = maps.Clone(m)
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

// workload is a scheduler with pods that each take a whole machine: those that wait are bound to machines that take them, those
// whose machine goes wait again.
func (c *cluster) workload(ctx context.Context, config *rest.Config) error {
	config.QPS = -1
	core := kubernetes.NewForConfigOrDie(config)
	seen := ""
	for ctx.Err() == nil {
		// What failed is tried again; where nothing was written, there is nothing to do.
		if version := c.Version(); version != seen && c.schedule(ctx, core) == nil {
			seen = version
		}
		c.pulse.wait(ctx)
	}
	return nil
}

// repels reports whether a taint keeps pods away. That of a rollout only prefers other Nodes; machine-controller-manager leaves it
// behind where it cannot write a Node, as it goes back to an older MachineSet.
func repels(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }

func (c *cluster) schedule(ctx context.Context, core kubernetes.Interface) error {
	nodes, err := core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	pods, err := core.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	free := map[string]bool{}
	for _, n := range nodes.Items {
		free[n.Name] = !slices.ContainsFunc(n.Spec.Taints, repels) && !n.Spec.Unschedulable
	}
	held := map[string]bool{}
	defer func() { c.pulse.hold(held) }()
	var waiting []corev1.Pod
	for _, pod := range pods.Items {
		usable, there := free[pod.Spec.NodeName], pod.Spec.NodeName != ""
		held[pod.Spec.NodeName] = there
		switch {
		case !there:
			waiting = append(waiting, pod)
		case usable:
			free[pod.Spec.NodeName] = false
		default:
			if err := reschedule(ctx, core, pod, nodes.Items); err != nil {
				return err
			}
		}
	}
	for _, pod := range waiting {
		if err := c.report(ctx, core, &pod, free); err != nil {
			return err
		}
		for _, n := range slices.Sorted(maps.Keys(free)) {
			if free[n] {
				free[n] = false
				pod.Spec.NodeName = n
				held[n] = true
				if _, err := core.CoreV1().Pods(ns).Update(ctx, &pod, metav1.UpdateOptions{}); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

// report tells of a pod that waits, and for which there is no Node.
func (c *cluster) report(ctx context.Context, core kubernetes.Interface, pod *corev1.Pod, free map[string]bool) error {
	if !c.reports || len(pod.Status.Conditions) > 0 || slices.Contains(slices.Collect(maps.Values(free)), true) {
		return nil
	}
	pod.Status.Phase = corev1.PodPending
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	updated, err := core.CoreV1().Pods(ns).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	if err == nil {
		*pod = *updated
	}
	return err
}

// reschedule replaces a pod whose machine drains or is gone.
func reschedule(ctx context.Context, core kubernetes.Interface, pod corev1.Pod, nodes []corev1.Node) error {
	stays := slices.ContainsFunc(nodes, func(n corev1.Node) bool { return n.Name == pod.Spec.NodeName && !n.Spec.Unschedulable })
	if stays {
		return nil
	}
	if err := core.CoreV1().Pods(ns).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	_, err := core.CoreV1().Pods(ns).Create(ctx, fixture.Pod(fmt.Sprintf("%s-%d", "pod", time.Now().UnixNano()), replicated, func(p *corev1.Pod) {
		p.Spec.Containers = pod.Spec.Containers
	}), metav1.CreateOptions{})
	return err
}
