// SPDX-License-Identifier: Apache-2.0

package preparation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

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

// annotationOf returns what a MachineDeployment asks for itself, or what its pool asks for.
func annotationOf(d *v1alpha1.MachineDeployment) string {
	return cmp.Or(d.Annotations[v1alpha1.PrepareAnnotation], d.Spec.Template.Spec.NodeTemplateSpec.Annotations[v1alpha1.PrepareAnnotation])
}

// IsAskedFor reports whether an object is a MachineDeployment that asks for something.
func IsAskedFor(item any) bool {
	d, ok := item.(*v1alpha1.MachineDeployment)
	return ok && annotationOf(d) != ""
}

// askedFor returns what the machines of a MachineDeployment are prepared for: what its annotation and Reserves
// ask for.
func (c *Controller) askedFor(d *v1alpha1.MachineDeployment) (all []autoscaling.Preparation, err error) {
	if text := annotationOf(d); text != "" {
		all, err = v1alpha1.ParsePreparations(text)
	}
	return append(all, c.o.Requests.of(d)...), err
}

// wantedWorkloads returns the workloads whose images are prepared.
func (c *Controller) wantedWorkloads() (wanted []workload) {
	for d := range stores.All[*v1alpha1.MachineDeployment](c.deployments) {
		all, _ := c.askedFor(d) // an error is reported with the wishes
		for _, p := range all {
			for _, name := range p.Workloads {
				wanted = append(wanted, workload{p.Namespace, name})
			}
		}
	}
	return wanted
}

// observe returns all MachineDeployments that want something prepared or have something left of that.
func (c *Controller) observe() (pools []plan.Pool) {
	pods := c.podsByNode()
	alive := map[attempt]bool{}
	for d := range stores.All[*v1alpha1.MachineDeployment](c.deployments) {
		one := plan.Pool{Namespace: d.Namespace, Name: d.Name}
		c.readWishes(d, &one)
		for _, set := range c.source.Sets(d.UID) {
			for _, m := range c.source.Machines(set.UID) {
				node := pool.NodeOf(m, &c.source)
				if node == nil {
					continue
				}
				one.Machines = append(one.Machines, c.observeMachine(m, node, one.Wishes, pods[node.Name], alive))
				delete(pods, node.Name)
			}
		}
		if len(one.Wishes) > 0 || one.Failure != nil || slices.ContainsFunc(one.Machines, func(m plan.Machine) bool { return len(m.Pods) > 0 }) {
			pools = append(pools, one)
		}
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

// readWishes reads what a MachineDeployment asks for.
func (c *Controller) readWishes(d *v1alpha1.MachineDeployment, one *plan.Pool) {
	all, err := c.askedFor(d)
	if err != nil {
		one.Failure = &plan.Failure{Reason: plan.Invalid, Message: fmt.Sprintf("annotation %s: %v", v1alpha1.PrepareAnnotation, err)}
	}
	add := func(w plan.Wish) {
		if !slices.ContainsFunc(one.Wishes, func(other plan.Wish) bool { return other.Key() == w.Key() }) {
			one.Wishes = append(one.Wishes, w)
		}
	}
	for _, p := range all {
		if len(p.Images) > 0 {
			add(newWish(p.Namespace, p.Images, p.ImagePullSecrets, ""))
		}
		for _, name := range p.Workloads {
			switch wish, failure := c.workloads.wishOf(workload{p.Namespace, name}); {
			case wish != nil:
				add(*wish)
			case failure != nil:
				one.Failure = cmp.Or(one.Failure, failure)
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
	c.mu.Lock()
	defer c.mu.Unlock()
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
			p.Bytes = c.bytesOf(pod, wishes)
		}
		one.Pods = append(one.Pods, p)
	}
	slices.SortFunc(one.Pods, func(a, b plan.Pod) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name)) })
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range wishes {
		key := attempt{m.UID, w.Key()}
		alive[key] = true
		if r, is := c.refused[key]; is && c.o.Clock.Now().Before(r.until) {
			one.Refused[w.Key()] = r.Failure
			c.loop.AddAfter(everything, r.until.Sub(c.o.Clock.Now()))
		}
	}
	return one
}

// podOf reads a pod.
func podOf(pod *corev1.Pod) plan.Pod {
	p := plan.Pod{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Wish: pod.Labels[wishLabel], Created: pod.CreationTimestamp.Time, Deleting: pod.DeletionTimestamp != nil}
	p.Done, p.Over, p.Failure = plan.Judge(pod)
	return p
}

// orphans are pods on Nodes that belong to no Machine.
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

// bytesOf returns the size of what a pod has pulled, 0 until it is known.
func (c *Controller) bytesOf(pod *corev1.Pod, wishes []plan.Wish) int64 {
	c.mu.Lock()
	bytes, known := c.bytes[pod.UID]
	c.mu.Unlock()
	if known || c.ctx == nil {
		return bytes
	}
	for _, w := range wishes {
		if w.Key() == pod.Labels[wishLabel] {
			return c.measure(pod.Spec.NodeName, pod.UID, w.Images)
		}
	}
	return 0
}

// sizeOf returns how large images are on a Node, as far as it says so.
func sizeOf(node *corev1.Node, images []string) (sum int64) {
	for _, one := range node.Status.Images {
		if slices.ContainsFunc(one.Names, func(name string) bool {
			return slices.ContainsFunc(images, func(image string) bool { return sameImage(name, image) })
		}) {
			sum += one.SizeBytes
		}
	}
	return sum
}

// sameImage reports whether a Node's name of an image is that of a reference: a Node writes the registry and
// the tag in full.
func sameImage(name, reference string) bool {
	if !strings.Contains(reference, "@") && !strings.Contains(reference[strings.LastIndexByte(reference, '/')+1:], ":") {
		reference += ":latest"
	}
	return name == reference || name == "docker.io/"+reference || name == "docker.io/library/"+reference
}

// forget forgets machines and pods that are gone.
func (c *Controller) forget(alive map[attempt]bool) {
	shown := map[types.UID]bool{}
	for _, pod := range stores.List[*corev1.Pod](c.source.Kinds.Pods) {
		shown[pod.UID] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.refused, func(a attempt, _ refusal) bool { return !alive[a] })
	maps.DeleteFunc(c.bytes, func(uid types.UID, _ int64) bool { return !shown[uid] })
}

// Left reports whether pods are left that pull images.
func Left(ctx context.Context, pods corev1client.PodsGetter) (bool, error) {
	list, err := pods.Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: wishLabel, Limit: 1})
	return err == nil && len(list.Items) > 0, err
}
