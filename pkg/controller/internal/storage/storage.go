// SPDX-License-Identifier: Apache-2.0

// Package storage finds what the volumes of pods stand for, in caches.
package storage

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	storageinformers "k8s.io/client-go/informers/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/pkg/fit"
)

// Stores hold volumes and what they are made by.
type Stores struct {
	Claims, Volumes, Classes, Drivers cache.Indexer
	// DriversKnown says that all drivers have been read.
	DriversKnown func() bool
}

// Follow takes classes and drivers from informers. Nobody is to wait for those: in some clusters we may not read them, and do
// without.
func (s *Stores) Follow(i storageinformers.Interface) error {
	classes, drivers := i.StorageClasses().Informer(), i.CSIDrivers().Informer()
	s.Classes, s.Drivers, s.DriversKnown = classes.GetIndexer(), drivers.GetIndexer(), drivers.HasSynced
	return errors.Join(classes.SetTransform(Strip), drivers.SetTransform(Strip))
}

// Lookups look into the stores as they are then.
func (s *Stores) Lookups() *fit.Lookups {
	return &fit.Lookups{
		Claim: func(namespace, name string) *corev1.PersistentVolumeClaim {
			return find[corev1.PersistentVolumeClaim](s.Claims, namespace+"/"+name)
		},
		Volume: func(name string) *corev1.PersistentVolume { return find[corev1.PersistentVolume](s.Volumes, name) },
		Class: func(name string) *storagev1.StorageClass {
			if !s.DriversKnown() {
				return nil // what its driver needs cannot be told
			}
			return find[storagev1.StorageClass](s.Classes, name)
		},
		Driver: func(name string) *storagev1.CSIDriver { return find[storagev1.CSIDriver](s.Drivers, name) },
	}
}

// find returns nil where there is no such object.
func find[T any](store cache.Indexer, key string) *T {
	item, _, _ := store.GetByKey(key) // fails for no key
	object, _ := item.(*T)
	return object
}
