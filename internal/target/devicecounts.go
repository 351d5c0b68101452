// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/pkg/fit/devices"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

const (
	// devicesRetry is how often the API server is asked for ResourceSlices while it does not serve them.
	devicesRetry = 10 * time.Minute
	// devicesPatience is how long decisions wait for the first lists.
	devicesPatience = 10 * time.Second
)

// Indexes of ResourceSlices.
const (
	byDeviceNode = "node"
	byDevicePool = "pool"
)

// DeviceCounts count the devices of Nodes, for a reserve that is requested in devices. ResourceSlices and
// DeviceClasses are read once somebody asks, which never happens in most clusters. All methods can be
// called concurrently, and with nil if there is no target cluster.
type DeviceCounts struct {
	informers *Informers
	lookups   devices.Lookups
	selectors *devices.Selectors
	// reading are the goroutines that were started.
	reading sync.WaitGroup

	mu          sync.Mutex
	subscribers []func(node string)
	// run is the context of informers, nil until these may start. started reports whether reading has
	// begun, and wanted whether somebody has asked.
	run             context.Context
	started, wanted bool
	// unread is why nothing is known; empty once the first lists are complete. decided reports whether
	// decisions need not wait for these.
	unread  string
	decided bool
}

var _ pool.DeviceCounter = (*DeviceCounts)(nil)

const (
	devicesUnread   = "ResourceSlices and DeviceClasses have not been read yet"
	devicesUnserved = "the target cluster does not serve ResourceSlices (resource.k8s.io/v1)"
)

func newDeviceCounts(i *Informers) *DeviceCounts {
	return &DeviceCounts{informers: i, selectors: devices.NewSelectors(), unread: devicesUnread}
}

// CountsOf returns the counts of these objects and no others. unknown is why the objects are not known;
// empty if they are.
func CountsOf(all []*resourceapi.ResourceSlice, classes []*resourceapi.DeviceClass, unknown string) *DeviceCounts {
	c := newDeviceCounts(nil)
	slices, kinds := cache.NewIndexer(cache.MetaNamespaceKeyFunc, deviceIndexes()), cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, s := range all {
		_ = slices.Add(s) // fails only without a name
	}
	for _, class := range classes {
		_ = kinds.Add(class)
	}
	c.lookups, c.unread, c.decided = deviceLookups(slices, kinds), unknown, true
	return c
}

// Subscribe makes the counts call changed with each Node whose devices may have changed, and with an empty
// name if those of all Nodes may have.
func (c *DeviceCounts) Subscribe(changed func(node string)) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subscribers = append(c.subscribers, changed)
}

func (c *DeviceCounts) notify(nodes ...string) {
	c.mu.Lock()
	subscribers := c.subscribers
	c.mu.Unlock()
	for _, changed := range subscribers {
		for _, node := range nodes {
			changed(node)
		}
	}
}

// Count implements [pool.DeviceCounter].
func (c *DeviceCounts) Count(node, class string) (n int, unknown string) {
	if c == nil {
		return 0, "there is no target cluster"
	}
	if unknown := c.ask(); unknown != "" {
		return 0, unknown
	}
	return c.selectors.Count(c.lookups, node, class)
}

// Awaited reports whether the devices of some DeviceClasses will soon be known, so that a decision should
// wait for that.
func (c *DeviceCounts) Awaited(classes []string) bool {
	if c == nil || len(classes) == 0 {
		return false
	}
	unknown := c.ask()
	c.mu.Lock()
	defer c.mu.Unlock()
	return unknown != "" && !c.decided
}

// ask begins to read if nothing has been read yet, and returns why nothing is known; empty if it is.
func (c *DeviceCounts) ask() (unknown string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted = true
	c.begin()
	return c.unread
}

// begin starts reading, once a caller needs the counts and informers may start.
func (c *DeviceCounts) begin() {
	if !c.wanted || c.run == nil || c.run.Err() != nil || c.started {
		return
	}
	c.started = true
	ctx := c.run
	c.reading.Go(func() { c.read(ctx) })
	c.reading.Go(func() {
		select {
		case <-ctx.Done():
		case <-time.After(devicesPatience):
			c.decide()
		}
	})
}

// start lets reading begin.
func (c *DeviceCounts) start(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run == nil {
		c.run = ctx
	}
	c.begin()
}

// decide ends the wait of decisions for the first lists.
func (c *DeviceCounts) decide() {
	c.mu.Lock()
	was := c.decided
	c.decided = true
	c.mu.Unlock()
	if !was {
		c.notify("")
	}
}

// set changes why nothing is known.
func (c *DeviceCounts) set(unread string) {
	c.mu.Lock()
	was := c.unread
	c.unread = unread
	c.decided = c.decided || unread != devicesUnread
	c.mu.Unlock()
	if was != unread {
		c.notify("")
	}
}

// read waits until the kinds are served, and reads them until ctx ends.
func (c *DeviceCounts) read(ctx context.Context) {
	i := c.informers
	if !connect.AwaitKind(ctx, i.client.Discovery(), SlicesResource, devicesRetry, func() { c.set(devicesUnserved) }) {
		return
	}
	slices, classes := i.slices(), i.classes()
	c.lookups = deviceLookups(slices.GetIndexer(), classes.GetIndexer())
	i.rights.Subscribe(func() { c.look(slices, classes) })
	_, errSlices := slices.AddEventHandler(handlers.OnChange(c.sliceChanged))
	_, errClasses := classes.AddEventHandler(handlers.OnChange(c.classChanged))
	if err := errors.Join(errSlices, errClasses); err != nil { // they have been stopped
		klog.FromContext(ctx).V(2).Info("Not reading devices", "err", err)
		return
	}
	i.factory.StartWithContext(ctx)
	c.look(slices, classes)
	if cache.WaitFor(ctx, "", slices.HasSyncedChecker(), classes.HasSyncedChecker()) {
		c.look(slices, classes)
	}
}

// look finds out whether the kinds are known.
func (c *DeviceCounts) look(slices, classes cache.SharedIndexInformer) {
	switch i := c.informers; {
	case i.rights.Lacks(slicesRule):
		c.set(slicesRule.String())
	case i.rights.Lacks(deviceClassesRule):
		c.set(deviceClassesRule.String())
	case slices.HasSynced() && classes.HasSynced():
		c.set("")
	}
}

// sliceChanged passes on the Nodes of a pool in which something changes that counts.
func (c *DeviceCounts) sliceChanged(was, is any) {
	before, _ := was.(*resourceapi.ResourceSlice)
	after, _ := is.(*resourceapi.ResourceSlice)
	if before != nil && after != nil && equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		return
	}
	nodes := map[string]bool{}
	for _, s := range []*resourceapi.ResourceSlice{before, after} {
		if s == nil {
			continue
		}
		for _, other := range append(c.lookups.OfPool(s.Spec.Driver, s.Spec.Pool.Name), s) {
			if other.Spec.NodeName != nil {
				nodes[*other.Spec.NodeName] = true
			}
		}
	}
	for node := range nodes {
		c.notify(node)
	}
}

func (c *DeviceCounts) classChanged(was, is any) {
	before, _ := was.(*resourceapi.DeviceClass)
	after, _ := is.(*resourceapi.DeviceClass)
	if before == nil || after == nil || !equality.Semantic.DeepEqual(before.Spec.Selectors, after.Spec.Selectors) {
		c.notify("")
	}
}

func deviceLookups(slices, classes cache.Indexer) devices.Lookups {
	return devices.Lookups{
		OnNode: func(node string) []*resourceapi.ResourceSlice {
			return stores.Indexed[*resourceapi.ResourceSlice](slices, byDeviceNode, node)
		},
		OfPool: func(driver, pool string) []*resourceapi.ResourceSlice {
			return stores.Indexed[*resourceapi.ResourceSlice](slices, byDevicePool, poolKey(driver, pool))
		},
		Class: func(name string) *resourceapi.DeviceClass { return stores.Find[resourceapi.DeviceClass](classes, name) },
	}
}

func deviceIndexes() cache.Indexers {
	return cache.Indexers{byDeviceNode: nodeOfSlice, byDevicePool: poolOfSlice}
}

func nodeOfSlice(item any) ([]string, error) {
	if s, ok := item.(*resourceapi.ResourceSlice); ok && s.Spec.NodeName != nil && *s.Spec.NodeName != "" {
		return []string{*s.Spec.NodeName}, nil
	}
	return nil, nil
}

func poolOfSlice(item any) ([]string, error) {
	if s, ok := item.(*resourceapi.ResourceSlice); ok {
		return []string{poolKey(s.Spec.Driver, s.Spec.Pool.Name)}, nil
	}
	return nil, nil
}

// poolKey names a pool. The name of a driver has no slash.
func poolKey(driver, pool string) string { return fmt.Sprintf("%s/%s", driver, pool) }
