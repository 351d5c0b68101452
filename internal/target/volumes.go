// SPDX-License-Identifier: Apache-2.0

package target

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/access"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

// Claims returns the informer of PersistentVolumeClaims.
func (i *Informers) Claims() cache.SharedIndexInformer {
	return i.factory.Core().V1().PersistentVolumeClaims().Informer()
}

// Volumes returns the informer of PersistentVolumes.
func (i *Informers) Volumes() cache.SharedIndexInformer {
	return i.factory.Core().V1().PersistentVolumes().Informer()
}

// Storage finds volumes, and the classes and drivers that create them.
type Storage struct {
	Claims, Volumes, Classes, Drivers cache.Indexer
	// DriversKnown reports whether all drivers have been read.
	DriversKnown func() bool
}

// StorageClasses returns the informer of StorageClasses, which waits while the process lacks the right
// to read them.
func (i *Informers) StorageClasses() cache.SharedIndexInformer {
	return access.Informer(i.factory.InformerFor, i.rights, classesRule, &storagev1.StorageClass{}, func(c kubernetes.Interface) access.Reader[*storagev1.StorageClassList] {
		return c.StorageV1().StorageClasses()
	})
}

// Drivers returns the informer of CSIDrivers, which waits while the process lacks the right to read
// them.
func (i *Informers) Drivers() cache.SharedIndexInformer {
	return access.Informer(i.factory.InformerFor, i.rights, driversRule, &storagev1.CSIDriver{}, func(c kubernetes.Interface) access.Reader[*storagev1.CSIDriverList] {
		return c.StorageV1().CSIDrivers()
	})
}

// Storage returns the stores of all kinds that concern volumes. Do not wait for classes and
// drivers: the process may lack the right to read them, and works without.
func (i *Informers) Storage() Storage {
	classes, drivers := i.StorageClasses(), i.Drivers()
	return Storage{
		Claims: i.Claims().GetIndexer(), Volumes: i.Volumes().GetIndexer(),
		Classes: classes.GetIndexer(), Drivers: drivers.GetIndexer(),
		DriversKnown: func() bool { return drivers.HasSynced() && !i.rights.Lacks(driversRule) },
	}
}

// Rights without which nothing is known about volumes that do not exist yet.
var (
	classesRule = access.Rule{Cluster: "target", Resource: storagev1.Resource("storageclasses"), Without: noVolumes}
	driversRule = access.Rule{Cluster: "target", Resource: storagev1.Resource("csidrivers"), Without: noVolumes}
)

const noVolumes = "Reserve machines are not released for pods whose volumes do not exist yet"

// Lookups returns lookups in the stores.
func (s *Storage) Lookups() *fit.Lookups {
	return &fit.Lookups{
		Claim: func(namespace, name string) *corev1.PersistentVolumeClaim {
			return stores.Find[corev1.PersistentVolumeClaim](s.Claims, namespace+"/"+name)
		},
		Volume: func(name string) *corev1.PersistentVolume {
			return stores.Find[corev1.PersistentVolume](s.Volumes, name)
		},
		Class: func(name string) *storagev1.StorageClass {
			if !s.DriversKnown() {
				return nil // the needs of its driver are unknown
			}
			return stores.Find[storagev1.StorageClass](s.Classes, name)
		},
		Driver: func(name string) *storagev1.CSIDriver { return stores.Find[storagev1.CSIDriver](s.Drivers, name) },
	}
}

func stripClaim(o *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	slim := &corev1.PersistentVolumeClaim{ObjectMeta: withAnnotations(identity(o), o.Annotations)}
	slim.Spec = corev1.PersistentVolumeClaimSpec{VolumeName: bounded(o.Spec.VolumeName), StorageClassName: o.Spec.StorageClassName}
	for _, mode := range o.Spec.AccessModes {
		if mode == corev1.ReadWriteOncePod {
			slim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{mode}
		}
	}
	slim.Status.Phase = o.Status.Phase
	return slim
}

// bounded truncates a name that is longer than any name of an object.
func bounded(name string) string { return name[:min(len(name), 254)] }

func stripVolume(o *corev1.PersistentVolume) *corev1.PersistentVolume {
	slim := &corev1.PersistentVolume{ObjectMeta: withAnnotations(identity(o), o.Annotations)}
	slim.Labels, slim.Spec.NodeAffinity = map[string]string{}, o.Spec.NodeAffinity
	for _, label := range fit.VolumeLabels() {
		if value, exists := o.Labels[label]; exists {
			slim.Labels[label] = value
		}
	}
	return slim
}

func stripClass(o *storagev1.StorageClass) *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta: identity(o), Provisioner: o.Provisioner, VolumeBindingMode: o.VolumeBindingMode, AllowedTopologies: o.AllowedTopologies,
	}
}

func stripDriver(o *storagev1.CSIDriver) *storagev1.CSIDriver {
	return &storagev1.CSIDriver{ObjectMeta: identity(o), Spec: storagev1.CSIDriverSpec{StorageCapacity: o.Spec.StorageCapacity}}
}

// withAnnotations adds the annotations that package fit reads.
func withAnnotations(m metav1.ObjectMeta, annotations map[string]string) metav1.ObjectMeta {
	for _, key := range fit.ClaimAnnotations() {
		if annotations[key] != "" {
			metav1.SetMetaDataAnnotation(&m, key, bounded(annotations[key]))
		}
	}
	return m
}
