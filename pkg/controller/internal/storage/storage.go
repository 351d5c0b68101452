// SPDX-License-Identifier: Apache-2.0

// Package storage finds what the volumes of pods stand for, in caches.
package storage

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/access"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

// Stores hold volumes and what they are made by.
type Stores struct {
	Claims, Volumes, Classes, Drivers cache.Indexer
	// DriversKnown says that all drivers have been read.
	DriversKnown func() bool
}

// Follow takes classes and drivers from informers of a factory. Do not wait for these informers: the process may lack the right to
// read them, and works without.
func (s *Stores) Follow(f informers.SharedInformerFactory, rights *access.Rights) error {
	class, driver := &storagev1.StorageClass{}, &storagev1.CSIDriver{}
	classes := f.InformerFor(class, informer(rights, classesRule, class, func(c kubernetes.Interface) reader[*storagev1.StorageClassList] {
		return c.StorageV1().StorageClasses()
	}))
	drivers := f.InformerFor(driver, informer(rights, driversRule, driver, func(c kubernetes.Interface) reader[*storagev1.CSIDriverList] {
		return c.StorageV1().CSIDrivers()
	}))
	s.Classes, s.Drivers = classes.GetIndexer(), drivers.GetIndexer()
	s.DriversKnown = func() bool { return drivers.HasSynced() && !rights.Lacks(driversRule) }
	return errors.Join(classes.SetTransform(Strip), drivers.SetTransform(Strip))
}

// Rights without which nothing is known of volumes that do not exist yet.
var (
	classesRule = access.Rule{Cluster: "target", Resource: storagev1.Resource("storageclasses"), Without: noVolumes}
	driversRule = access.Rule{Cluster: "target", Resource: storagev1.Resource("csidrivers"), Without: noVolumes}
)

const noVolumes = "Reserve machines are not released for pods whose volumes do not exist yet"

// reader reads one kind.
type reader[L runtime.Object] interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// informer makes an informer that waits while the process lacks a right.
func informer[L runtime.Object](rights *access.Rights, rule access.Rule, object runtime.Object, kind func(kubernetes.Interface) reader[L]) func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
	return func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(rights.ListWatch(rule, &cache.ListWatch{
			ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return kind(c).List(ctx, o) },
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return kind(c).Watch(ctx, o) },
		}, c), object, resync, cache.Indexers{})
	}
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
