// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// maxDaemons is how many DaemonSets are considered for the part of a machine that they need.
const maxDaemons = 200

// observe collects the view. If a store is behind the answers to our writes, the answers are used.
func (c *Controller) observe() plan.View {
	v := plan.View{FillOnce: c.options.FillOnce, Now: c.options.Clock.Now(), Free: c.free}
	namespaces := map[string]bool{}
	for _, b := range stores.List[*v1beta1.CapacityBuffer](c.buffers) {
		if b.Reserved() && b.DeletionTimestamp == nil {
			v.Buffers = append(v.Buffers, c.buffer(c.statuses.Newest(b)))
			namespaces[b.Namespace] = true
		}
	}
	c.findNewest(v.Buffers)
	once := v.FillOnce && slices.ContainsFunc(v.Buffers, func(b plan.Buffer) bool { return b.Object.FillsOnce() })
	shared := slices.ContainsFunc(v.Buffers, func(b plan.Buffer) bool { return plan.UsesFreeRoom(b.Object) })
	c.podsMatter.Store(once || shared) // before pods are read: a later event is not missed
	taken := map[string]bool{}
	for _, r := range stores.List[*autoscaling.Reserve](c.reserves) {
		if r = c.written.Newest(r); r.Labels[plan.OwnLabel] == "" {
			taken[r.Name] = true
		} else if r.DeletionTimestamp == nil {
			v.Reserves = append(v.Reserves, r)
		}
	}
	if len(v.Buffers) == 0 {
		return v
	}
	for _, q := range stores.List[*corev1.ResourceQuota](c.kinds[resourceQuotas]) {
		if namespaces[q.Namespace] {
			v.Quotas = append(v.Quotas, q)
		}
	}
	for _, d := range stores.List[*machine.MachineDeployment](c.deployments) {
		p := plan.Pool{Deployment: d, Taken: taken[plan.ReserveName(d.Name)]}
		if d.Annotations[machine.BoundsAnnotation] != "" {
			p.Node = pool.SampleNode(pool.Read(d, &c.source, c.options.Clock.Now()))
			_, p.Ready = pool.CountSpares(d, &c.source)
		}
		v.Pools = append(v.Pools, p)
	}
	v.Daemons = c.daemonPods()
	if once {
		v.Bound = c.boundPods()
	}
	if shared {
		v.Serving = c.serving(v.Now)
	}
	return v
}

// serving returns the machines that accept pods, with those that have taken room there.
func (c *Controller) serving(now time.Time) (all []plan.Serving) {
	pods := map[string][]*fit.Pod{}
	for pod := range stores.All[*corev1.Pod](c.pods) {
		if node := placeOf(pod); node != "" {
			pods[node] = append(pods[node], fit.Read(pod, false))
		}
	}
	for _, d := range stores.List[*machine.MachineDeployment](c.deployments) {
		for _, m := range pool.Outline(d, &c.source, now).Machines {
			if acceptsPods(m) {
				all = append(all, plan.Serving{Deployment: d, Node: m.Node, Pods: pods[m.Node.Name]})
			}
		}
	}
	slices.SortFunc(all, func(a, b plan.Serving) int { return cmp.Compare(a.Node.Name, b.Node.Name) })
	return all
}

// acceptsPods reports whether a machine serves and its Node accepts pods, even if a pod tolerates more.
func acceptsPods(m pool.Machine) bool {
	return m.Ready() && !m.Marked() && !m.Leaving() && m.Node != nil && pool.NodeReady(m.Node) && !m.Cordoned() && !m.Tainted() && !pool.HasReserveTaint(m.Node.Spec.Taints)
}

// placeOf returns the node on which a pod has taken room; empty if it has taken none.
func placeOf(pod *corev1.Pod) string {
	if pool.Finished(pod) {
		return ""
	}
	return cmp.Or(pod.Spec.NodeName, pod.Status.NominatedNodeName)
}

// boundPods returns the pods that have a node.
func (c *Controller) boundPods() (all []*corev1.Pod) {
	for pod := range stores.All[*corev1.Pod](c.pods) {
		if pod.Spec.NodeName != "" {
			all = append(all, pod)
		}
	}
	return all
}

// buffer finds what a buffer refers to.
func (c *Controller) buffer(b *v1beta1.CapacityBuffer) plan.Buffer {
	all := plan.Buffer{Object: b, Lacks: c.lacks(resourceQuotas)}
	if ref := b.Spec.PodTemplateRef; ref != nil {
		all.Lacks = cmp.Or(all.Lacks, c.lacks(podTemplates))
		all.Template = stores.Find[corev1.PodTemplate](c.kinds[podTemplates], b.Namespace+"/"+ref.Name)
	}
	if ref := b.Spec.ScalableRef; ref != nil && !plan.Watched(ref) && c.options.Scales != nil {
		all.Scale = c.scales.findScale(b)
	} else if ref != nil && plan.Watched(ref) {
		all.Lacks = cmp.Or(all.Lacks, c.lacks(ref.Kind))
		if w := stores.Find[workload](c.kinds[ref.Kind], b.Namespace+"/"+ref.Name); w != nil && w.Template != nil {
			all.Workload = &w.Workload
		}
	}
	return all
}

// search is that for the newest pod of a workload for which only the scale is known.
type search struct {
	selector labels.Selector
	newest   *corev1.Pod
}

// findNewest finds the newest pod of each workload for which only the scale is known, once for all
// buffers that name it.
func (c *Controller) findNewest(buffers []plan.Buffer) {
	searches, byNamespace := map[string]*search{}, map[string][]*search{}
	searched := func(b plan.Buffer) bool { return b.Scale != nil && b.Scale.Err == nil }
	for _, b := range buffers {
		if searched(b) && searches[keyOf(b.Object)] == nil {
			s := &search{selector: b.Scale.Selector}
			searches[keyOf(b.Object)], byNamespace[b.Object.Namespace] = s, append(byNamespace[b.Object.Namespace], s)
		}
	}
	c.searches.Store(&byNamespace) // before pods are read: a later event is not missed
	if len(searches) == 0 {
		return
	}
	for _, pod := range stores.List[*corev1.Pod](c.pods) {
		for _, s := range byNamespace[pod.Namespace] {
			if !pool.Finished(pod) && isNewer(pod, s.newest) && s.selector.Matches(labels.Set(pod.Labels)) {
				s.newest = pod
			}
		}
	}
	for i, b := range buffers {
		if searched(b) {
			buffers[i].Newest = searches[keyOf(b.Object)].newest
		}
	}
}

// showsShape reports whether a pod may be the newest one of a workload for which only the scale is known.
func (c *Controller) showsShape(item any) bool {
	pod, ok := item.(*corev1.Pod)
	searches := c.searches.Load()
	return ok && searches != nil && !pool.Finished(pod) && pod.DeletionTimestamp == nil &&
		slices.ContainsFunc((*searches)[pod.Namespace], func(s *search) bool { return s.selector.Matches(labels.Set(pod.Labels)) })
}

// isNewer reports whether a pod is newer than another one, which may be nil. Pods that are being
// deleted are the oldest: they count as long as their workload has no other, because it may create
// the next one only when they are gone.
func isNewer(a, b *corev1.Pod) bool {
	switch {
	case b == nil:
		return true
	case (a.DeletionTimestamp == nil) != (b.DeletionTimestamp == nil):
		return a.DeletionTimestamp == nil
	}
	return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) < 0
}

// daemonPods returns the pods that DaemonSets run on a machine, the most important first.
func (c *Controller) daemonPods() (all []*fit.Pod) {
	for _, pod := range target.DaemonPods(stores.List[*appsv1.DaemonSet](c.daemons), maxDaemons, stores.All[*corev1.Pod](c.pods)) {
		all = append(all, pod)
	}
	return all
}
