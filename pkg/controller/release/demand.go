// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/fit/devices"
)

// onDemand reads kinds once a waiting pod needs them, which never happens in many clusters.
type onDemand struct {
	// served waits until the kinds are served, and reports false if its context ends before that.
	served func(context.Context) bool
	once   sync.Once
	wanted chan struct{}
	// complete reports whether all of them have been read.
	complete atomic.Bool
}

// want starts to read the kinds, unless that has been started. It reports whether they have been read.
func (o *onDemand) want() bool {
	o.once.Do(func() { close(o.wanted) })
	return o.complete.Load()
}

// readOnDemand starts informers once a waiting pod needs their kinds and the API server serves them.
func (c *Controller) readOnDemand(ctx context.Context, o *onDemand, informers func() []cache.SharedIndexInformer) {
	select {
	case <-ctx.Done():
		return
	case <-o.wanted:
	}
	if !o.served(ctx) {
		return
	}
	var read []cache.DoneChecker
	for _, informer := range informers() {
		if _, err := informer.AddEventHandler(handlers.OnChange(c.somethingChanged)); err != nil { // it has been stopped
			klog.FromContext(ctx).V(2).Info("Not reading a kind", "err", err)
			return
		}
		read = append(read, informer.HasSyncedChecker())
	}
	c.informers.Start(ctx)
	if cache.WaitFor(ctx, "", read...) {
		o.complete.Store(true)
		c.somethingChanged(nil, nil)
	}
}

// deviceKinds decide about claims to devices.
type deviceKinds struct {
	onDemand
	target.Devices
	selectors *devices.Selectors
}

// inventory returns what is known about devices; nil if no waiting pod claims any, or nothing is known
// yet.
func (c *Controller) inventory(waiting []*corev1.Pod) fit.Devices {
	if !slices.ContainsFunc(waiting, func(p *corev1.Pod) bool { return len(p.Spec.ResourceClaims) > 0 }) || !c.devices.want() {
		return nil
	}
	return c.devices.Inventory(waiting, c.devices.selectors)
}
