// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

const (
	kindPrefix     = "kind:"
	workloadPrefix = "workload:"
	// maxKinds limits how many caches per cluster the objects of users can make us keep; maxKnown
	// limits for how many kinds a cluster is asked.
	maxKinds = 16
	maxKnown = 64
	// askAgain is how often a cluster is asked for a kind that it does not have, or that we may not
	// read there.
	askAgain = time.Minute
)

// usual kinds are cached however many others are.
var usual = []schema.GroupVersionKind{{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"}}

// kinds contains the caches of the kinds that objects scale.
type kinds struct {
	member *member
	ctx    context.Context // of the member; it outlives each sync

	mu      sync.Mutex
	known   map[schema.GroupVersionKind]*kind
	running sync.WaitGroup
}

// kind is one kind that was asked for. The informer is nil until the kind is found.
type kind struct {
	informer cache.SharedIndexInformer
	resource schema.GroupVersionResource
	stop     context.CancelFunc
	fault    plan.Hold
}

// shownVersion returns the version up to which the cache has shown everything; empty if there is none.
func (k kind) shownVersion() string {
	if k.informer == nil {
		return ""
	}
	return k.informer.GetStore().LastStoreSyncResourceVersion()
}

func kindKey(gvk schema.GroupVersionKind) string {
	return kindPrefix + strings.Join([]string{gvk.Group, gvk.Version, gvk.Kind}, "/")
}

// kindFor returns a kind. It looks up an unknown kind and reports when it is known.
func (k *kinds) kindFor(gvk schema.GroupVersionKind) kind {
	k.mu.Lock()
	defer k.mu.Unlock()
	found, ok := k.known[gvk]
	if !ok && len(k.known) >= maxKnown && !slices.Contains(usual, gvk) {
		return kind{fault: tooManyKinds}
	}
	if !ok {
		found = &kind{}
		k.known[gvk] = found
		k.member.loop.Add(kindKey(gvk))
	}
	return *found
}

// informerOf returns the cache of a kind; nil if there is none.
func (k *kinds) informerOf(gvk schema.GroupVersionKind) cache.SharedIndexInformer {
	k.mu.Lock()
	defer k.mu.Unlock()
	if found := k.known[gvk]; found != nil {
		return found.informer
	}
	return nil
}

var tooManyKinds = plan.Hold{Reason: "TooManyKinds", Message: fmt.Sprintf("objects scale more than %d kinds in this cluster: remove objects that scale other kinds", maxKinds)}

// forget removes a kind that no object scales any more.
func (k *kinds) forget(gvk schema.GroupVersionKind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopKind(gvk)
	delete(k.known, gvk)
}

// stopKind ends the cache of a kind. Its content no longer counts. The caller holds the lock.
func (k *kinds) stopKind(gvk schema.GroupVersionKind) {
	if found := k.known[gvk]; found != nil && found.stop != nil {
		found.stop()
		found.stop, found.informer = nil, nil
	}
}

// resolve asks the cluster for a kind, and watches it. It returns when to ask again.
func (k *kinds) resolve(ctx context.Context, key string) time.Duration {
	parts := strings.SplitN(key, "/", 3)
	gvk := schema.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: parts[2]}
	resource, fault, again := k.discover(ctx, gvk)
	if ctx.Err() != nil {
		return 0
	}
	k.mu.Lock()
	found := k.known[gvk]
	if found == nil || found.informer != nil {
		k.mu.Unlock()
		return 0
	}
	before := found.fault
	switch {
	case resource.Resource != "": // an earlier fault stays until the cache is filled
		again = k.watchKind(gvk, found, resource)
	case fault != plan.Hold{}: // otherwise, the cluster gave no answer
		found.fault = fault
	}
	changed := found.informer != nil || before != found.fault
	k.mu.Unlock()
	if changed {
		k.member.changed()
	}
	return again
}

// discover finds the resource of a kind.
func (k *kinds) discover(ctx context.Context, gvk schema.GroupVersionKind) (schema.GroupVersionResource, plan.Hold, time.Duration) {
	list, err := connect.Within(ctx, func() (*metav1.APIResourceList, error) {
		return k.member.discovery.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return schema.GroupVersionResource{}, plan.Hold{}, k.member.o.RequestTimeout
	}
	if err == nil {
		for _, r := range list.APIResources {
			if r.Kind == gvk.Kind && r.Namespaced && !strings.Contains(r.Name, "/") {
				return gvk.GroupVersion().WithResource(r.Name), plan.Hold{}, 0
			}
		}
	}
	return schema.GroupVersionResource{}, plan.Hold{Reason: plan.NoSuchKind, Message: fmt.Sprintf("the cluster has no kind %s in %s: correct scaleTargetRef, or install the kind", gvk.Kind, gvk.GroupVersion())}, askAgain
}

// watchKind caches a kind if the limit allows one more, and returns when to ask again. The caller
// holds the lock.
func (k *kinds) watchKind(gvk schema.GroupVersionKind, found *kind, resource schema.GroupVersionResource) time.Duration {
	caches := 0
	for _, other := range k.known {
		if other.informer != nil {
			caches++
		}
	}
	if caches >= maxKinds && !slices.Contains(usual, gvk) {
		found.fault = tooManyKinds
		return askAgain
	}
	m := k.member
	informer := dynamicinformer.NewFilteredDynamicInformer(m.dynamic, resource, m.o.Namespace, 0, cache.Indexers{}, written.ListStored).Informer()
	// None of these fails for an informer that does not run yet.
	_ = informer.SetTransform(stripWorkload)
	cached := &part{of: &m.weight}
	_, _ = informer.AddEventHandler(cached.listen(m.workloadChanged))
	_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			k.refused(gvk, informer, err)
		}
	})
	ctx, stop := context.WithCancel(k.ctx)
	found.resource, found.informer, found.stop = resource, informer, stop
	k.running.Go(func() {
		informer.RunWithContext(ctx)
		cached.release()
	})
	k.running.Go(func() {
		if cache.WaitFor(ctx, "", informer.HasSyncedChecker()) {
			k.filled(gvk, informer)
		}
	})
	return 0
}

// filled ends the fault of a kind, because its cache is complete now.
func (k *kinds) filled(gvk schema.GroupVersionKind, informer cache.SharedIndexInformer) {
	k.mu.Lock()
	if found := k.known[gvk]; found != nil && found.informer == informer {
		found.fault = plan.Hold{}
	}
	k.mu.Unlock()
	k.member.changed()
}

// refused stops the cache of a kind that the cluster no longer has, or that we may not read there.
// After a while, the cluster is asked for it again.
func (k *kinds) refused(gvk schema.GroupVersionKind, informer cache.SharedIndexInformer, err error) {
	k.mu.Lock()
	found := k.known[gvk]
	if found == nil || found.informer != informer {
		k.mu.Unlock()
		return
	}
	k.stopKind(gvk)
	found.fault = plan.Hold{Reason: "ListRefused", Message: "the hub cannot list the workloads of the cluster: " + err.Error()}
	k.mu.Unlock()
	k.member.loop.AddAfter(kindKey(gvk), askAgain)
	k.member.changed()
}
