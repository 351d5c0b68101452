// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"
)

// AwaitAPI waits until the CRDs of a group are served. In a new cluster, they may be created after
// this process starts.
func AwaitAPI(ctx context.Context, d discovery.DiscoveryInterface, api schema.GroupVersion, retry time.Duration) bool {
	return AwaitKind(ctx, d, api.WithResource(""), retry, func() {})
}

// errNoKind means that the group is served, and the kind is not.
var errNoKind = errors.New("the API server serves the group without this kind")

// AwaitKind waits until a kind is served, or its group if no kind is given. Missing is called each
// time that it certainly is not served.
func AwaitKind(ctx context.Context, d discovery.DiscoveryInterface, kind schema.GroupVersionResource, retry time.Duration, missing func()) bool {
	for said := false; ; said = true {
		list, err := Within(ctx, func() (*metav1.APIResourceList, error) {
			return d.ServerResourcesForGroupVersion(kind.GroupVersion().String())
		})
		if err == nil && kind.Resource != "" && !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == kind.Resource }) {
			err = errNoKind
		}
		if err == nil {
			return true
		}
		if !said {
			klog.FromContext(ctx).Info("Waiting for a cluster to serve an API", "api", kind, "err", err)
		}
		if errors.Is(err, errNoKind) || apierrors.IsNotFound(err) {
			missing()
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(retry):
		}
	}
}
