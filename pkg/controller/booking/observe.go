// SPDX-License-Identifier: Apache-2.0

package booking

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
	"github.com/evenkeel/evenkeel/pkg/controller/booking/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// maxDaemons is how many DaemonSets are considered for the part of a machine that they need.
const maxDaemons = 200

// observe collects the view. If a store is behind the answers to our writes, the answers are used.
func (c *Controller) observe() plan.View {
	v := plan.View{Now: c.options.Clock.Now()}
	lacks := c.unknown()
	for _, o := range stores.List[*provisioningv1.ProvisioningRequest](c.requests) {
		if o.Reserved() && o.DeletionTimestamp == nil {
			v.Requests = append(v.Requests, c.request(c.statuses.Newest(o), lacks))
		}
	}
	taken := map[string]bool{}
	for _, r := range stores.List[*autoscaling.Reserve](c.reserves) {
		if r = c.written.Newest(r); r.Labels[plan.OwnLabel] == "" {
			taken[r.Name] = true
		} else if r.DeletionTimestamp == nil {
			v.Reserves = append(v.Reserves, r)
		}
	}
	if len(v.Requests) == 0 {
		return v
	}
	using := c.nodesInUse()
	for _, d := range stores.List[*machine.MachineDeployment](c.deployments) {
		s := pool.Read(d, &c.source, v.Now)
		p := plan.Pool{Deployment: d, Node: pool.SampleNode(s), Used: map[string]int{}, Taken: taken[plan.ReserveName(d.Name)]}
		_, p.Ready = pool.CountSpares(d, &c.source)
		for _, m := range s.Machines {
			if m.Node != nil {
				for request := range using[m.Node.Name] {
					p.Used[request]++
				}
			}
		}
		v.Pools = append(v.Pools, p)
	}
	for _, pod := range target.DaemonPods(stores.List[*appsv1.DaemonSet](c.daemons), maxDaemons, stores.All[*corev1.Pod](c.pods)) {
		v.Daemons = append(v.Daemons, pod)
	}
	return v
}

// request finds what a request refers to.
func (c *Controller) request(o *provisioningv1.ProvisioningRequest, lacks string) plan.Request {
	r := plan.Request{Object: o, Lacks: lacks}
	for _, set := range o.Spec.PodSets {
		r.Templates = append(r.Templates, stores.Find[corev1.PodTemplate](c.templates, o.Namespace+"/"+set.PodTemplateRef.Name))
	}
	return r
}

// nodesInUse returns the requests whose pods are on each Node, by namespace/name.
func (c *Controller) nodesInUse() map[string]map[string]bool {
	using := map[string]map[string]bool{}
	for _, p := range stores.List[*corev1.Pod](c.pods) {
		request := machine.RequestOf(p)
		if request == "" || p.Spec.NodeName == "" {
			continue
		}
		if using[p.Spec.NodeName] == nil {
			using[p.Spec.NodeName] = map[string]bool{}
		}
		using[p.Spec.NodeName][p.Namespace+"/"+request] = true
	}
	return using
}

// StripRequest is the transform for the informer of requests. It keeps only the name of a request of
// another class.
func StripRequest(item any) (any, error) {
	o, ok := item.(*provisioningv1.ProvisioningRequest)
	if !ok {
		return item, nil
	}
	slim := &provisioningv1.ProvisioningRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, Generation: o.Generation,
		CreationTimestamp: o.CreationTimestamp, DeletionTimestamp: o.DeletionTimestamp,
	}}
	if o.Reserved() {
		slim.Spec, slim.Status = o.Spec, o.Status
	}
	return slim, nil
}
