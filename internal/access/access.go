// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/pkg/written"
)

const (
	// confirmAfter is the time between the first refusal and the second.
	confirmAfter = 5 * time.Second
	// RetryEvery is the time between two requests while a right is missing.
	RetryEvery = 10 * time.Minute
)

// Rule is the right to list and watch a kind.
type Rule struct {
	// Cluster is the role of the API server: control or target.
	Cluster  string
	Resource schema.GroupResource
	// Namespace is empty for a kind without namespaces, and Name for all objects.
	Namespace, Name string
	// Without describes what does not work while the right is missing.
	Without string
}

// String returns a sentence for a person who can add the rule to a Role.
func (r Rule) String() string {
	where, name := "in the "+r.Cluster+" cluster", ""
	if r.Namespace != "" {
		where = "in namespace " + r.Namespace + " of the " + r.Cluster + " cluster"
	}
	if r.Name != "" {
		name = fmt.Sprintf(", resourceNames: [%s]", r.Name)
	}
	return fmt.Sprintf("%s. To change this, add the rule {apiGroups: [%s], resources: [%s]%s, verbs: [list, watch]} %s",
		r.Without, r.Resource.Group, r.Resource.Resource, name, where)
}

// Rights of the process that it can work without. The zero value is not usable; see New. All
// methods can be called concurrently.
type Rights struct {
	clock clock.Clock

	mu          sync.Mutex
	missing     map[Rule]bool
	subscribers []func()
}

// New returns Rights about which nothing is known.
func New(c clock.Clock) *Rights { return &Rights{clock: c, missing: map[Rule]bool{}} }

// Missing returns the rights that are missing, in a stable order.
func (r *Rights) Missing() []Rule {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]Rule, 0, len(r.missing))
	for rule := range r.missing {
		all = append(all, rule)
	}
	slices.SortFunc(all, func(a, b Rule) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// Lacks reports whether a right is missing.
func (r *Rights) Lacks(rule Rule) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missing[rule]
}

// Subscribe makes the Rights call changed whenever a right turns out to be missing, or is granted
// again.
func (r *Rights) Subscribe(changed func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subscribers = append(r.subscribers, changed)
}

// ListWatch returns a ListerWatcher for an informer whose requests wait while the process lacks the
// right. The first list shows the stored state. Client is the client that lw uses.
func (r *Rights) ListWatch(rule Rule, lw *cache.ListWatch, client any) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			written.ListStored(&o)
			return Await(ctx, r, rule, func() (runtime.Object, error) { return lw.ListWithContext(ctx, o) })
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := Await(ctx, r, rule, func() (watch.Interface, error) { return lw.WatchWithContext(ctx, o) })
			if err != nil && ctx.Err() != nil {
				err = io.EOF // a closed watch; an informer logs every other error
			}
			return w, err
		},
	}, client)
}

// Await repeats a request until it is not refused for lack of a right, or ctx ends.
func Await[T any](ctx context.Context, r *Rights, rule Rule, request func() (T, error)) (T, error) {
	for refusals := 1; ; refusals++ {
		answer, err := request()
		if !apierrors.IsForbidden(err) {
			if err == nil {
				r.set(ctx, rule, false)
			}
			return answer, err
		}
		wait := confirmAfter
		if refusals > 1 {
			wait = RetryEvery
			r.set(ctx, rule, true)
		}
		select {
		case <-ctx.Done():
			return answer, ctx.Err()
		case <-r.clock.After(wait):
		}
	}
}

func (r *Rights) set(ctx context.Context, rule Rule, missing bool) {
	r.mu.Lock()
	if r.missing[rule] == missing {
		r.mu.Unlock()
		return
	}
	if missing {
		r.missing[rule] = true
	} else {
		delete(r.missing, rule)
	}
	subscribers := slices.Clone(r.subscribers)
	r.mu.Unlock()
	if missing {
		klog.FromContext(ctx).Info("A right is missing. Continuing without it", "cluster", rule.Cluster, "resource", rule.Resource, "reason", rule.String())
	} else {
		klog.FromContext(ctx).Info("A right that was missing has been granted", "cluster", rule.Cluster, "resource", rule.Resource)
	}
	for _, changed := range subscribers {
		changed()
	}
}
