// SPDX-License-Identifier: Apache-2.0

// Package ownreserves writes Reserves for controllers that create and delete Reserves of their own.
package ownreserves

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	autoscalingclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// Replace writes a Reserve in the place of the present one, which is nil if there is none. With nil
// after it, the present one is deleted. It returns the answer of the API server; nil if there is none,
// and no error if the next sync will see what has happened.
func Replace(ctx context.Context, reserves autoscalingclient.ReserveInterface, before, after *autoscaling.Reserve) (answer *autoscaling.Reserve, err error) {
	switch {
	case after == nil:
		return nil, remove(ctx, reserves, before)
	case before == nil:
		answer, err = reserves.Create(ctx, after, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil, nil // the cache does not show it yet, and will
		}
	default:
		answer, err = reserves.Update(ctx, after, metav1.UpdateOptions{})
	}
	if err != nil {
		return nil, written.IgnoreNotFound(fmt.Errorf("write reserve %s: %w", after.Name, err))
	}
	return answer, nil
}

func remove(ctx context.Context, reserves autoscalingclient.ReserveInterface, r *autoscaling.Reserve) error {
	err := reserves.Delete(ctx, r.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &r.UID, ResourceVersion: &r.ResourceVersion}})
	if err != nil {
		return written.IgnoreNotFound(fmt.Errorf("delete reserve %s: %w", r.Name, err))
	}
	klog.FromContext(ctx).V(2).Info("Deleted a Reserve that nothing needs any more", "reserve", r.Name)
	return nil
}

// DeleteAll deletes all Reserves with a label.
func DeleteAll(ctx context.Context, reserves autoscalingclient.ReserveInterface, label string) error {
	all, err := reserves.List(ctx, metav1.ListOptions{LabelSelector: label})
	if err != nil {
		return fmt.Errorf("list reserves with label %s: %w", label, err)
	}
	var errs []error
	for i := range all.Items {
		errs = append(errs, remove(ctx, reserves, &all.Items[i]))
	}
	return errors.Join(errs...)
}
