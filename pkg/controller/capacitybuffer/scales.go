// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/turns"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
)

const (
	// scaleInterval is how often the scales of workloads of unwatched kinds are read.
	scaleInterval = 30 * time.Second
	// discoverAfter is how often the kinds of the cluster are discovered again for them.
	discoverAfter = 10 * time.Minute
	// maxScales is how many of these workloads are read. Namespaces take turns.
	maxScales = 100
)

// ScaleReader reads the scale subresources of any kind.
type ScaleReader struct {
	scales scale.ScalesGetter
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

// NewScaleReader returns a reader for a cluster.
func NewScaleReader(config *rest.Config, client kubernetes.Interface) (*ScaleReader, error) {
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	scales, err := scale.NewForConfig(config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(client.Discovery()))
	if err != nil {
		return nil, fmt.Errorf("make client for scales: %w", err)
	}
	return &ScaleReader{scales, mapper}, nil
}

func (r *ScaleReader) read(ctx context.Context, namespace string, ref v1beta1.ScalableRef) (plan.Scale, error) {
	mapping, err := r.mapper.RESTMapping(schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind})
	if err != nil {
		return plan.Scale{}, fmt.Errorf("find kind %s of group %q: %w", ref.Kind, ref.APIGroup, err)
	}
	resource := mapping.Resource.GroupResource()
	s, err := r.scales.Scales(namespace).Get(ctx, resource, ref.Name, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		right := &missingRight{resource, err}
		return plan.Scale{Lacks: right.advice()}, right
	}
	if err != nil {
		return plan.Scale{}, fmt.Errorf("read scale of %s %s: %w", ref.Kind, ref.Name, err)
	}
	selector, err := labels.Parse(s.Status.Selector)
	if err != nil || s.Status.Selector == "" {
		return plan.Scale{}, fmt.Errorf("scale of %s %s: selector %.80q selects no pods", ref.Kind, ref.Name, s.Status.Selector)
	}
	return plan.Scale{Replicas: s.Spec.Replicas, Selector: selector}, nil
}

// missingRight is the right to read a scale.
type missingRight struct {
	resource schema.GroupResource
	error
}

func (m *missingRight) Unwrap() error { return m.error }

// advice returns a sentence for a person who can grant it.
func (m *missingRight) advice() string {
	return fmt.Sprintf("CapacityBuffers for %s have no chunks. To change this, add the rule {apiGroups: [%s], resources: [%s/scale], verbs: [get]} in the target cluster",
		m.resource.Resource, m.resource.Group, m.resource.Resource)
}

// scaleCache is what was read last, by key of the workload.
type scaleCache struct {
	mu    sync.Mutex
	known map[string]plan.Scale
	// wake receives a value when there is a workload that has not been read.
	wake chan struct{}
	// filled is closed when all workloads have been read once.
	filled chan struct{}
}

func newScaleCache() scaleCache {
	return scaleCache{wake: make(chan struct{}, 1), filled: make(chan struct{})}
}

// Name implements cache.DoneChecker.
func (s *scaleCache) Name() string { return "scales of workloads" }

// Done implements cache.DoneChecker. A decision before that would take the workloads for unread.
func (s *scaleCache) Done() <-chan struct{} { return s.filled }

func keyOf(b *v1beta1.CapacityBuffer) string {
	ref := b.Spec.ScalableRef
	return strings.Join([]string{b.Namespace, ref.APIGroup, ref.Kind, ref.Name}, "/")
}

// findScale returns what is known of the workload of a buffer; nil if that has not been read yet.
func (s *scaleCache) findScale(b *v1beta1.CapacityBuffer) *plan.Scale {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one, known := s.known[keyOf(b)]; known {
		return &one
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return nil
}

// fillScales reads scales for the first time, for at most the time until the second time.
func (c *Controller) fillScales(ctx context.Context) {
	if !cache.WaitFor(ctx, "", c.filled...) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, scaleInterval)
	defer cancel()
	c.readScales(ctx)
	close(c.scales.filled)
}

// pollScales reads scales until ctx ends, and queues a sync when one has changed.
func (c *Controller) pollScales(ctx context.Context) {
	c.fillScales(ctx)
	ticker := c.options.Clock.NewTicker(scaleInterval)
	defer ticker.Stop()
	discovered := c.options.Clock.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		case <-c.scales.wake:
		}
		if c.options.Clock.Since(discovered) > discoverAfter {
			c.options.Scales.mapper.Reset()
			discovered = c.options.Clock.Now()
		}
		if c.readScales(ctx) {
			c.resyncAll()
		}
	}
}

// readScales reports whether something has changed. A scale that temporarily cannot be read keeps
// its value.
func (c *Controller) readScales(ctx context.Context) (changed bool) {
	refs := map[string]*v1beta1.CapacityBuffer{}
	for _, b := range stores.List[*v1beta1.CapacityBuffer](c.buffers) {
		if ref := b.Spec.ScalableRef; b.Reserved() && b.DeletionTimestamp == nil && ref != nil && !plan.Watched(ref) {
			refs[keyOf(b)] = b
		}
	}
	next := map[string]plan.Scale{}
	for i, key := range inTurns(refs) {
		if i == maxScales || ctx.Err() != nil {
			break
		}
		b := refs[key]
		read, err := c.options.Scales.read(ctx, b.Namespace, *b.Spec.ScalableRef)
		before, known := c.scales.known[key]
		if read.Err = err; known && before.Err == nil && transient(err) {
			read = before
		}
		next[key] = read
		changed = changed || !known || textOf(before) != textOf(read)
	}
	c.scales.mu.Lock()
	defer c.scales.mu.Unlock()
	c.scales.known = next
	return changed
}

// inTurns returns the workloads that buffers name in the order in which they are read: the first of
// each namespace by key, then the second of each, and so on.
func inTurns(refs map[string]*v1beta1.CapacityBuffer) []string {
	return turns.ByNamespace(slices.Sorted(maps.Keys(refs)), func(key string) string { return refs[key].Namespace })
}

// transient reports whether an error reveals nothing about the workload.
func transient(err error) bool {
	_, missing := err.(*missingRight)
	return err != nil && !missing && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err)
}

// textOf returns what to compare of a scale.
func textOf(s plan.Scale) string {
	if s.Err != nil {
		return s.Err.Error()
	}
	return fmt.Sprintf("%d %s", s.Replicas, s.Selector)
}
