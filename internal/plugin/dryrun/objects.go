// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"maps"
	"slices"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	balancerapi "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer"
)

// Objects are everything that a prediction is based on. None of them is changed.
type Objects struct {
	// At is when they were read.
	At time.Time

	// Objects of the control cluster.
	Deployments []*machine.MachineDeployment
	Sets        []*mcm.MachineSet
	Machines    []*mcm.Machine
	Classes     []*mcm.MachineClass
	Balancers   []*balancerapi.Balancer
	Federated   []*autoscaling.FederatedHorizontalPodAutoscaler
	Reserves    []*autoscaling.Reserve
	// Workloads are what Balancers scale, by resource; machine-controller-manager's kinds are in
	// the fields above. Own are the pods of these workloads, OwnNodes the Nodes of these pods, and
	// Autoscalers the autoscalers of the control cluster.
	Workloads   map[schema.GroupVersionResource][]*unstructured.Unstructured
	Own         []*corev1.Pod
	OwnNodes    []*corev1.Node
	Autoscalers []*autoscalingv2.HorizontalPodAutoscaler
	// Garden reports whether Gardener's kinds are served.
	Garden            bool
	Workers, Clusters []*unstructured.Unstructured

	// Target reports whether there is a target cluster, to which the fields below belong. If it is
	// also the control cluster, Own and OwnNodes are the same as Pods and Nodes.
	Target         bool
	Nodes          []*corev1.Node
	Pods           []*corev1.Pod
	Budgets        []*policyv1.PodDisruptionBudget
	Claims         []*corev1.PersistentVolumeClaim
	Volumes        []*corev1.PersistentVolume
	StorageClasses []*storagev1.StorageClass
	Drivers        []*storagev1.CSIDriver
	Daemons        []*appsv1.DaemonSet
	ReplicaSets    []*appsv1.ReplicaSet
	Jobs           []*batchv1.Job
	PodGroups      []*schedulingv1alpha2.PodGroup
	Slices         []*resourceapi.ResourceSlice
	DeviceClasses  []*resourceapi.DeviceClass
	DeviceClaims   []*resourceapi.ResourceClaim
	ClaimTemplates []*resourceapi.ResourceClaimTemplate
	Buffers        []*v1beta1.CapacityBuffer
	// References are what these refer to, and Referenced changes of it.
	References capacitybuffer.References
	Referenced []Change

	// Missing describes what could not be read, one per line.
	Missing []string
	// Unread is why a resource could not be read although it may have objects, by its plural.
	Unread map[string]string
}

// seesTarget reports whether Nodes and pods are known. Without pods, machines would seem to be empty.
func (o Objects) seesTarget() bool {
	return o.Target && o.Unread["nodes"] == "" && o.Unread["pods"] == ""
}

// ownPods is the name of the pods of the control cluster where the target cluster is another one.
const ownPods = "pods" + ofControl

// seesWorkloads reports whether pods and autoscalers of what Balancers scale are known. Without pods,
// all that are late would seem to be ready.
func (o Objects) seesWorkloads() bool {
	podsUnread := o.Unread[ownPods] != "" || o.Unread["pods"] != "" && len(o.Own) == 0
	return !podsUnread && o.Unread["horizontalpodautoscalers"] == ""
}

// devicesUnknown is why the devices of Nodes are not known; empty if they are.
func (o Objects) devicesUnknown() string {
	for _, kind := range []string{"resourceslices", "deviceclasses"} {
		if why := o.Unread[kind]; why != "" {
			return kind + " could not be read: " + why
		}
	}
	return ""
}

// storageClasses returns the StorageClasses, or none if the drivers could not be read: what a class
// needs depends on its driver.
func (o Objects) storageClasses() []*storagev1.StorageClass {
	if o.Unread["csidrivers"] != "" {
		return nil
	}
	return o.StorageClasses
}

// shelf contains objects of one kind by namespace and name. Objects are never changed, only
// replaced.
type shelf[T metav1.Object] map[string]T

func keyOf(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

func newShelf[T metav1.Object](objects []T) shelf[T] {
	s := shelf[T]{}
	for _, o := range objects {
		s[keyOf(o)] = o
	}
	return s
}

// sorted returns the objects in the order of their keys.
func (s shelf[T]) sorted() []T { return sorted(slices.Collect(maps.Values(s))) }

func sorted[T metav1.Object](list []T) []T {
	slices.SortFunc(list, func(a, b T) int { return strings.Compare(keyOf(a), keyOf(b)) })
	return list
}

// ownedBy returns the objects that an owner controls, in the order of their keys.
func (s shelf[T]) ownedBy(by types.UID) []T {
	var list []T
	for _, o := range s {
		if owner := metav1.GetControllerOfNoCopy(o); owner != nil && owner.UID == by {
			list = append(list, o)
		}
	}
	return sorted(list)
}
