// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/provider/virtual"
)

const shopSize = 6

// outage cuts one zone off. The shop's Balancer moves its replicas, and the reserve of the other
// zones has room for them at once.
func (s *stage) outage(ctx context.Context) error {
	if err := s.apply(ctx, "examples/demo/shop.yaml"); err != nil {
		return err
	}
	allRun := func(ctx context.Context) (string, bool, error) { return s.running(ctx, "service=shop", shopSize) }
	if _, err := s.pollUntil(ctx, allRun); err != nil {
		return err
	}
	fmt.Println("\nZone local-a is cut off: its machines stop responding, and no new ones can be created.")
	faults := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: virtual.FaultsConfigMap},
		Data:       map[string]string{virtual.FaultsKey: "zones:\n  local-a: {outage: true, ready: Unknown}\n"},
	}
	if _, err := s.kube.CoreV1().ConfigMaps(namespace).Create(ctx, faults, metav1.CreateOptions{}); err != nil {
		return err
	}
	// The Balancer counts pods on Nodes that are not ready as lost before Kubernetes does.
	up, err := s.pollUntil(ctx, func(ctx context.Context) (string, bool, error) {
		return s.running(ctx, "service=shop,app!=shop-a", shopSize)
	})
	if err != nil {
		return err
	}
	s.measured.took("a zone fails: until the shop is complete in the other zones", up)
	if err := s.show(ctx, "evenkeel", "status"); err != nil {
		return err
	}
	fmt.Println("\nThe zone recovers.")
	if err := s.kube.CoreV1().ConfigMaps(namespace).Delete(ctx, virtual.FaultsConfigMap, metav1.DeleteOptions{}); err != nil {
		return err
	}
	if _, err := s.pollUntil(ctx, s.returned); err != nil {
		return err
	}
	after, err := s.countMachines(ctx)
	if err == nil && after.readySpare < after.spare {
		fmt.Println("\nThe reserve is not complete yet: some of its machines may still serve in place of those that did not respond, and failed creations are retried.")
	}
	return err
}
