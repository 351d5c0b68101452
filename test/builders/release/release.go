// SPDX-License-Identifier: Apache-2.0

// Package release contains pods, Nodes and settings for tests of the controller and its plan.
package release

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/similar"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// Noon is when plans are made.
var Noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// UsualSettings are the defaults for pods of Kubernetes' own scheduler.
var UsualSettings = plan.Settings{
	Schedulers: []string{"default-scheduler"}, Cutoff: plan.DefaultCutoff, Patience: plan.DefaultPatience,
	Even: true, Similar: similar.Defaults(), PoolLabels: []string{pool.WorkerPoolLabel},
}

// Zone is the label of Nodes with their zone.
const Zone = corev1.LabelTopologyZone

// NodeIn returns a Node in a zone, with four CPUs.
func NodeIn(name, zone string) *corev1.Node {
	return fixture.Node(name, func(n *corev1.Node) { n.Labels[Zone] = zone })
}

// Held adds the taint of the reserve to a Node.
func Held(n *corev1.Node) *corev1.Node {
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: v1alpha1.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule})
	return n
}

// Pod returns a pod that requests so many thousandths of a CPU, and that the scheduler has found no
// node for.
func Pod(name string, milli int64, change ...func(*corev1.Pod)) *corev1.Pod {
	app, _, _ := strings.Cut(name, "-")
	return fixture.Pod(name, append([]func(*corev1.Pod){func(p *corev1.Pod) {
		p.UID, p.Labels, p.Spec.SchedulerName = types.UID(name), map[string]string{"app": app}, "default-scheduler"
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(milli, resource.DecimalSI)}
		p.Status.Phase = corev1.PodPending
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	}}, change...)...)
}

// Pods returns n pods like that of Pod. Each has a number after its name.
func Pods(n int, name string, milli int64, change ...func(*corev1.Pod)) []*corev1.Pod {
	var all []*corev1.Pod
	for i := range n {
		all = append(all, Pod(fmt.Sprintf("%s-%d", name, i), milli, change...))
	}
	return all
}

// Untried removes what the scheduler has reported: it has not tried the pod yet.
func Untried(p *corev1.Pod) { p.Status.Conditions = nil }

// InZone restricts a pod to the nodes of a zone.
func InZone(zone string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{Zone: zone} }
}

// InNamespace puts a pod into another namespace than the usual one.
func InNamespace(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Namespace = name }
}

// Apart keeps a pod from nodes that run pods like it.
func Apart(p *corev1.Pod) {
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}},
	}}}
}

// ByReplicaSet sets the owner of a pod to a ReplicaSet.
func ByReplicaSet(set *appsv1.ReplicaSet) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	}
}

// RunBy sets the owner of a pod to a workload; for a Deployment, to a ReplicaSet of it.
func RunBy(namespace, kind, name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Namespace, p.UID = namespace, types.UID(namespace+"/"+p.Name)
		owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID(namespace + name), Controller: ptr.To(true)}
		if kind == "Deployment" {
			owner.Kind, owner.Name = "ReplicaSet", name+"-abc"
			p.Labels = map[string]string{"pod-template-hash": "abc", "app": name}
		}
		p.OwnerReferences = []metav1.OwnerReference{owner}
	}
}

// Raises returns what a plan writes, as in "a+2(a-1 a-2) b+1(b-1)".
func Raises(p plan.Plan) string {
	var words []string
	for _, r := range p.Raises {
		words = append(words, fmt.Sprintf("%s+%d(%s)", strings.TrimPrefix(r.Pool.Key, "default/"), r.By, strings.Join(r.Machines, " ")))
	}
	return strings.Join(words, " ")
}
