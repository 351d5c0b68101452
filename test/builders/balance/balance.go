// SPDX-License-Identifier: Apache-2.0

// Package balance builds members, machines and pods for tests of the balance controller and its
// plan.
//
//	balance.NewMember("pool-z1", 3, balance.ScaleUp, balance.Applied(3))
package balance

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/similar"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// Noon is when plans are made.
var Noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Born is when machines and pods were created.
var Born = Noon.Add(-time.Hour)

// PoolLabel contains the name of a member's pool.
const PoolLabel = "worker.gardener.cloud/pool"

// NewSettings returns settings that balance only members with a mode of their own.
func NewSettings() plan.Settings {
	return plan.Settings{Enabled: true, Mode: v1alpha1.BalanceOff, Similar: similar.Defaults(), BootPatience: 10 * time.Minute, PoolLabels: []string{PoolLabel}, Unready: pool.DefaultUnreadyLimits()}
}

// Change is one change of a member.
type Change func(*plan.Member)

// NewMember returns a member with this number of replicas, each with a ready machine, in a zone of
// its own.
func NewMember(name string, replicas int, changes ...Change) plan.Member {
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: fixture.Namespace, ResourceVersion: "1" + strconv.Itoa(len(name))}}
	d.Spec.Replicas = int32(replicas)
	room := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("110")}
	labels := func() map[string]string {
		return map[string]string{corev1.LabelTopologyZone: name, corev1.LabelHostname: "fresh." + name}
	}
	m := plan.Member{
		Object:   d,
		Template: &similar.Template{Name: name, Capacity: room, Allocatable: room, Free: room, Labels: labels()},
		Fresh:    fixture.Node("fresh."+name, func(n *corev1.Node) { n.Labels = labels() }),
	}
	for i := range replicas {
		m.Machines = append(m.Machines, NewMachine(fmt.Sprintf("%s-%d", name, i)))
	}
	for _, c := range changes {
		c(&m)
	}
	return m
}

// Annotate sets an annotation.
func Annotate(key, value string) Change {
	return func(m *plan.Member) {
		if m.Object.Annotations == nil {
			m.Object.Annotations = map[string]string{}
		}
		m.Object.Annotations[key] = value
	}
}

// Mode sets the mode by the MachineDeployment's own annotation.
func Mode(m v1alpha1.BalanceMode) Change { return Annotate(v1alpha1.BalanceAnnotation, string(m)) }

// ScaleUp sets the mode in which growth is split.
func ScaleUp(m *plan.Member) { Mode(v1alpha1.BalanceScaleUp)(m) }

// Continuous sets the mode in which machines move, too.
func Continuous(m *plan.Member) { Mode(v1alpha1.BalanceContinuous)(m) }

// Applied sets the applied replicas.
func Applied(n int) Change { return Annotate(v1alpha1.AppliedReplicasAnnotation, strconv.Itoa(n)) }

// ExcessField sets spec.excessReplicas.
func ExcessField(n int32) Change {
	return func(m *plan.Member) { m.Object.Spec.ExcessReplicas = &n }
}

// Excess sets the excess of the pool, as its worker's annotation in the node template.
func Excess(text string) Change {
	return func(m *plan.Member) {
		m.Object.Spec.Template.Spec.NodeTemplateSpec.Annotations = map[string]string{v1alpha1.PoolExcessAnnotation: text}
	}
}

// Labelled sets the name of the pool. It removes all other labels.
func Labelled(pool string) Change {
	return func(m *plan.Member) { m.Object.Labels = map[string]string{PoolLabel: pool} }
}

// Tainted has the machines of a member keep pods away.
func Tainted(m *plan.Member) {
	m.Template.Taints = []corev1.Taint{{Key: "dedicated", Value: "batch", Effect: corev1.TaintEffectNoSchedule}}
	m.Object.Spec.Template.Spec.NodeTemplateSpec.Spec.Taints = m.Template.Taints
}

// NewMachine returns a machine that has been running for an hour.
func NewMachine(name string, changes ...func(*plan.Machine)) plan.Machine {
	o := fixture.Machine(name)
	o.CreationTimestamp = metav1.NewTime(Born)
	o.Labels = map[string]string{mcm.NodeLabelKey: name}
	o.Annotations = map[string]string{}
	o.Status.CurrentStatus = mcm.CurrentStatus{Phase: mcm.MachineRunning, LastUpdateTime: metav1.NewTime(Born)}
	m := plan.Machine{Machine: pool.Machine{Object: o}}
	for _, c := range changes {
		c(&m)
	}
	return m
}

// StoredPod returns a pod of a ReplicaSet that requests one CPU and runs on a Node, unless that is
// empty. It is as the cache of pods contains it.
func StoredPod(name, node string, changes ...func(*corev1.Pod)) *corev1.Pod {
	controller := true
	p := fixture.Pod(name, func(p *corev1.Pod) {
		p.Spec.NodeName = node
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "app", Controller: &controller}}
		p.CreationTimestamp = metav1.NewTime(Born)
	})
	for _, c := range changes {
		c(p)
	}
	return target.StripPod(p)
}

// InZone binds a pod to a zone.
func InZone(zone string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: zone} }
}

// Large has a pod take more than half a machine.
func Large(p *corev1.Pod) {
	p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("3")
}

// Numbers returns the numbers of a text such as "2/1/-".
func Numbers(text string) []int {
	var all []int
	for word := range strings.SplitSeq(text, "/") {
		n := 0
		_, _ = fmt.Sscan(word, &n)
		all = append(all, n)
	}
	return all
}

// Sum returns the sum of the numbers of a text such as "2/1/-".
func Sum(text string) int {
	total := 0
	for _, n := range Numbers(text) {
		total += n
	}
	return total
}
