// SPDX-License-Identifier: Apache-2.0

package nodegroups

import (
	"context"
	"fmt"
	"slices"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// Offered reports whether all pools of the stored Worker have bounds. The server does not offer
// other pools to cluster-autoscaler, so they would not be scaled.
func Offered(ctx context.Context, reader client.Reader, namespace string) (bool, error) {
	var workers extensionsv1alpha1.WorkerList
	if err := reader.List(ctx, &workers, client.InNamespace(namespace)); err != nil {
		return false, fmt.Errorf("list workers: %w", err)
	}
	return len(workers.Items) > 0 && !slices.ContainsFunc(workers.Items, hasPoolWithoutBounds), nil
}

func hasPoolWithoutBounds(w extensionsv1alpha1.Worker) bool {
	return slices.ContainsFunc(w.Spec.Pools, func(pool extensionsv1alpha1.WorkerPool) bool {
		_, err := machine.ParseBounds(pool.Annotations[machine.BoundsAnnotation])
		return err != nil
	})
}
