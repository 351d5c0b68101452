// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinetaint_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

const (
	lastApplied = "node.machine.sapcloud.io/last-applied-anno-labels-taints"
	bootTime    = 20 * time.Second
	drainTime   = 10 * time.Second
	settleTime  = 15 * time.Second
)

// cloud does what a machine-controller and its provider do: machines boot, their Nodes get what their templates say, as far as its own
// bookkeeping knows, they fail and recover when told, and go.
type cloud struct {
	*world.Cloud
	// out means that no machine can be created; bare that Nodes register without the taints of their machines.
	out, bare bool
	// broken is a class whose machines cannot be created.
	broken string
	// sick names machines whose Node is not ready.
	sick map[string]bool
	// late names machines that do not boot for now.
	late map[string]bool
	// lost names machines whose Node a restore has left out: they do not recover.
	lost map[string]bool
}

func newCloud(w *world.Waker) *cloud {
	c := &cloud{}
	c.Cloud = &world.Cloud{
		Waker: w, Boot: bootTime, Drain: drainTime, Settle: settleTime, ChangeNode: c.register, SyncNode: syncNode,
		Refused:     func(m *mcmapi.Machine) bool { return c.out || c.broken == m.Spec.Class.Name },
		Unhealthy:   func(m *mcmapi.Machine) bool { return c.sick[m.Name] || c.lost[m.Name] },
		BootBlocked: func(m *mcmapi.Machine) bool { return c.late[m.Name] },
	}
	return c
}

func (c *cloud) set(change func()) { c.Waker.Set(change) }

// register gives a new Node the taints of its machine.
func (c *cloud) register(m *mcmapi.Machine, node *corev1.Node) {
	if c.bare {
		return
	}
	var noted mcmapi.NodeTemplateSpec
	noted.Spec.Taints = m.Spec.NodeTemplateSpec.Spec.Taints
	text, _ := json.Marshal(noted) // it always encodes
	node.Spec.Taints, node.Annotations = noted.Spec.Taints, map[string]string{lastApplied: string(text)}
}

// syncNode brings a Node to what its machine's template says. Only what it has given itself does it take away.
func syncNode(ctx context.Context, core kubernetes.Interface, m *mcmapi.Machine) error {
	node, err := core.CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	var last mcmapi.NodeTemplateSpec
	_ = json.Unmarshal([]byte(node.Annotations[lastApplied]), &last) // absent at first
	want := m.Spec.NodeTemplateSpec
	before := node.DeepCopy()
	for key := range last.Annotations {
		if _, still := want.Annotations[key]; !still {
			delete(node.Annotations, key)
		}
	}
	node.Annotations = maps.Clone(node.Annotations)
	for key, value := range want.Annotations {
		node.Annotations = world.WithEntry(node.Annotations, key, value)
	}
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return slices.Contains(last.Spec.Taints, t) && !slices.Contains(want.Spec.Taints, t)
	})
	for _, taint := range want.Spec.Taints {
		if !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			node.Spec.Taints = append(node.Spec.Taints, taint)
		}
	}
	forgotten := slices.ContainsFunc(last.Spec.Taints, func(t corev1.Taint) bool { return !slices.Contains(want.Spec.Taints, t) })
	if !forgotten && maps.Equal(before.Annotations, node.Annotations) && len(before.Spec.Taints) == len(node.Spec.Taints) {
		return nil
	}
	text, _ := json.Marshal(want) // it always encodes
	node.Annotations = world.WithEntry(node.Annotations, lastApplied, string(text))
	_, err = core.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
	return err
}

// workload is a scheduler with pods that each take a whole machine. Those whose machine goes wait again.
func (c *cluster) workload() world.Scheduler {
	return world.Scheduler{OnePodPerNode: true, NoStatus: !c.reports, Replace: reschedule, Occupied: func(nodes map[string]bool) {
		c.waker.Do(func() { c.occupied = nodes })
	}}
}

// holds reports whether the scheduler last saw or bound pods on a machine.
func (c *cluster) holds(machine string) (yes bool) {
	c.waker.Do(func() { yes = c.occupied[machine] })
	return yes
}

// reschedule replaces a pod whose machine drains or is gone.
func reschedule(ctx context.Context, core kubernetes.Interface, pod *corev1.Pod) error {
	if err := core.CoreV1().Pods(ns).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	_, err := core.CoreV1().Pods(ns).Create(ctx, fixture.Pod(fmt.Sprintf("%s-%d", "pod", time.Now().UnixNano()), replicated, func(p *corev1.Pod) {
		p.Spec.Containers = pod.Spec.Containers
	}), metav1.CreateOptions{})
	return err
}
