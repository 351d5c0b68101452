// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// ErrReplicas is returned for a write of replicas while an excess is applied (V10).
var ErrReplicas = errors.New("replicas are shown with the excess and cannot be written here")

// ShowDeployment returns machine-controller-manager's view of a MachineDeployment. The result may
// share parts with d, which is not changed.
func ShowDeployment(d *v1alpha1.MachineDeployment) *v1alpha1.MachineDeployment {
	shown := *d
	shown.Spec.Replicas = visibleReplicas(d)
	shown.Annotations = withoutOurs(d.Annotations)
	return &shown
}

// RestoreDeployment applies a changed view to the stored object.
func RestoreDeployment(stored []byte, after *v1alpha1.MachineDeployment) ([]byte, error) {
	d := &v1alpha1.MachineDeployment{}
	live, err := decodeStored(stored, d)
	if err != nil {
		return nil, err
	}
	before := ShowDeployment(d)
	if after.Spec.Replicas != before.Spec.Replicas && before.Spec.Replicas != d.Spec.Replicas {
		return nil, fmt.Errorf("write %d replicas: %w", after.Spec.Replicas, ErrReplicas)
	}
	written := *after
	written.Annotations = withoutOurs(after.Annotations)
	if !applyChange(live, before, &written) {
		return stored, nil
	}
	keepOurs(live, d.Annotations)
	return json.Marshal(live)
}

// visibleReplicas returns the replicas that the controllers see (V5).
func visibleReplicas(d *v1alpha1.MachineDeployment) int32 {
	base := pool.Workload(d, d.Spec.Replicas)
	if base < 0 {
		return base
	}
	return int32(pool.VisibleReplicas(int(base), pool.AppliedOf(d, d.Spec.Replicas)))
}

// withoutOurs returns the annotations that are not ours; nil if there are none.
func withoutOurs(annotations map[string]string) map[string]string {
	ours := func(key, _ string) bool { return strings.HasPrefix(key, machine.AnnotationPrefix) }
	for key, value := range annotations {
		if ours(key, value) {
			left := maps.Clone(annotations)
			maps.DeleteFunc(left, ours)
			if len(left) == 0 {
				return nil
			}
			return left
		}
	}
	return annotations
}

// keepOurs restores our annotations if a write removed all annotations.
func keepOurs(live tree, stored map[string]string) {
	for key, value := range stored {
		if strings.HasPrefix(key, machine.AnnotationPrefix) {
			branch(live, "metadata", "annotations")[key] = value
		}
	}
}

// applyChange applies the change from one view to another to live, and reports whether there is
// any. The version does not count.
func applyChange[T any](live tree, before, after *T) bool {
	was, is := treeOf(before), treeOf(after)
	delete(branch(was, "metadata"), "resourceVersion")
	delete(branch(is, "metadata"), "resourceVersion")
	if reflect.DeepEqual(was, is) {
		return false
	}
	overlayTree(live, was, is)
	return true
}
