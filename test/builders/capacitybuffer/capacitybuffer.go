// SPDX-License-Identifier: Apache-2.0

// Package capacitybuffer builds Views and reads Plans, for tests of the controller and its plan.
package capacitybuffer

import (
	"fmt"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
)

const (
	// Namespace is that of MachineDeployments and Reserves, and Shop that of buffers.
	Namespace, Shop = "default", "shop"
	// ByTemplate and ByWorkload are the references of a buffer to a PodTemplate and to a
	// Deployment, as part of its spec in YAML.
	ByTemplate = "podTemplateRef: {name: web}"
	ByWorkload = "scalableRef: {apiGroup: apps, kind: Deployment, name: web}"
)

// Now is the time of all objects.
var Now = time.Date(2026, 3, 2, 11, 0, 0, 0, time.UTC)

// NewBuffer returns one of our strategy with that spec, in YAML.
func NewBuffer(name, spec string, change ...func(*plan.Buffer)) plan.Buffer {
	b := plan.Buffer{Object: &v1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{
		Namespace: Shop, Name: name, Generation: 2, CreationTimestamp: metav1.NewTime(Now), Annotations: map[string]string{},
	}}}
	if err := yaml.UnmarshalStrict([]byte(spec), &b.Object.Spec); err != nil {
		panic(err)
	}
	b.Object.Spec.ProvisioningStrategy = ptr.To(v1beta1.StrategyReserved)
	for _, c := range change {
		c(&b)
	}
	return b
}

// PodSpec returns one container with those requests, as in "cpu=1,memory=1Gi", and whatever else is
// changed.
func PodSpec(requests string, change ...func(*corev1.PodSpec)) corev1.PodSpec {
	s := corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Resources: corev1.ResourceRequirements{Requests: Amounts(requests)}}}}
	for _, c := range change {
		c(&s)
	}
	return s
}

// Amounts returns resources, as in "cpu=1,memory=1Gi".
func Amounts(text string) corev1.ResourceList {
	all := corev1.ResourceList{}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		name, amount, _ := strings.Cut(part, "=")
		all[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	return all
}

// WithTemplate has the buffer's PodTemplate exist.
func WithTemplate(s corev1.PodSpec) func(*plan.Buffer) {
	return func(b *plan.Buffer) {
		b.Template = &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: Shop, Name: "web", Generation: 7}, Template: corev1.PodTemplateSpec{Spec: s}}
	}
}

// WithWorkload has the buffer's workload exist.
func WithWorkload(replicas int32, s corev1.PodSpec) func(*plan.Buffer) {
	return func(b *plan.Buffer) {
		b.Workload = &plan.Workload{Replicas: replicas, Template: &corev1.PodTemplateSpec{Spec: s}}
	}
}

// InPool has the buffer name a MachineDeployment or a worker pool.
func InPool(name string) func(*plan.Buffer) {
	return func(b *plan.Buffer) { b.Object.Annotations[v1beta1.PoolAnnotation] = name }
}

// Chunks returns a buffer with a PodTemplate and a number of chunks.
func Chunks(name string, n int, requests string, change ...func(*plan.Buffer)) plan.Buffer {
	return NewBuffer(name, fmt.Sprintf("{podTemplateRef: {name: web}, replicas: %d}", n), append([]func(*plan.Buffer){WithTemplate(PodSpec(requests))}, change...)...)
}

// Once returns a buffer that fills once, for pods with the label app=web.
func Once(name string, n int, requests string, change ...func(*plan.Buffer)) plan.Buffer {
	labeled := func(b *plan.Buffer) { b.Template.Template.Labels = map[string]string{"app": "web"} }
	return NewBuffer(name, fmt.Sprintf("{podTemplateRef: {name: web}, replicas: %d, refillStrategy: none}", n), append([]func(*plan.Buffer){WithTemplate(PodSpec(requests)), labeled}, change...)...)
}

// Bound returns a pod with the label app=web that was created and bound at that time.
func Bound(name string, at time.Time, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: Shop, Name: name, CreationTimestamp: metav1.NewTime(at), Labels: map[string]string{"app": "web"}}}
	p.Spec = PodSpec("cpu=1", func(s *corev1.PodSpec) { s.NodeName = "node" })
	for _, c := range change {
		c(p)
	}
	return p
}

// Site returns a MachineDeployment with three machines for workload and bounds up to that, whose
// machines have that capacity.
func Site(name, capacity string, limit int, change ...func(*plan.Pool)) plan.Pool {
	d := &machine.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, Labels: map[string]string{}, Annotations: map[string]string{
		machine.BoundsAnnotation: fmt.Sprintf("1:%d", limit),
	}}}
	d.Spec.Replicas = 3
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{corev1.LabelHostname: "n", "pool": name}}}
	n.Status.Allocatable = Amounts(capacity + ",pods=110")
	p := plan.Pool{Deployment: d, Node: n}
	for _, c := range change {
		c(&p)
	}
	return p
}

// Holds gives a MachineDeployment machines in reserve, and the condition that the controller of
// MachineDeployments then reports.
func Holds(ready int, why string) func(*plan.Pool) {
	return func(p *plan.Pool) {
		p.Ready = ready
		status := mcm.ConditionFalse
		if why == reason.Complete {
			status = mcm.ConditionTrue
		}
		p.Deployment.Status.Conditions = []mcm.MachineDeploymentCondition{{Type: machine.ReserveReady, Status: status, Reason: why}}
	}
}

// Annotated gives a MachineDeployment an annotation.
func Annotated(key, value string) func(*plan.Pool) {
	return func(p *plan.Pool) { p.Deployment.Annotations[key] = value }
}

// Quota returns a ResourceQuota of the namespace of buffers.
func Quota(name, hard, used string, change ...func(*corev1.ResourceQuota)) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: Shop, Name: name}, Status: corev1.ResourceQuotaStatus{Hard: Amounts(hard), Used: Amounts(used)}}
	for _, c := range change {
		c(q)
	}
	return q
}

// WithScopes gives a ResourceQuota scopes.
func WithScopes(scopes ...corev1.ResourceQuotaScope) func(*corev1.ResourceQuota) {
	return func(q *corev1.ResourceQuota) { q.Spec.Scopes = scopes }
}

// WithClasses gives a ResourceQuota a selector of priority classes.
func WithClasses(operator corev1.ScopeSelectorOperator, values ...string) func(*corev1.ResourceQuota) {
	return func(q *corev1.ResourceQuota) {
		q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: operator, Values: values},
		}}
	}
}
