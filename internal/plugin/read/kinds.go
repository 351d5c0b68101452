// SPDX-License-Identifier: Apache-2.0

package read

import (
	"cmp"
	"context"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/target"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	balancer "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
	"github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// The kinds of whose absence something would be concluded.
const (
	deployments = "machinedeployments"
	sets        = "machinesets"
	machines    = "machines"
	nodes       = "nodes"
	pods        = "pods"
	reserves    = "reserves"
)

// The kinds from which devices are counted.
const (
	deviceSlices  = "resourceslices"
	deviceClasses = "deviceclasses"
)

// markUnknown records that not all objects of a kind were read.
func markUnknown(o *overview.Objects, kind string) {
	switch kind {
	case deployments, sets, machines:
		o.MachinesUnknown = true
	case nodes:
		o.NodesUnknown = true
	case pods:
		o.PodsUnknown = true
	}
}

// kind is one kind of objects to read.
type kind struct {
	// name is its plural, as in a URL.
	name string
	// control reports whether it is in the control cluster.
	control bool
	// optional reports whether most clusters do without it, so that its absence is no news.
	optional bool
	example  runtime.Object
	list     func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch    func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// client contains the methods that all typed clients have in common.
type client[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

func newKind[L runtime.Object](name string, control bool, example runtime.Object, c client[L]) kind {
	return kind{
		name: name, control: control, example: example, watch: c.Watch,
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return c.List(ctx, o) },
	}
}

// kinds returns all kinds to read.
func (c Clusters) kinds() []kind {
	machine := c.Control.MachineV1alpha1()
	all := []kind{
		newKind(deployments, true, &v1alpha1.MachineDeployment{}, machine.MachineDeployments(c.Namespace)),
		newKind(sets, true, &mcm.MachineSet{}, machine.MachineSets(c.Namespace)),
		newKind(machines, true, &mcm.Machine{}, machine.Machines(c.Namespace)),
		newKind("machineclasses", true, &mcm.MachineClass{}, machine.MachineClasses(c.Namespace)),
		newKind("balancers", true, &balancer.Balancer{}, c.Control.BalancerV1alpha1().Balancers(c.Namespace)),
		newKind("federatedhorizontalpodautoscalers", true, &autoscaling.FederatedHorizontalPodAutoscaler{},
			c.Control.AutoscalingV1alpha1().FederatedHorizontalPodAutoscalers(c.Namespace)),
		newKind(reserves, true, &autoscaling.Reserve{}, c.Control.AutoscalingV1alpha1().Reserves(c.Namespace)),
	}
	if c.Target != nil {
		core := c.Target.CoreV1()
		all = append(all, newKind(nodes, false, &corev1.Node{}, core.Nodes()), newKind(pods, false, &corev1.Pod{}, core.Pods("")))
	}
	if c.Buffers != nil {
		buffers := newKind("capacitybuffers", false, &v1beta1.CapacityBuffer{}, c.Buffers.CapacityBuffers(""))
		buffers.optional = true
		all = append(all, buffers)
	}
	if c.Requests != nil {
		requests := newKind("provisioningrequests", false, &provisioningv1.ProvisioningRequest{}, c.Requests.ProvisioningRequests(""))
		requests.optional = true
		all = append(all, requests)
	}
	return all
}

// deviceKinds returns the kinds to read if an excess names devices. Slices are large.
func (c Clusters) deviceKinds() []kind {
	devices := c.Target.ResourceV1()
	return []kind{
		newKind(deviceSlices, false, &resourceapi.ResourceSlice{}, devices.ResourceSlices()),
		newKind(deviceClasses, false, &resourceapi.DeviceClass{}, devices.DeviceClasses()),
	}
}

// namesDevices reports whether the excess of a MachineDeployment or a Reserve names devices.
func namesDevices(o overview.Objects) bool {
	return len(plan.View{Reserves: o.Reserves}.DeviceClasses()) > 0 ||
		slices.ContainsFunc(o.Deployments, func(d *v1alpha1.MachineDeployment) bool { return len(pool.DeviceClasses(d)) > 0 })
}

// countDevices lets devices be counted. whyNot is why a kind was not read; empty if it was.
func countDevices(o *overview.Objects, whyNot func(kind string) string) {
	unknown := ""
	for _, kind := range []string{deviceSlices, deviceClasses} {
		if why := whyNot(kind); why != "" {
			unknown = cmp.Or(unknown, kind+" could not be read: "+why)
		}
	}
	o.Devices = target.CountsOf(o.Slices, o.DeviceClasses, unknown)
}

// collect adds an object to the field for its kind.
func collect(o *overview.Objects, item any) {
	switch item := item.(type) {
	case *v1alpha1.MachineDeployment:
		o.Deployments = append(o.Deployments, item)
	case *mcm.MachineSet:
		o.Sets = append(o.Sets, item)
	case *mcm.Machine:
		o.Machines = append(o.Machines, item)
	case *mcm.MachineClass:
		o.Classes = append(o.Classes, item)
	case *balancer.Balancer:
		o.Balancers = append(o.Balancers, item)
	case *autoscaling.FederatedHorizontalPodAutoscaler:
		o.Federated = append(o.Federated, item)
	case *autoscaling.Reserve:
		o.Reserves = append(o.Reserves, item)
	case *v1beta1.CapacityBuffer:
		o.Buffers = append(o.Buffers, item)
	case *provisioningv1.ProvisioningRequest:
		o.Requests = append(o.Requests, item)
	case *corev1.Node:
		o.Nodes = append(o.Nodes, item)
	case *resourceapi.ResourceSlice:
		o.Slices = append(o.Slices, item)
	case *resourceapi.DeviceClass:
		o.DeviceClasses = append(o.DeviceClasses, item)
	case *corev1.Pod:
		o.Pods = append(o.Pods, item)
	}
}
