// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"cmp"
	"context"
	"errors"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// preserveTime is longer than any story: a story lets preservation end by an act.
const preserveTime = 1000 * time.Hour

// preserve does what machine-controllers do for preservation: a machine with the annotation gets a
// time at which that ends, and loses the annotation then or when it has recovered.
func (c *cloud) preserve(ctx context.Context, core kubernetes.Interface, ours versioned.Interface) (time.Duration, error) {
	list, err := ours.MachineV1alpha1().Machines(fixture.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, m := range list.Items {
		value := m.Annotations[machineutils.PreserveMachineAnnotationKey]
		if node, err := core.CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{}); err == nil {
			value = cmp.Or(node.Annotations[machineutils.PreserveMachineAnnotationKey], value)
		}
		if m.DeletionTimestamp == nil {
			errs = append(errs, preserveOne(ctx, ours, &m, value))
		}
	}
	return 0, errors.Join(errs...)
}

func preserveOne(ctx context.Context, ours versioned.Interface, m *mcmapi.Machine, value string) (err error) {
	failed := m.Status.CurrentStatus.Phase == mcmapi.MachineFailed
	wanted := value == machineutils.PreserveMachineAnnotationValueNow ||
		failed && (value == machineutils.PreserveMachineAnnotationValueWhenFailed || value == machineutils.PreserveMachineAnnotationValueAutoPreserved)
	expiry, client := m.Status.CurrentStatus.PreserveExpiryTime, ours.MachineV1alpha1().Machines(m.Namespace)
	expired := expiry != nil && time.Now().After(expiry.Time)
	switch {
	case wanted && expiry == nil:
		m.Status.CurrentStatus.PreserveExpiryTime = &metav1.Time{Time: time.Now().Add(preserveTime)}
		_, err = client.UpdateStatus(ctx, m, metav1.UpdateOptions{})
	case (expired || !wanted && value == machineutils.PreserveMachineAnnotationValueAutoPreserved) && m.Annotations[machineutils.PreserveMachineAnnotationKey] != "":
		delete(m.Annotations, machineutils.PreserveMachineAnnotationKey)
		_, err = client.Update(ctx, m, metav1.UpdateOptions{})
	case expiry != nil && !wanted:
		m.Status.CurrentStatus.PreserveExpiryTime = nil
		_, err = client.UpdateStatus(ctx, m, metav1.UpdateOptions{})
	}
	return err
}
