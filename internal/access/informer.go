// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Reader reads one kind, whose lists have type L.
type Reader[L runtime.Object] interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// Informer returns a factory's informer of a kind, which waits while the process lacks the right to
// read it. InformerFor is the method of the factory, and object an empty object of the kind.
func Informer[L runtime.Object, C any, F ~func(C, time.Duration) cache.SharedIndexInformer](
	informerFor func(runtime.Object, F) cache.SharedIndexInformer, rights *Rights, rule Rule, object runtime.Object, kind func(C) Reader[L],
) cache.SharedIndexInformer {
	return informerFor(object, func(c C, resync time.Duration) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(rights.ListWatch(rule, &cache.ListWatch{
			ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return kind(c).List(ctx, o) },
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return kind(c).Watch(ctx, o) },
		}, c), object, resync, cache.Indexers{})
	})
}
