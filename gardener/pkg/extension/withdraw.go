// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bufferv1beta1 "github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	autoscalingclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/autoscaling/v1alpha1"

	"github.com/evenkeel/evenkeel/gardener/pkg/additions"
)

// looks is how often Reserves are listed before their deletion counts as failed.
const looks = 10

// withdraw deletes the right to create Reserves, and then the Reserves of CapacityBuffers. It lists
// them until none is found: the manager may have created one at the last moment. It does so in one
// call, because the library reconciles once for each request of gardenlet. The manager still reads
// Reserves, and gives up the machines of those that are gone.
func (a *actuator) withdraw(ctx context.Context, namespace string) error {
	if err := additions.Revoke(ctx, a.client, namespace); err != nil {
		return err
	}
	reserves, err := a.reserves(namespace)
	if err != nil {
		return err
	}
	for range looks {
		found, err := deleteReserves(ctx, reserves)
		if err != nil || found == 0 {
			return err
		}
		if err := a.pause(ctx); err != nil {
			return err
		}
	}
	return later(errors.New("the Reserves of CapacityBuffers come back: find out who creates them"))
}

// deleteReserves returns how many Reserves of CapacityBuffers it has found.
func deleteReserves(ctx context.Context, reserves autoscalingclient.ReserveInterface) (int, error) {
	found, err := reserves.List(ctx, metav1.ListOptions{LabelSelector: bufferv1beta1.ReserveLabel})
	if apierrors.IsNotFound(err) { // the seed serves no Reserves
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("list reserves of capacity buffers: %w", err)
	}
	for i := range found.Items {
		if err := deleteReserve(ctx, reserves, found.Items[i].Name); err != nil {
			return 0, err
		}
	}
	return len(found.Items), nil
}

// pauseASecond is how long an API server may take to know that a right is gone.
func pauseASecond(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second):
		return nil
	}
}

func deleteReserve(ctx context.Context, reserves autoscalingclient.ReserveInterface, name string) error {
	err := reserves.Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete reserve %s: %w", name, err)
	}
	return nil
}
