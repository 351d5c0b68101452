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
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// Scheduler binds pods that wait, the oldest first, to the Node that takes them and has most CPU
// left, and reports those for which there is none.
type Scheduler struct {
	// OnePodPerNode makes each pod take a whole Node, whatever it requests.
	OnePodPerNode bool
	// NoStatus makes it write no status of pods that find no Node.
	NoStatus bool
	// Refuses is a rule that only the scheduler knows. It may be nil.
	Refuses func(*corev1.Pod, *corev1.Node) bool
	// Replace gets pods whose Node drains or is gone, as controllers of pods do. Without it, such
	// pods stay.
	Replace func(ctx context.Context, core kubernetes.Interface, p *corev1.Pod) error
	// Occupied gets the names of the Nodes that have pods, after each round. It may be nil.
	Occupied func(nodes map[string]bool)
}

// Reconcile is its part of an Actor.
func (s Scheduler) Reconcile(ctx context.Context, core kubernetes.Interface, _ versioned.Interface) (time.Duration, error) {
	nodes, err := core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	pods, err := core.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	r := schedulingRound{Scheduler: s, core: core, nodes: nodes.Items, free: map[string]int64{}, occupied: map[string]bool{}}
	for _, n := range nodes.Items {
		if r.free[n.Name] = n.Status.Allocatable.Cpu().MilliValue(); s.OnePodPerNode {
			r.free[n.Name] = 1
		}
	}
	var errs []error
	waiting := slices.DeleteFunc(slices.Clone(pods.Items), func(p corev1.Pod) bool {
		if pool.IsNodeAgent(&p) {
			return true
		}
		// Room is kept on a Node for pods that are nominated for it.
		r.free[cmp.Or(p.Spec.NodeName, p.Status.NominatedNodeName)] -= r.cpuRequest(&p)
		if p.Spec.NodeName == "" {
			return len(p.Spec.SchedulingGates) > 0
		}
		r.occupied[p.Spec.NodeName] = true
		if s.Replace != nil && r.isDraining(p.Spec.NodeName) {
			errs = append(errs, s.Replace(ctx, core, &p))
		}
		return true
	})
	slices.SortStableFunc(waiting, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	grouped := map[string][]corev1.Pod{}
	for _, p := range waiting {
		if name := groupOf(&p); name == "" {
			errs = append(errs, r.bind(ctx, &p))
		} else {
			grouped[name] = append(grouped[name], p)
		}
	}
	for _, p := range waiting {
		if members := grouped[groupOf(&p)]; len(members) > 0 && members[0].Name == p.Name {
			errs = append(errs, r.bindGroup(ctx, members, pods.Items))
		}
	}
	if s.Occupied != nil {
		s.Occupied(r.occupied)
	}
	return 0, errors.Join(errs...)
}

// schedulingRound is one call of Reconcile: which CPU is left on each Node, and which Nodes have pods.
type schedulingRound struct {
	Scheduler
	core     kubernetes.Interface
	nodes    []corev1.Node
	free     map[string]int64
	occupied map[string]bool
}

func (r schedulingRound) cpuRequest(p *corev1.Pod) int64 {
	if r.OnePodPerNode {
		return 1
	}
	return p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
}

// isDraining reports whether a Node accepts no pods any more, or is gone.
func (r schedulingRound) isDraining(name string) bool {
	i := slices.IndexFunc(r.nodes, func(n corev1.Node) bool { return n.Name == name })
	return i < 0 || r.nodes[i].Spec.Unschedulable
}

// bind binds a pod, or reports that it waits.
func (r schedulingRound) bind(ctx context.Context, p *corev1.Pod) error {
	r.free[p.Status.NominatedNodeName] += r.cpuRequest(p)
	if name := r.chooseNode(p); name != "" {
		r.free[name] -= r.cpuRequest(p)
		return r.bindTo(ctx, p, name)
	}
	r.free[p.Status.NominatedNodeName] -= r.cpuRequest(p)
	return r.report(ctx, p)
}

func (r schedulingRound) bindTo(ctx context.Context, p *corev1.Pod, name string) error {
	r.occupied[name] = true
	return r.core.CoreV1().Pods(p.Namespace).Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace}, Target: corev1.ObjectReference{Kind: "Node", Name: name}}, metav1.CreateOptions{})
}

// report reports that a pod waits.
func (r schedulingRound) report(ctx context.Context, p *corev1.Pod) error {
	if len(p.Status.Conditions) > 0 || r.NoStatus {
		return nil
	}
	MarkUnschedulable(p)
	_, err := r.core.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{})
	return err
}

// groupOf returns the namespace and the name of a pod's group; empty if it has none.
func groupOf(p *corev1.Pod) string {
	if p.Spec.SchedulingGroup == nil {
		return ""
	}
	return p.Namespace + "/" + ptr.Deref(p.Spec.SchedulingGroup.PodGroupName, "")
}

// bindGroup binds the pods of a group that wait if there is room for enough of them at once. Before
// enough exist, it reports nothing.
func (r schedulingRound) bindGroup(ctx context.Context, waiting, all []corev1.Pod) error {
	group, err := r.core.SchedulingV1alpha2().PodGroups(waiting[0].Namespace).Get(ctx, *waiting[0].Spec.SchedulingGroup.PodGroupName, metav1.GetOptions{})
	if err != nil {
		return written.IgnoreNotFound(err)
	}
	bound, least := 0, 0
	if gang := group.Spec.SchedulingPolicy.Gang; gang != nil {
		least = int(gang.MinCount)
	}
	for i := range all {
		if groupOf(&all[i]) == groupOf(&waiting[0]) && all[i].Spec.NodeName != "" {
			bound++
		}
	}
	if bound+len(waiting) < least {
		return nil
	}
	places := map[int]string{}
	for i := range waiting {
		if name := r.chooseNode(&waiting[i]); name != "" {
			r.free[name] -= r.cpuRequest(&waiting[i])
			places[i] = name
		}
	}
	starts := bound+len(places) >= least
	var errs []error
	for i := range waiting {
		name := places[i]
		switch {
		case name != "" && starts:
			errs = append(errs, r.bindTo(ctx, &waiting[i], name))
			continue
		case name != "":
			r.free[name] += r.cpuRequest(&waiting[i])
		}
		errs = append(errs, r.report(ctx, &waiting[i]))
	}
	return errors.Join(errs...)
}

// chooseNode returns the Node that a pod is nominated for, else the one with most CPU left, of those
// that the pod fits on. It is empty if there is none.
func (r schedulingRound) chooseNode(p *corev1.Pod) string {
	chosen := ""
	for _, n := range r.nodes {
		switch {
		case !r.fits(&n, p):
		case n.Name == p.Status.NominatedNodeName:
			return n.Name
		case chosen == "" || r.free[n.Name] > r.free[chosen]:
			chosen = n.Name
		}
	}
	return chosen
}

func (r schedulingRound) fits(n *corev1.Node, p *corev1.Pod) bool {
	for label, value := range p.Spec.NodeSelector {
		if n.Labels[label] != value {
			return false
		}
	}
	return r.free[n.Name] >= r.cpuRequest(p) && !n.Spec.Unschedulable && !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return repels(p, t) }) &&
		(r.Refuses == nil || !r.Refuses(p, n))
}

// repels reports whether a taint keeps a pod away. That of a rollout only prefers other Nodes.
// machine-controller-manager leaves it behind if it cannot write a Node while it goes back to an
// older MachineSet.
func repels(p *corev1.Pod, t corev1.Taint) bool {
	return t.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(p.Spec.Tolerations, func(own corev1.Toleration) bool { return own.Key == t.Key })
}
