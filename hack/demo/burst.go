// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
)

// crowd is how many pods a burst has; two fit on a machine.
const crowd = 6

func (s *stage) burst(ctx context.Context) error {
	if err := s.apply(ctx, "examples/demo/burst.yaml"); err != nil {
		return err
	}
	waits, err := s.started(ctx, "burst", func(ctx context.Context) error { return s.scale(ctx, "burst", crowd) })
	if err != nil {
		return err
	}
	s.report("six pods start, with a reserve: median, last", waits)
	fmt.Println("\nMeanwhile, the reserve is filled again:")
	_, err = s.pollUntil(ctx, s.complete)
	return err
}

// plainBurst raises the machines with the pods, as an autoscaler would that needs no time to
// decide.
func (s *stage) plainBurst(ctx context.Context) error {
	if err := s.apply(ctx, "examples/demo/plain.yaml"); err != nil {
		return err
	}
	waits, err := s.started(ctx, "burst-plain", func(ctx context.Context) error {
		if err := s.scale(ctx, "burst-plain", crowd); err != nil {
			return err
		}
		return s.patch(ctx, "plain", fmt.Sprintf(`{"spec":{"replicas":%d}}`, crowd/2))
	})
	if err != nil {
		return err
	}
	s.report("the same without one, machines asked for at once: median, last", waits)
	if err := s.scale(ctx, "burst-plain", 0); err != nil {
		return err
	}
	return s.patch(ctx, "plain", `{"spec":{"replicas":0}}`)
}

// report adds a row of the median and the last.
func (s *stage) report(what string, waits []time.Duration) {
	slices.Sort(waits)
	text := fmt.Sprintf("%.2f s, %.2f s", waits[len(waits)/2].Seconds(), waits[len(waits)-1].Seconds())
	fmt.Printf("   from creation to running: median and last %s\n", text)
	s.measured.add(what, text)
}

// started calls ask, which creates pods, and returns how long each pod took to start, as a watch
// sees it.
func (s *stage) started(ctx context.Context, app string, ask func(context.Context) error) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	pods := s.kube.CoreV1().Pods(namespace)
	selector := metav1.ListOptions{LabelSelector: "app=" + app}
	list, err := pods.List(ctx, selector)
	if err != nil {
		return nil, err
	}
	selector.ResourceVersion = list.ResourceVersion
	events, err := pods.Watch(ctx, selector)
	if err != nil {
		return nil, err
	}
	if err := ask(ctx); err != nil {
		events.Stop()
		return nil, err
	}
	begun, told := time.Now(), -1
	created, waits := map[string]time.Time{}, map[string]time.Duration{}
	_, err = watchtools.UntilWithoutRetry(ctx, events, func(e watch.Event) (bool, error) {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok {
			return false, fmt.Errorf("watch pods: %v", e.Object)
		}
		if e.Type == watch.Added {
			created[pod.Name] = time.Now()
		}
		if _, known := waits[pod.Name]; !known && pod.Status.Phase == corev1.PodRunning {
			waits[pod.Name] = time.Since(created[pod.Name])
		}
		s.showProgress(time.Since(begun), fmt.Sprintf("%d of %d pods run", len(waits), crowd), len(waits) != told, len(waits) == crowd)
		told = len(waits)
		return told == crowd, nil
	})
	all := make([]time.Duration, 0, crowd)
	for _, wait := range waits {
		all = append(all, wait)
	}
	return all, err
}

// running returns how many pods of a selection are ready, and whether that is the desired number.
func (s *stage) running(ctx context.Context, selector string, wanted int) (string, bool, error) {
	pods, err := s.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return "", false, err
	}
	ready := 0
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil && isReady(pod) {
			ready++
		}
	}
	return fmt.Sprintf("%d of %d pods are ready", ready, wanted), ready >= wanted, nil
}

func isReady(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
