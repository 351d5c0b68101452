// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
)

// Scheduler binds pods that wait, the oldest first, to the Node that takes them and has most CPU
// left, and reports those for which there is none.
type Scheduler struct {
	// Whole makes each pod take a whole Node, whatever it requests.
	Whole bool
	// Silent reports no pods.
	Silent bool
	// Refuses is a rule that only the scheduler knows. It may be nil.
	Refuses func(*corev1.Pod, *corev1.Node) bool
	// Replace gets pods whose Node drains or is gone, as controllers of pods do. Without it, such
	// pods stay.
	Replace func(ctx context.Context, core kubernetes.Interface, p *corev1.Pod) error
	// Busy gets the names of the Nodes that have pods, after each look. It may be nil.
	Busy func(nodes map[string]bool)
}

// Look is its part of an Actor.
func (s Scheduler) Look(ctx context.Context, core kubernetes.Interface, _ versioned.Interface) (time.Duration, error) {
	nodes, err := core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	pods, err := core.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	l := scheduling{Scheduler: s, core: core, nodes: nodes.Items, free: map[string]int64{}, busy: map[string]bool{}}
	for _, n := range nodes.Items {
		if l.free[n.Name] = n.Status.Allocatable.Cpu().MilliValue(); s.Whole {
			l.free[n.Name] = 1
		}
	}
	var errs []error
	waiting := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool {
		// Room is kept on a Node for pods that are nominated for it.
		l.free[cmp.Or(p.Spec.NodeName, p.Status.NominatedNodeName)] -= l.wants(&p)
		if p.Spec.NodeName == "" {
			return len(p.Spec.SchedulingGates) > 0
		}
		l.busy[p.Spec.NodeName] = true
		if s.Replace != nil && l.drains(p.Spec.NodeName) {
			errs = append(errs, s.Replace(ctx, core, &p))
		}
		return true
	})
	slices.SortStableFunc(waiting, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for _, p := range waiting {
		errs = append(errs, l.place(ctx, &p))
	}
	if s.Busy != nil {
		s.Busy(l.busy)
	}
	return 0, errors.Join(errs...)
}

// scheduling is one look: which CPU is left on each Node, and which Nodes have pods.
type scheduling struct {
	Scheduler
	core  kubernetes.Interface
	nodes []corev1.Node
	free  map[string]int64
	busy  map[string]bool
}

func (l scheduling) wants(p *corev1.Pod) int64 {
	if l.Whole {
		return 1
	}
	return p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
}

// drains reports whether a Node accepts no pods any more, or is gone.
func (l scheduling) drains(name string) bool {
	i := slices.IndexFunc(l.nodes, func(n corev1.Node) bool { return n.Name == name })
	return i < 0 || l.nodes[i].Spec.Unschedulable
}

// place binds a pod or reports that it waits.
func (l scheduling) place(ctx context.Context, p *corev1.Pod) error {
	pods := l.core.CoreV1().Pods(p.Namespace)
	l.free[p.Status.NominatedNodeName] += l.wants(p)
	if best := l.best(p); best != "" {
		l.free[best] -= l.wants(p)
		l.busy[best] = true
		return pods.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace}, Target: corev1.ObjectReference{Kind: "Node", Name: best}}, metav1.CreateOptions{})
	}
	l.free[p.Status.NominatedNodeName] -= l.wants(p)
	if len(p.Status.Conditions) > 0 || l.Silent {
		return nil
	}
	Unschedulable(p)
	_, err := pods.UpdateStatus(ctx, p, metav1.UpdateOptions{})
	return err
}

// best is the Node that a pod is nominated for, else the one with most CPU left, of those that take
// the pod.
func (l scheduling) best(p *corev1.Pod) string {
	best := ""
	for _, n := range l.nodes {
		switch {
		case !l.takes(&n, p):
		case n.Name == p.Status.NominatedNodeName:
			return n.Name
		case best == "" || l.free[n.Name] > l.free[best]:
			best = n.Name
		}
	}
	return best
}

func (l scheduling) takes(n *corev1.Node, p *corev1.Pod) bool {
	for label, value := range p.Spec.NodeSelector {
		if n.Labels[label] != value {
			return false
		}
	}
	return l.free[n.Name] >= l.wants(p) && !n.Spec.Unschedulable && !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return repels(p, t) }) &&
		(l.Refuses == nil || !l.Refuses(p, n))
}

// repels reports whether a taint keeps a pod away. That of a rollout only prefers other Nodes.
// machine-controller-manager leaves it behind if it cannot write a Node while it goes back to an
// older MachineSet.
func repels(p *corev1.Pod, t corev1.Taint) bool {
	return t.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(p.Spec.Tolerations, func(own corev1.Toleration) bool { return own.Key == t.Key })
}
