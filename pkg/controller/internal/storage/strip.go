// SPDX-License-Identifier: Apache-2.0

package storage

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/fit"
)

// Strip is a transform for informers of claims, volumes, classes and drivers. It keeps what package fit reads of them, which of a
// claim, an object that any user makes, is of bounded size.
func Strip(item any) (any, error) {
	switch o := item.(type) {
	case *corev1.PersistentVolumeClaim:
		return stripClaim(o), nil
	case *corev1.PersistentVolume:
		slim := &corev1.PersistentVolume{ObjectMeta: identity(o, o.Annotations)}
		slim.Labels, slim.Spec.NodeAffinity = only(o.Labels, fit.VolumeLabels()), o.Spec.NodeAffinity
		return slim, nil
	case *storagev1.StorageClass:
		return &storagev1.StorageClass{
			ObjectMeta: identity(o, nil), Provisioner: o.Provisioner, VolumeBindingMode: o.VolumeBindingMode, AllowedTopologies: o.AllowedTopologies,
		}, nil
	case *storagev1.CSIDriver:
		return &storagev1.CSIDriver{ObjectMeta: identity(o, nil), Spec: storagev1.CSIDriverSpec{StorageCapacity: o.Spec.StorageCapacity}}, nil
	}
	return item, nil
}

func stripClaim(o *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	slim := &corev1.PersistentVolumeClaim{ObjectMeta: identity(o, o.Annotations)}
	slim.Spec = corev1.PersistentVolumeClaimSpec{VolumeName: start(o.Spec.VolumeName), StorageClassName: o.Spec.StorageClassName}
	for _, mode := range o.Spec.AccessModes {
		if mode == corev1.ReadWriteOncePod {
			slim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{mode}
		}
	}
	slim.Status.Phase = o.Status.Phase
	return slim
}

// start is a name, or of one that is too long for any object as much as no object has.
func start(name string) string { return name[:min(len(name), 254)] }

// identity is what names an object, and of its annotations whether those are there that matter.
func identity(o metav1.Object, annotations map[string]string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), DeletionTimestamp: o.GetDeletionTimestamp(),
	}
	for _, key := range fit.ClaimAnnotations() {
		if annotations[key] != "" {
			if meta.Annotations == nil {
				meta.Annotations = map[string]string{}
			}
			meta.Annotations[key] = "yes"
		}
	}
	return meta
}

func only(labels map[string]string, keys []string) map[string]string {
	kept := map[string]string{}
	for _, key := range keys {
		if value, ok := labels[key]; ok {
			kept[key] = value
		}
	}
	return kept
}
