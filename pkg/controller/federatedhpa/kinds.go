// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

const (
	kindPrefix     = "kind:"
	workloadPrefix = "workload:"
	// mostKinds bounds how many caches the objects of users can make us keep per cluster.
	mostKinds = 16
	// askAgain is how often a cluster is asked for a kind that it does not have.
	askAgain = time.Minute
)

// kinds are the caches of the kinds that objects scale.
type kinds struct {
	member *member
	ctx    context.Context // of the member, which outlives each sync

	mu      sync.Mutex
	known   map[schema.GroupVersionKind]*kind
	running sync.WaitGroup
}

// kind is one that was asked for. The informer is nil before it was found.
type kind struct {
	resource schema.GroupVersionResource
	informer cache.SharedIndexInformer
	fault    Hold
}

// of returns a kind; what is not known yet is asked for, and that is told of when it is.
func (k *kinds) of(gvk schema.GroupVersionKind) kind {
	k.mu.Lock()
	defer k.mu.Unlock()
	found, ok := k.known[gvk]
	if !ok && len(k.known) >= mostKinds {
		return kind{fault: Hold{"TooManyKinds", fmt.Sprintf("objects scale more than %d kinds", mostKinds)}}
	}
	if !ok {
		found = &kind{}
		k.known[gvk] = found
		k.member.loop.Add(kindPrefix + strings.Join([]string{gvk.Group, gvk.Version, gvk.Kind}, "/"))
	}
	return *found
}

// resolve asks the cluster for a kind, and watches it. It returns when to ask again.
func (k *kinds) resolve(ctx context.Context, key string) time.Duration {
	parts := strings.SplitN(key, "/", 3)
	gvk := schema.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: parts[2]}
	found, again := k.ask(gvk)
	if ctx.Err() != nil {
		return 0
	}
	if found.resource.Resource != "" {
		found.informer = k.watch(found.resource)
	}
	k.mu.Lock()
	before := *k.known[gvk]
	*k.known[gvk] = found
	k.mu.Unlock()
	if before != found {
		k.member.changed()
	}
	return again
}

// ask finds the resource of a kind. The client gives up by itself.
func (k *kinds) ask(gvk schema.GroupVersionKind) (kind, time.Duration) {
	list, err := k.member.discovery.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	if err != nil && !apierrors.IsNotFound(err) {
		return kind{}, k.member.o.RequestTimeout
	}
	if err == nil {
		for _, r := range list.APIResources {
			if r.Kind == gvk.Kind && r.Namespaced && !strings.Contains(r.Name, "/") {
				return kind{resource: gvk.GroupVersion().WithResource(r.Name)}, 0
			}
		}
	}
	return kind{fault: Hold{"NoSuchKind", fmt.Sprintf("the cluster has no kind %s in %s", gvk.Kind, gvk.GroupVersion())}}, askAgain
}

func (k *kinds) watch(resource schema.GroupVersionResource) cache.SharedIndexInformer {
	informer := dynamicinformer.NewFilteredDynamicInformer(k.member.dynamic, resource, k.member.o.Namespace, 0, cache.Indexers{}, nil).Informer()
	_ = informer.SetTransform(stripWorkload) // fails only for an informer that runs
	_, _ = informer.AddEventHandler(listen(k.member.workloadChanged))
	k.running.Go(func() { informer.RunWithContext(k.ctx) })
	k.running.Go(func() {
		if cache.WaitFor(k.ctx, "", informer.HasSyncedChecker()) {
			k.member.changed()
		}
	})
	return informer
}

// stripWorkload keeps what is read here.
func stripWorkload(item any) (any, error) {
	u, ok := item.(*unstructured.Unstructured)
	if !ok {
		return item, nil
	}
	kept := &unstructured.Unstructured{Object: map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind()}}
	kept.SetNamespace(u.GetNamespace())
	kept.SetName(u.GetName())
	kept.SetUID(u.GetUID())
	kept.SetResourceVersion(u.GetResourceVersion())
	kept.SetLabels(only(u.GetLabels(), ownerLabel))
	kept.SetAnnotations(only(u.GetAnnotations(), templateAnnotation))
	if ready, found, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas"); found {
		_ = unstructured.SetNestedField(kept.Object, ready, "status", "readyReplicas")
	}
	return kept, nil
}

func only(all map[string]string, key string) map[string]string {
	if value, ok := all[key]; ok {
		return map[string]string{key: value}
	}
	return nil
}

func (m *member) workloadChanged(items ...any) {
	for _, item := range items {
		if u, ok := unstructuredOf(item); ok {
			m.changed("", workloadKey(u.GetNamespace(), u.GetAPIVersion(), u.GetKind(), u.GetName()))
		}
	}
}

// autoscalers is the cache of all autoscalers of a cluster, by the workloads that they scale.
func autoscalers(client dynamic.Interface, namespace string) cache.SharedIndexInformer {
	informer := dynamicinformer.NewFilteredDynamicInformer(client, hpaResource, namespace, 0, cache.Indexers{byTarget: indexHPA}, nil).Informer()
	_ = informer.SetTransform(stripAutoscaler) // fails only for an informer that runs
	return informer
}

// stripAutoscaler drops what nobody reads here: of who owns which field only what is yet to be claimed is kept.
func stripAutoscaler(item any) (any, error) {
	u, ok := unstructuredOf(item)
	if !ok {
		return item, nil
	}
	var kept []metav1.ManagedFieldsEntry
	for _, f := range u.GetManagedFields() {
		if unclaimed(f) {
			kept = append(kept, metav1.ManagedFieldsEntry{Manager: f.Manager, Operation: f.Operation, FieldsV1: metav1.NewFieldsV1("{}")})
		}
	}
	u.SetManagedFields(kept)
	return u, nil
}
