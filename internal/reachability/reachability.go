// SPDX-License-Identifier: Apache-2.0

// Package reachability reports whether the clusters that a process depends on answer.
//
// Informers continue to show what they last received when an API server is gone. Therefore, a
// Cluster asks its API server for one object every 10 seconds. All controllers of a process share
// one Cluster for each API server.
//
// Laws:
//
//  1. A cluster is silent from 30 seconds after its last answer until its next one. A refusal is
//     not an answer.
//  2. After a silence, a store is current only once it shows the version of the first answer, or
//     once every watch has been renewed.
//  3. Subscribers are called when a silence begins and when it ends.
//  4. Run returns when its context ends, and calls no subscriber after that. A Cluster that is not
//     run is silent; a nil one never is.
//  5. A version below an earlier one means that the storage was restored from a backup. Run then
//     returns ErrRestored, and the process must start again.
package reachability

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// ProbeInterval is the time between two probes, and how long each may take.
	ProbeInterval = 10 * time.Second
	// SilentAfter is how long a cluster may not answer before decisions no longer use what was seen
	// of it.
	SilentAfter = 30 * time.Second
	// renewed is how long a cluster must answer until stores count as current whatever version they
	// show. The process ends each watch after a minute, except one that begins with all objects;
	// the rest is for the list that follows.
	renewed = 2 * time.Minute
	// Recheck is when to look again while stores are late: what updates them need not be an event.
	Recheck = 5 * time.Second
)

// Reason of conditions and events that report a silent cluster.
const Reason = "ClusterUnreachable"

// ErrRestored means that resourceVersions went back. Watches continue from versions that the
// storage has not reached yet, so they show nothing, and what was read or written before may not
// exist any more.
var ErrRestored = errors.New("the storage was restored from a backup")

// Probe is a small read that needs no more rights than the informers have. It returns the version
// of the list that it read.
type Probe func(ctx context.Context) (version string, err error)

// Store is an informer's store.
type Store interface{ LastStoreSyncResourceVersion() string }

// Options of a Cluster.
type Options struct {
	// Clock is the real one unless set.
	Clock clock.WithTicker
}

// Cluster is one API server as this process reaches it.
type Cluster struct {
	name  string
	probe Probe
	clock clock.WithTicker

	mu sync.Mutex
	// answered is when the last answer came, or when Run began; zero before that.
	answered time.Time
	// watched is until when another process watched the cluster; zero if none did.
	watched time.Time
	// back is when the last silence ended, and version that of the answer that ended it; zero if
	// there was none.
	back        time.Time
	version     string
	newest      string // version of all answers
	subscribers []func()
}

// New returns a Cluster with this name, such as "target". It must be run.
func New(name string, probe Probe, o Options) *Cluster {
	c := &Cluster{name: name, probe: probe, clock: o.Clock}
	if c.clock == nil {
		c.clock = clock.RealClock{}
	}
	return c
}

// Subscribe makes the Cluster call changed when a silence begins and when it ends. changed must not
// block.
func (c *Cluster) Subscribe(changed func()) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subscribers = append(c.subscribers, changed)
}

// Silent reports whether the cluster does not answer, or has been silent and one of the stores does
// not show yet what happened meanwhile.
func (c *Cluster) Silent(stores ...Store) bool { return c.Err(stores...) != nil }

// Err describes how the cluster is silent; nil if it is not. The text does not change during a
// silence.
func (c *Cluster) Err(stores ...Store) error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.silent() {
		return fmt.Errorf("%s cluster: the API server has not answered for %s", c.name, SilentAfter)
	}
	if c.version == "" || c.clock.Since(c.back) > renewed {
		return nil
	}
	for _, s := range stores {
		if order, err := resourceversion.CompareResourceVersion(s.LastStoreSyncResourceVersion(), c.version); err == nil && order < 0 {
			return fmt.Errorf("%s cluster: the API server answers again, and the watches have yet to catch up", c.name)
		}
	}
	return nil
}

// silent must be called with the lock held.
func (c *Cluster) silent() bool { return c.clock.Since(c.answered) > SilentAfter }

// WatchedUntil records until when another process watched the cluster, before Run. Where that is longer ago
// than a silence takes, there may have been one, and Run begins as after it.
func (c *Cluster) WatchedUntil(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watched = t
}

// Back returns when the last silence ended, or Run began as after one; zero if there was none.
func (c *Cluster) Back() time.Time {
	if c == nil {
		return time.Time{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.back
}

// Run probes the cluster until ctx ends, or returns ErrRestored.
func (c *Cluster) Run(ctx context.Context) error {
	c.begin()
	ticker := c.clock.NewTicker(ProbeInterval)
	defer ticker.Stop()
	for silent := false; ; {
		ended, err := c.ask(ctx)
		if err != nil {
			return err
		}
		// A silence can begin and end while one probe waits for its answer.
		if now := c.Silent(); (ended || now != silent) && ctx.Err() == nil {
			silent = now
			c.announce(ctx, silent)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// isProbed reports whether Run has begun.
func (c *Cluster) isProbed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.answered.IsZero()
}

// begin gives the cluster the time of a silence to answer for the first time.
func (c *Cluster) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered = c.clock.Now()
	if !c.watched.IsZero() && c.answered.Sub(c.watched) > SilentAfter {
		c.back = c.answered
	}
}

// ask probes the cluster once. It reports whether the answer ended a silence.
func (c *Cluster) ask(ctx context.Context) (ended bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, ProbeInterval)
	defer cancel()
	version, err := c.probe(ctx)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("No answer", "cluster", c.name, "err", err)
		return false, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if order, err := resourceversion.CompareResourceVersion(version, cmp.Or(c.newest, version)); err == nil && order < 0 {
		return false, fmt.Errorf("%s cluster: %w: resourceVersion is %s and was %s", c.name, ErrRestored, version, c.newest)
	} else if err == nil {
		c.newest = version
	}
	now := c.clock.Now()
	ended = c.silent()
	if ended {
		c.back, c.version = now, version
	}
	c.answered = now
	return ended, nil
}

func (c *Cluster) announce(ctx context.Context, silent bool) {
	klog.FromContext(ctx).Info("Cluster reachability changed", "cluster", c.name, "silent", silent)
	c.mu.Lock()
	subscribers := c.subscribers
	c.mu.Unlock()
	for _, changed := range subscribers {
		changed()
	}
}
