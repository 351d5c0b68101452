// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/evenkeel/evenkeel/gardener/pkg/mutation"
)

// apply takes a step, and reports whether it has changed what the plan was made for.
func (r *reconciler) apply(ctx context.Context, s *shoot, step Step) (bool, error) {
	before, target, patch := s.view(), s.manager, client.RawPatch(types.MergePatchType, []byte("{}"))
	switch step {
	case TouchAutoscaler:
		target = s.autoscaler
	case RestoreAutoscaler:
		target = s.autoscaler
		patch = client.StrategicMergeFrom(target.DeepCopy(), client.MergeFromWithOptimisticLock{}) // what gardenlet writes meanwhile stays
		mutation.RestoreAutoscaler(target)
	}
	if target.Name == "" { // the manager does not exist
		return false, nil
	}
	if err := r.client.Patch(ctx, target, patch); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("%s: %w", step, err)
	}
	after := s.view()
	return after.Served != before.Served || after.Upstream != before.Upstream, nil
}
