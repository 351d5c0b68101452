// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"context"
	"fmt"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// The mark of a Node as one write, and what takes it away.
var (
	hold = fmt.Sprintf(`{"metadata":{"annotations":{%q:"bare",%q:"true"}},"spec":{"taints":[{"key":%q,"effect":"NoSchedule"}]}}`,
		machine.ReserveAnnotation, machine.ScaleDownDisabledAnnotation, machine.ReserveTaintKey)
	free = fmt.Sprintf(`{"metadata":{"annotations":{%q:null,%q:null}},"spec":{"taints":[]}}`,
		machine.ReserveAnnotation, machine.ScaleDownDisabledAnnotation)
)

// write is the bare client's patch of a Node.
func (c clients) write(ctx context.Context, node, merge string) error {
	_, err := c.kube.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(merge), metav1.PatchOptions{})
	return err
}

func tainted(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == machine.ReserveTaintKey })
}

// marked reports whether a Machine or a Node carries the whole mark.
func marked(object runtime.Object) bool {
	switch o := object.(type) {
	case *mcm.Machine:
		return o.Annotations[machine.ReserveAnnotation] != ""
	case *corev1.Node:
		return tainted(o) && o.Annotations[machine.ReserveAnnotation] != "" && o.Annotations[machine.ScaleDownDisabledAnnotation] != ""
	}
	return false
}
