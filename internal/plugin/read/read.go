// SPDX-License-Identifier: Apache-2.0

// Package read reads the objects for an overview, once or continuously. It writes nothing.
//
// Objects that do not exist or must not be read are left out and reported. Only fields that are
// shown are kept.
package read

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	bufferclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/capacitybuffer/v1beta1"
	requestclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/provisioningrequest/v1"
)

// Clusters are the clusters to read.
type Clusters struct {
	// Control has MachineDeployments, Reserves, Balancers and federated autoscalers; Target has Nodes
	// and pods. Target is nil if there is none.
	Control versioned.Interface
	Target  kubernetes.Interface
	// Buffers are the CapacityBuffers of the target cluster; nil leaves them out.
	Buffers bufferclient.CapacityBuffersGetter
	// Requests are the ProvisioningRequests of the target cluster; nil leaves them out.
	Requests requestclient.ProvisioningRequestsGetter
	// Namespace of the control cluster to read; empty for all.
	Namespace string
	Clock     clock.PassiveClock
	// most is the maximum number of objects of a kind; 0 means MaxObjects.
	most int
}

// New creates the clients. Without a target configuration, it reads no Nodes and no pods.
func New(control, target *rest.Config, namespace string) (Clusters, error) {
	c := Clusters{Namespace: namespace, Clock: clock.RealClock{}}
	client, err := versioned.NewForConfig(withoutRateLimit(control))
	if err != nil {
		return Clusters{}, fmt.Errorf("connect to the control cluster: %w", err)
	}
	c.Control = client
	if target == nil {
		return c, nil
	}
	if c.Target, err = connect.Core(withoutRateLimit(target)); err != nil {
		return Clusters{}, fmt.Errorf("connect to the target cluster: %w", err)
	}
	if c.Buffers, err = bufferclient.NewForConfig(withoutRateLimit(target)); err != nil {
		return Clusters{}, fmt.Errorf("connect to the target cluster: %w", err)
	}
	if c.Requests, err = requestclient.NewForConfig(withoutRateLimit(target)); err != nil {
		return Clusters{}, fmt.Errorf("connect to the target cluster: %w", err)
	}
	return c, nil
}

// withoutRateLimit returns a configuration without a client-side rate limit: all kinds are read at
// the same time, and the server has limits of its own.
func withoutRateLimit(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return config
}

const (
	// MaxObjects is the maximum number of objects of a kind.
	MaxObjects = 200_000
	// patience limits how long a single request may take. After that, a cluster counts as unreachable.
	patience = 20 * time.Second
)

// ReadOnce reads all objects once. It returns an error if the control cluster does not answer.
func (c Clusters) ReadOnce(ctx context.Context) (overview.Objects, error) {
	kinds := c.kinds()
	o := overview.Objects{At: c.Clock.Now()}
	errs := c.listKinds(ctx, kinds, &o)
	if c.Target != nil && namesDevices(o) {
		more := c.deviceKinds()
		failed := c.listKinds(ctx, more, &o)
		countDevices(&o, func(name string) string {
			i := slices.IndexFunc(more, func(k kind) bool { return k.name == name })
			if failed[i] == nil {
				return ""
			}
			return cmp.Or(reason(more[i], failed[i]), withoutAddress(failed[i]).Error())
		})
		kinds, errs = append(kinds, more...), append(errs, failed...)
	}
	return o, c.absent(&o, kinds, errs)
}

// listKinds adds all objects of some kinds, which it lists concurrently.
func (c Clusters) listKinds(ctx context.Context, kinds []kind, o *overview.Objects) []error {
	lists, errs := make([][]runtime.Object, len(kinds)), make([]error, len(kinds))
	var reading sync.WaitGroup
	for i, k := range kinds {
		reading.Go(func() { lists[i], errs[i] = k.listAll(ctx, cmp.Or(c.most, MaxObjects)) })
	}
	reading.Wait()
	for _, list := range lists {
		for _, item := range list {
			collect(o, item)
		}
	}
	return errs
}

// listAll lists at most the maximum number of objects of a kind, trimmed.
func (k kind) listAll(ctx context.Context, most int) ([]runtime.Object, error) {
	var all []runtime.Object
	err := Pages(patience, k.list).EachListItemWithAlloc(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		if len(all) == most {
			return ErrTooMany
		}
		all = append(all, slimObject(item))
		return nil
	})
	return all, err
}

// ErrTooMany ends the reading of a kind.
var ErrTooMany = errors.New("more exist than are read; the rest is omitted")

// absent describes what is missing and why. It returns an error if the control cluster does not
// answer.
func (c Clusters) absent(o *overview.Objects, kinds []kind, errs []error) error {
	lines := map[string][]string{}
	for i, err := range errs {
		k := kinds[i]
		if err == nil || k.optional && apierrors.IsNotFound(err) {
			continue
		}
		if !apierrors.IsNotFound(err) { // what is not installed has no objects
			markUnknown(o, k.name)
		}
		why := reason(k, err)
		if why == "" && k.control {
			return fmt.Errorf("list %s: %w", k.name, err)
		}
		why = cmp.Or(why, "the target cluster does not answer: "+withoutAddress(err).Error())
		lines[why] = append(lines[why], k.name)
	}
	if c.Target == nil {
		o.NodesUnknown, o.PodsUnknown = true, true
		lines["there is no target cluster"] = []string{nodes, pods}
	}
	for why, names := range lines {
		slices.Sort(names)
		o.Missing = append(o.Missing, strings.Join(names, ", ")+": "+why)
	}
	slices.Sort(o.Missing)
	return nil
}

// withoutAddress returns an error without the address of the request, so that it is the same for
// all kinds.
func withoutAddress(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err
	}
	return err
}

// reason returns why a kind cannot be read, if the overview can be made without it; empty if the
// cluster does not answer.
func reason(k kind, err error) string {
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, ErrTooMany):
		return err.Error()
	case apierrors.IsNotFound(err):
		return "not installed in this cluster"
	case apierrors.IsForbidden(err):
		return "no rights to list them"
	case apierrors.IsUnauthorized(err):
		return ""
	case errors.As(err, &status) && !k.control:
		return status.Status().Message
	}
	return ""
}

// pageSize is how many objects are requested at once: a page of the largest pods takes about 100 MiB
// while it is read.
const pageSize = 250

// Pages returns a pager that limits how long each request may take. An API server keeps a list for some
// minutes only. If reading its pages takes longer, the rest is that of a newer list, as the server
// offers.
func Pages(patience time.Duration, list pager.ListPageFunc) *pager.ListPager {
	one := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return list(ctx, o)
	}
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		page, err := one(ctx, o)
		if o.Continue = continuation(err); o.Continue != "" {
			return one(ctx, o)
		}
		return page, err
	})
	pages.PageSize, pages.PageBufferSize = pageSize, 1
	return pages
}

// continuation returns how to go on after a list has expired; empty if that is not possible, or there
// is another error.
func continuation(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}
