// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// rollout replaces every machine of a zone, the reserve too, and counts how often pods had to move.
func (s *stage) rollout(ctx context.Context) error {
	before, err := s.pods(ctx, "local-c")
	if err != nil {
		return err
	}
	round := time.Now().Unix()
	if err := s.patch(ctx, "pool-z3", fmt.Sprintf(`{"spec":{"strategy":{"rollingUpdate":{"maxSurge":4}},"template":{"metadata":{"labels":{"round":"%d"}}}}}`, round)); err != nil {
		return err
	}
	seen := map[types.UID]bool{}
	took, err := s.pollUntil(ctx, func(ctx context.Context) (string, bool, error) {
		now, err := s.pods(ctx, "")
		if err != nil {
			return "", false, err
		}
		for uid := range now {
			seen[uid] = true
		}
		text, done, err := s.complete(ctx)
		return fmt.Sprintf("%s; pods moved so far: %d", text, countGone(before, now)), done, err
	})
	if err != nil {
		return err
	}
	now, err := s.pods(ctx, "")
	if err != nil {
		return err
	}
	s.measured.took("a rolling update of a zone, reserve included", took)
	s.measured.add("pods on its machines, and how many of them moved", fmt.Sprintf("%d, %d", len(before), countGone(before, now)))
	s.measured.add("pods that moved twice", fmt.Sprint(len(seen)-len(now)-countGone(before, now)))
	return nil
}

// pods are the steady workload's by identity, in one zone or in all.
func (s *stage) pods(ctx context.Context, zone string) (map[types.UID]string, error) {
	list, err := s.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=steady"})
	if err != nil {
		return nil, err
	}
	nodes, err := s.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	zoneOf := map[string]string{}
	for _, node := range nodes.Items {
		zoneOf[node.Name] = node.Labels[corev1.LabelTopologyZone]
	}
	pods := map[types.UID]string{}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil && (zone == "" || zoneOf[pod.Spec.NodeName] == zone) {
			pods[pod.UID] = pod.Name
		}
	}
	return pods, nil
}

// countGone is how many of the pods are no longer there.
func countGone(before, now map[types.UID]string) int {
	n := 0
	for uid := range before {
		if _, there := now[uid]; !there {
			n++
		}
	}
	return n
}
