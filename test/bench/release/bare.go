// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/provider/virtual"
)

const (
	floorZone, pauseZone = "floor", "pause"
	idle, busy           = "idle", "busy"
)

// node returns a ready Node without a Machine.
func node(name, zone string, taints ...corev1.Taint) *corev1.Node {
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(fmt.Sprint(perMachine)), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone, corev1.LabelHostname: name},
			Annotations: map[string]string{virtual.KwokAnnotation: virtual.KwokFake},
		},
		Spec: corev1.NodeSpec{Taints: taints},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
		}},
	}
}

// prepareBare makes the nodes that are used without machines: as many as the largest burst needs.
func (b *bench) prepareBare(ctx context.Context) error {
	for name, value := range map[string]int32{idle: -100, busy: 100} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if _, err := b.kube.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for i := range largest / perMachine {
		held := corev1.Taint{Key: machine.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}
		for _, n := range []*corev1.Node{node(fmt.Sprintf("%s-%d", floorZone, i), floorZone, held), node(fmt.Sprintf("%s-%d", pauseZone, i), pauseZone)} {
			if _, err := b.kube.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// floor takes the taint off as many nodes as a burst needs.
func (b *bench) floor() way {
	opened := 0
	taint := func(ctx context.Context, taints string) error {
		var running sync.WaitGroup
		errs := make(chan error, opened)
		for i := range opened {
			running.Go(func() {
				_, err := b.kube.CoreV1().Nodes().Patch(ctx, fmt.Sprintf("%s-%d", floorZone, i), types.MergePatchType, fmt.Appendf(nil, `{"spec":{"taints":%s}}`, taints), metav1.PatchOptions{})
				errs <- err
			})
		}
		running.Wait()
		close(errs)
		for err := range errs {
			if err != nil {
				return err
			}
		}
		return nil
	}
	return way{
		name: "floor: taint taken off by hand",
		begin: func(_ context.Context, pods int) (start, error) {
			opened = machinesFor(pods)
			return start{zone: floorZone, react: func(ctx context.Context) error { return taint(ctx, "null") }}, nil
		},
		end: func(ctx context.Context) (int, error) {
			return opened, taint(ctx, fmt.Sprintf(`[{"key":%q,"effect":"NoSchedule"}]`, machine.ReserveTaintKey))
		},
	}
}

// createdBy is the same way with pods of another creator.
func createdBy(c creator, w way) way {
	w.name, w.creator = fmt.Sprintf("%s, %s", w.name, c), c
	return w
}

func machinesFor(pods int) int { return (pods + perMachine - 1) / perMachine }

// preemption has pause pods hold every place, and waits until they do.
func (b *bench) preemption() way {
	made := 0
	return way{
		name: "pause pods preempted", rounds: 3,
		begin: func(ctx context.Context, _ int) (start, error) {
			pods := b.kube.CoreV1().Pods(namespace)
			return start{zone: pauseZone, priority: busy}, poll(ctx, func() (bool, error) {
				list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "burst=pause"})
				if err != nil {
					return false, err
				}
				placed := 0
				for _, p := range list.Items {
					if p.Spec.NodeName != "" {
						placed++
					}
				}
				for range largest - len(list.Items) {
					made++
					if _, err := pods.Create(ctx, workload(fmt.Sprintf("pause-%d", made), pauseZone, idle, "pause"), metav1.CreateOptions{}); err != nil {
						return false, err
					}
				}
				return placed == largest, nil
			})
		},
		end: func(context.Context) (int, error) { return 0, nil },
	}
}
