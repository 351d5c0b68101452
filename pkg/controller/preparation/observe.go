// SPDX-License-Identifier: Apache-2.0

package preparation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/evenkeel/evenkeel/internal/stores"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/preparation/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// IsAskedFor reports whether an object is a MachineDeployment that asks for something.
func IsAskedFor(item any) bool {
	d, ok := item.(*v1alpha1.MachineDeployment)
	return ok && pool.PrepareText(d) != ""
}

// request is what the machines of a MachineDeployment are prepared for.
type request struct {
	deployment *v1alpha1.MachineDeployment
	all        []asking
	// err is why its annotation cannot be read.
	err error
}

// asking is a list of what is asked for: by who looks after the machines, or by users of namespaces through
// CapacityBuffers.
type asking struct {
	preparations []autoscaling.Preparation
	offered      bool
}

// askedFor returns what the annotations of MachineDeployments and Reserves ask for.
func (c *Controller) askedFor() (requests []request) {
	fromReserves := c.o.Requests.selections()
	for d := range stores.All[*v1alpha1.MachineDeployment](c.deployments) {
		one := request{deployment: d}
		if text := pool.PrepareText(d); text != "" {
			all, err := v1alpha1.ParsePreparations(text)
			one.all, one.err = append(one.all, asking{preparations: all}), err
		}
		one.all = append(one.all, fromReserves.askedOn(d)...)
		requests = append(requests, one)
	}
	return requests
}

// wantedWorkloads returns the workloads whose images are prepared.
func wantedWorkloads(requests []request) map[workload]bool {
	wanted := map[workload]bool{}
	for _, r := range requests {
		for _, a := range r.all {
			for _, p := range a.preparations {
				for _, name := range p.Workloads {
					wanted[workload{p.Namespace, name}] = true
				}
			}
		}
	}
	return wanted
}

// observe returns all MachineDeployments that want something prepared, and pods that pull images for none of them.
// Unread reports whether there may be more requests.
func (c *Controller) observe(requests []request, unread bool) (pools []plan.Pool) {
	pods := c.podsByNode()
	alive := map[attempt]bool{}
	for _, r := range requests {
		one := plan.Pool{Namespace: r.deployment.Namespace, Name: r.deployment.Name, Unread: unread}
		c.readWishes(r, &one)
		if len(one.Wishes) == 0 && one.Failure == nil && !one.Unread {
			continue // what is left of earlier wishes belongs to nobody
		}
		for _, set := range c.source.Sets(r.deployment.UID) {
			for _, m := range c.source.Machines(set.UID) {
				node := pool.NodeOf(m, &c.source)
				if node == nil {
					continue
				}
				one.Machines = append(one.Machines, c.observeMachine(m, node, one.Wishes, pods[node.Name], alive))
				delete(pods, node.Name)
			}
		}
		pools = append(pools, one)
	}
	if left := c.orphans(pods); len(left) > 0 {
		pools = append(pools, plan.Pool{Machines: []plan.Machine{{Pods: left}}})
	}
	slices.SortFunc(pools, func(a, b plan.Pool) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	c.forget(alive)
	return pools
}

// readWishes reads what is to be prepared on the machines of a MachineDeployment.
func (c *Controller) readWishes(r request, one *plan.Pool) {
	if r.err != nil {
		one.Failure = &plan.Failure{Reason: plan.Invalid, Message: fmt.Sprintf("annotation %s: %v", v1alpha1.PrepareAnnotation, r.err)}
	}
	for _, a := range r.all {
		for _, p := range a.preparations {
			if len(p.Images) > 0 {
				one.Add(plan.NewWish(p.Namespace, p.Images, p.ImagePullSecrets, ""), a.offered)
			}
			for _, name := range p.Workloads {
				one.Unread = one.Unread || !c.workloads.isRead(workload{p.Namespace, name})
				switch wish, failure := c.workloads.wishOf(workload{p.Namespace, name}); {
				case wish != nil:
					one.Add(*wish, a.offered)
				case failure != nil && !a.offered:
					one.Failure = cmp.Or(one.Failure, failure)
				}
			}
		}
	}
}

// podsByNode returns the pods that pull images, by Node, including those that no store shows yet.
func (c *Controller) podsByNode() map[string][]*corev1.Pod {
	byNode := map[string][]*corev1.Pod{}
	for _, pod := range stores.List[*corev1.Pod](c.source.Kinds.Pods) {
		byNode[pod.Spec.NodeName] = append(byNode[pod.Spec.NodeName], pod)
	}
	maps.DeleteFunc(c.created, func(_ attempt, pod *corev1.Pod) bool {
		return stores.Find[corev1.Pod](c.source.Kinds.Pods, pod.Namespace+"/"+pod.Name) != nil || c.o.Clock.Since(pod.CreationTimestamp.Time) > refusedFor
	})
	for _, pod := range c.created {
		byNode[pod.Spec.NodeName] = append(byNode[pod.Spec.NodeName], pod)
	}
	return byNode
}

func (c *Controller) observeMachine(m *mcm.Machine, node *corev1.Node, wishes []plan.Wish, pods []*corev1.Pod, alive map[attempt]bool) plan.Machine {
	one := plan.Machine{UID: m.UID, Created: m.CreationTimestamp.Time, Node: node.Name, NodeUID: node.UID, Refused: map[string]plan.Failure{}}
	one.Held = pool.Marked(m) && m.DeletionTimestamp == nil && node.DeletionTimestamp == nil && !pool.Condemned(m)
	one.Able = one.Held && isAble(node)
	for _, pod := range pods {
		p := podOf(pod)
		if p.Done {
			p.Sizes, p.Measuring = c.sizesOf(pod)
		}
		one.Pods = append(one.Pods, p)
	}
	slices.SortFunc(one.Pods, func(a, b plan.Pod) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name)) })
	for _, w := range wishes {
		key := attempt{m.UID, w.Key}
		alive[key] = true
		if r, is := c.refused[key]; is && c.o.Clock.Now().Before(r.until) {
			one.Refused[w.Key] = r.Failure
			c.loop.AddAfter(everything, r.until.Sub(c.o.Clock.Now()))
		}
	}
	return one
}

// podOf reads a pod.
func podOf(pod *corev1.Pod) plan.Pod {
	p := plan.Pod{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Wish: pod.Labels[plan.Label], Created: pod.CreationTimestamp.Time, Deleting: pod.DeletionTimestamp != nil}
	p.Done, p.Over, p.Failure = plan.Judge(pod)
	return p
}

// orphans are pods on Nodes where nothing is to be prepared.
func (c *Controller) orphans(pods map[string][]*corev1.Pod) (all []plan.Pod) {
	for _, node := range slices.Sorted(maps.Keys(pods)) {
		for _, pod := range pods[node] {
			all = append(all, podOf(pod))
		}
	}
	return all
}

// isAble reports whether a pod that is bound to a Node of the reserve starts there now.
func isAble(n *corev1.Node) bool {
	return pool.NodeReady(n) && pool.HasReserveTaint(n.Spec.Taints) && !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeDiskPressure && c.Status == corev1.ConditionTrue
	})
}

// forget forgets machines and pods that are gone.
func (c *Controller) forget(alive map[attempt]bool) {
	shown := map[types.UID]bool{}
	for _, pod := range stores.List[*corev1.Pod](c.source.Kinds.Pods) {
		shown[pod.UID] = true
	}
	maps.DeleteFunc(c.refused, func(a attempt, _ refusal) bool { return !alive[a] })
	maps.DeleteFunc(c.sizes, func(uid types.UID, _ *measurement) bool { return !shown[uid] })
}

// Left reports whether pods are left that pull images.
func Left(ctx context.Context, pods corev1client.PodsGetter) (bool, error) {
	list, err := pods.Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: plan.Label, Limit: 1})
	return err == nil && len(list.Items) > 0, err
}
