// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

const (
	// kindsLast is how long the kinds of a group version are cached, kindMissing how long a missing
	// one is.
	kindsLast   = 10 * time.Minute
	kindMissing = 10 * time.Second
	// maxKinds limits how many group versions are cached.
	maxKinds = 256
)

var (
	errNoKind  = errors.New("the API server does not know this kind")
	errNoScale = errors.New("this kind has no scale subresource")
)

// kinds finds the resource of a kind. It asks the API server once per group version, and again from
// time to time.
type kinds struct {
	discovery discovery.ServerResourcesInterface
	clock     clock.PassiveClock

	mu    sync.Mutex
	known map[schema.GroupVersion]listing
}

type listing struct {
	resources []metav1.APIResource
	err       error
	asked     time.Time
}

// resourceFor returns the resource of a kind that can be scaled, or errNoKind, errNoScale, or the
// error of discovery.
func (k *kinds) resourceFor(ctx context.Context, gvk schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	l := k.discover(ctx, gvk.GroupVersion(), kindsLast)
	if resource, err := l.resourceFor(gvk); err == nil {
		return resource, nil
	}
	return k.discover(ctx, gvk.GroupVersion(), kindMissing).resourceFor(gvk)
}

func (k *kinds) discover(ctx context.Context, gv schema.GroupVersion, age time.Duration) listing {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l, ok := k.known[gv]; ok && k.clock.Since(l.asked) < age {
		return l
	}
	l := listing{asked: k.clock.Now()}
	list, err := connect.Within(ctx, func() (*metav1.APIResourceList, error) {
		return k.discovery.ServerResourcesForGroupVersion(gv.String())
	})
	switch {
	case err == nil:
		l.resources = list.APIResources
	case !apierrors.IsNotFound(err):
		l.err = fmt.Errorf("ask for the kinds of %s: %w", gv, err)
		l.resources = k.known[gv].resources // as far as is known, they are still served
	}
	k.forget()
	k.known[gv] = l
	return l
}

// forget makes room for one more group version. Versions that do not exist go first: users can ask
// for any number of these, but cannot decide which versions the API server has.
func (k *kinds) forget() {
	if k.known == nil {
		k.known = map[schema.GroupVersion]listing{}
	}
	for len(k.known) >= maxKinds {
		var worst schema.GroupVersion
		for gv, l := range k.known {
			if w, ok := k.known[worst]; !ok || len(l.resources) == 0 && len(w.resources) > 0 || (len(l.resources) == 0) == (len(w.resources) == 0) && l.asked.Before(w.asked) {
				worst = gv
			}
		}
		delete(k.known, worst)
	}
}

func (l listing) resourceFor(gvk schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	for _, r := range l.resources {
		if r.Kind != gvk.Kind || !r.Namespaced || isSubresource(r.Name) {
			continue
		}
		for _, sub := range l.resources {
			if sub.Name == r.Name+"/scale" {
				return gvk.GroupVersion().WithResource(r.Name), nil
			}
		}
		return schema.GroupVersionResource{}, errNoScale
	}
	if l.err != nil {
		return schema.GroupVersionResource{}, l.err
	}
	return schema.GroupVersionResource{}, errNoKind
}

func isSubresource(name string) bool { return strings.Contains(name, "/") }

// fillTime is how long a sync waits for a cache to fill. After that, its objects count as
// unreachable.
const fillTime = 10 * time.Second

// watches contains the caches of the kinds that Balancers need. There are at most as many as there
// are kinds that may be scaled.
type watches struct {
	client    dynamic.Interface
	namespace string
	clock     clock.PassiveClock
	// changed is called with each object that is added, changed or deleted, with both versions if
	// there are two; filled is called with each cache that is complete.
	changed func(resource schema.GroupVersionResource, objects ...*unstructured.Unstructured)
	gone    func(resource schema.GroupVersionResource, object *unstructured.Unstructured)
	filled  func()

	mu      sync.Mutex
	caches  map[schema.GroupVersionResource]*kindCache
	running sync.WaitGroup
}

type kindCache struct {
	informer cache.SharedIndexInformer
	since    time.Time
	// written remembers the scales that we wrote to its objects.
	written *written.Cache[*unstructured.Unstructured]
}

func newKindCache(informer cache.SharedIndexInformer, c clock.PassiveClock) *kindCache {
	return &kindCache{informer: informer, since: c.Now(), written: written.NewCache[*unstructured.Unstructured](informer.GetIndexer(), c)}
}

// isReady reports whether the cache is complete. If it is not, late reports whether to give up
// waiting for now.
func (k *kindCache) isReady(now time.Time) (ready, late bool) {
	return k.informer.HasSynced(), now.Sub(k.since) >= fillTime
}

// cacheFor returns the cache of a resource. It starts one if there is none; the cache lasts until
// ctx ends.
func (w *watches) cacheFor(ctx context.Context, resource schema.GroupVersionResource) *kindCache {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k, ok := w.caches[resource]; ok {
		return k
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(w.client, resource, w.namespace, 0,
		cache.Indexers{byLabel: indexByLabel}, written.ListStored).Informer()
	_ = informer.SetTransform(stripObject) // fails only for a running informer
	_, _ = informer.AddEventHandler(w.handler(resource))
	k := newKindCache(informer, w.clock)
	w.caches[resource] = k
	w.running.Go(func() { informer.RunWithContext(ctx) })
	w.running.Go(func() {
		if cache.WaitFor(ctx, "", informer.HasSyncedChecker()) {
			w.filled()
		}
	})
	return k
}

// stores returns the stores of all caches.
func (w *watches) stores() []reachability.Store {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []reachability.Store
	for _, k := range w.caches {
		all = append(all, k.informer.GetIndexer())
	}
	return all
}

// wait returns after all caches have ended together with their context.
func (w *watches) wait() { w.running.Wait() }

func (w *watches) handler(resource schema.GroupVersionResource) cache.ResourceEventHandler {
	tell := func(items ...any) {
		var objects []*unstructured.Unstructured
		for _, item := range items {
			if object, ok := item.(*unstructured.Unstructured); ok {
				objects = append(objects, object)
			}
		}
		w.changed(resource, objects...)
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(item any) { tell(item) },
		UpdateFunc: func(was, is any) { tell(was, is) },
		DeleteFunc: func(item any) {
			item = handlers.LastState(item)
			if object, ok := item.(*unstructured.Unstructured); ok {
				w.gone(resource, object)
			}
			tell(item)
		},
	}
}

// interests records which Balancers select which replicas.
type interests struct {
	mu        sync.RWMutex
	selectors map[string]map[string][]labels.Selector // by namespace and name
}

// setSelectors sets the selectors of a Balancer; nothing removes them.
func (i *interests) setSelectors(namespace, name string, selectors []labels.Selector) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(selectors) == 0 {
		if delete(i.selectors[namespace], name); len(i.selectors[namespace]) == 0 {
			delete(i.selectors, namespace)
		}
		return
	}
	if i.selectors == nil {
		i.selectors = map[string]map[string][]labels.Selector{}
	}
	if i.selectors[namespace] == nil {
		i.selectors[namespace] = map[string][]labels.Selector{}
	}
	i.selectors[namespace][name] = selectors
}

// interested returns the keys of the Balancers of a namespace whose selectors match any of these
// sets of labels.
func (i *interests) interested(namespace string, sets ...labels.Set) []string {
	i.mu.RLock()
	defer i.mu.RUnlock()
	var keys []string
	for name, selectors := range i.selectors[namespace] {
		if matchesAny(selectors, sets) {
			keys = append(keys, namespace+"/"+name)
		}
	}
	return keys
}

func matchesAny(selectors []labels.Selector, sets []labels.Set) bool {
	for _, selector := range selectors {
		for _, set := range sets {
			if selector.Matches(set) {
				return true
			}
		}
	}
	return false
}

// machineGroup is the group of MachineDeployments and MachineSets.
const machineGroup = "machine.sapcloud.io"

// scale contains the scale subresource, and the workload's own counts.
type scale struct {
	replicas int64
	selector string
	version  string
	counts   plan.Counts
}

// scaleOf reads a workload's scale: from the object itself if the fields of its kind are known,
// otherwise from the API server, once per version of the object.
func (c *Controller) scaleOf(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured) (scale, error) {
	s := scale{version: object.GetResourceVersion(), counts: ownCounts(object)}
	switch resource.Group {
	case "apps", machineGroup, corev1.GroupName: // of the core group, only ReplicationControllers have a scale
		replicas, found, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
		if s.replicas = replicas; resource.Group == machineGroup {
			return s, nil // these types omit a 0
		}
		if err != nil || !found {
			s.replicas = 1
		}
		s.selector = podSelector(object)
		return s, nil
	}
	return c.scales.scaleOf(object, s, func() (*unstructured.Unstructured, error) {
		return c.clients.Dynamic.Resource(resource).Namespace(object.GetNamespace()).Get(ctx, object.GetName(), metav1.GetOptions{}, "scale")
	})
}

func ownCounts(object *unstructured.Unstructured) plan.Counts {
	number := func(field string) (int64, bool) {
		n, found, err := unstructured.NestedInt64(object.Object, "status", field)
		return n, found && err == nil
	}
	var counts plan.Counts
	counts.Observed, _ = number("replicas")
	for _, field := range []string{"readyReplicas", "availableReplicas"} {
		if n, ok := number(field); ok {
			counts.Ready = n
			return counts
		}
	}
	return counts
}

// podSelector is the selector of a workload as text; empty if it has none.
func podSelector(object *unstructured.Unstructured) string {
	if object.GetAPIVersion() == corev1.SchemeGroupVersion.String() {
		pairs, _, err := unstructured.NestedStringMap(object.Object, "spec", "selector")
		if err != nil {
			return ""
		}
		return labels.SelectorFromSet(pairs).String()
	}
	selector, err := structuredSelector(object)
	if err != nil || selector.Empty() {
		return ""
	}
	return selector.String()
}

func structuredSelector(object *unstructured.Unstructured) (labels.Selector, error) {
	raw, _, err := unstructured.NestedMap(object.Object, "spec", "selector")
	if err != nil {
		return nil, fmt.Errorf("read spec.selector: %w", err)
	}
	selector := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, selector); err != nil {
		return nil, fmt.Errorf("read spec.selector: %w", err)
	}
	return metav1.LabelSelectorAsSelector(selector)
}

func machineSelector(object *unstructured.Unstructured) (labels.Selector, error) {
	return structuredSelector(object)
}

// observer returns how to observe a target, and an error if the spec requests what is not possible. A
// workload without a pod selector cannot be observed through its pods: an empty selector would match
// all of them.
func observer(t plan.Target, s scale) (v1alpha1.Observer, error) {
	possible := v1alpha1.StatusObserver
	switch {
	case t.Object.Resource.Group == machineGroup:
		possible = v1alpha1.MachinesObserver
	case s.selector != "":
		possible = v1alpha1.PodsObserver
	}
	switch o := t.Spec.Observer; o {
	case "", possible:
		return possible, nil
	case v1alpha1.StatusObserver:
		return o, nil
	default:
		return possible, fmt.Errorf("it has no %s, which the observer %s needs: remove observer from the target, or set it to Status", strings.ToLower(string(o)), o)
	}
}

// scales caches the answers of the API server. Each is valid for one version of its object.
type scales struct {
	mu    sync.Mutex
	known map[string]scale
}

func scaleKey(object *unstructured.Unstructured) string {
	return object.GetAPIVersion() + "/" + object.GetKind() + "/" + object.GetNamespace() + "/" + object.GetName()
}

func (s *scales) forget(object *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, scaleKey(object))
}

func (s *scales) scaleOf(object *unstructured.Unstructured, own scale, get func() (*unstructured.Unstructured, error)) (scale, error) {
	key := scaleKey(object)
	s.mu.Lock()
	known, ok := s.known[key]
	s.mu.Unlock()
	if ok && known.version == own.version {
		return known, nil
	}
	answer, err := get()
	if err != nil {
		return scale{}, fmt.Errorf("read scale: %w", err)
	}
	own.replicas, _, _ = unstructured.NestedInt64(answer.Object, "spec", "replicas")
	own.selector, _, _ = unstructured.NestedString(answer.Object, "status", "selector")
	if own.version = answer.GetResourceVersion(); own.counts.Observed == 0 {
		own.counts.Observed, _, _ = unstructured.NestedInt64(answer.Object, "status", "replicas")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[string]scale{}
	}
	s.known[key] = own
	return own, nil
}
