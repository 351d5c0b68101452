// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/connect"
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
