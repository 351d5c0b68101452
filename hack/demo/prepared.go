// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/preparation/plan"
)

// prepared has the images of a Deployment pulled on the machines in reserve of a zone, and ends that.
func (s *stage) prepared(ctx context.Context) error {
	if err := s.patch(ctx, zones[0], fmt.Sprintf(`{"metadata":{"annotations":{%q:"[{namespace: default, workloads: [Deployment/steady]}]"}}}`, v1alpha1.PrepareAnnotation)); err != nil {
		return err
	}
	took, err := s.pollUntil(ctx, func(ctx context.Context) (string, bool, error) {
		text, done, err := s.running(ctx, plan.Label, perZone)
		if err != nil || !done {
			return text, false, err
		}
		_, done, err = s.complete(ctx)
		return text, done, err
	})
	if err != nil {
		return err
	}
	s.measured.took("images on two machines in reserve (kwok plays the pulls)", took)
	if err := s.show(ctx, "get", "pods", "-l", plan.Label, "-o", "custom-columns=NAME:.metadata.name,IMAGE:.spec.volumes[*].image.reference,NODE:.spec.nodeName"); err != nil {
		return err
	}
	fmt.Println("\nReal kubelets have pulled the image by now: make bench-ready measures what that saves.")
	if err := s.patch(ctx, zones[0], fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, v1alpha1.PrepareAnnotation)); err != nil {
		return err
	}
	_, err = s.pollUntil(ctx, func(ctx context.Context) (string, bool, error) {
		list, err := s.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: plan.Label})
		if err != nil {
			return "", false, err
		}
		return fmt.Sprintf("pods that hold images: %d", len(list.Items)), len(list.Items) == 0, nil
	})
	return err
}
