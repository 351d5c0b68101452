// SPDX-License-Identifier: Apache-2.0

package nodegroups

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gardener/gardener/pkg/controllerutils"
	kubernetesutils "github.com/gardener/gardener/pkg/utils/kubernetes"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Ensure creates and updates the objects of a Shoot. It writes only those that differ.
func Ensure(ctx context.Context, c client.Client, namespace string, r Rotation, now time.Time) error {
	there, err := read(ctx, c, namespace)
	if err != nil {
		return err
	}
	next, err := there.Next(namespace, r, now)
	if err != nil {
		return err
	}
	// The authority comes first: without it, certificates that it has signed are useless.
	for _, wanted := range []*corev1.Secret{
		secret(namespace, AuthorityName, next.Authority), secret(namespace, ServerName, next.Server), secret(namespace, ClientName, next.Client),
	} {
		object := wanted.DeepCopy()
		if err := write(ctx, c, object, func() { object.Data = wanted.Data }); err != nil {
			return err
		}
	}
	wanted := service(namespace)
	object := wanted.DeepCopy()
	return write(ctx, c, object, func() {
		object.Spec.Selector = wanted.Spec.Selector
		object.Spec.Ports = kubernetesutils.ReconcileServicePorts(object.Spec.Ports, wanted.Spec.Ports, corev1.ServiceTypeClusterIP)
	})
}

func write(ctx context.Context, c client.Client, object client.Object, change func()) error {
	_, err := controllerutils.GetAndCreateOrMergePatch(ctx, c, object, func() error {
		change()
		return nil
	}, controllerutils.SkipEmptyPatch{})
	if err != nil {
		return fmt.Errorf("write %T %s: %w", object, object.GetName(), err)
	}
	return nil
}

// read returns the present objects.
func read(ctx context.Context, c client.Reader, namespace string) (Certificates, error) {
	var there Certificates
	var errs []error
	for name, data := range map[string]*map[string][]byte{AuthorityName: &there.Authority, ServerName: &there.Server, ClientName: &there.Client} {
		var s corev1.Secret
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &s); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("get secret %s: %w", name, err))
		}
		*data = s.Data
	}
	return there, errors.Join(errs...)
}

// Remove deletes the objects of a Shoot. No pod that may still start must need them.
func Remove(ctx context.Context, c client.Client, namespace string) error {
	var errs []error
	for _, object := range []client.Object{
		service(namespace), secret(namespace, ClientName, nil), secret(namespace, ServerName, nil), secret(namespace, AuthorityName, nil),
	} {
		if err := client.IgnoreNotFound(c.Delete(ctx, object)); err != nil {
			errs = append(errs, fmt.Errorf("delete %T %s: %w", object, object.GetName(), err))
		}
	}
	return errors.Join(errs...)
}
