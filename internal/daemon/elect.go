// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// ErrLost is returned by Elect if the lease could not be renewed in time. The process should exit
// and be restarted, because its caches may be old.
var ErrLost = errors.New("leadership lost")

// How long releasing the lease may take.
const releaseTimeout = time.Second

// Lease defines what processes take turns on.
type Lease struct {
	Namespace, Name string
	// Identity must differ between processes: two processes with the same identity would both lead.
	Identity string
	// Zero means client-go's defaults of 15 s, 10 s and 2 s.
	Duration, RenewDeadline, RetryPeriod time.Duration
	// Events of the election; nil for none.
	Recorder resourcelock.EventRecorder
	// Renewed is called before the process leads, with the time when another one last had the lease, if
	// one ever had it. It may be nil.
	Renewed func(time.Time)
}

// Elect waits for the lease, leads until lead returns, ctx ends or the lease is lost, waits for
// lead, and releases the lease. If lead returns ErrUnanswered, it lets the lease expire instead, so
// that the write has ended when a successor starts. The client should serve nothing else, so that a
// busy process does not delay renewals.
func Elect(ctx context.Context, client kubernetes.Interface, lease Lease, lead func(context.Context) error) error {
	lock := &watchedLock{Interface: lease.resourceLock(client)}
	turn := &turn{work: ctx, lead: lock.tellFirst(lease, lead), done: make(chan struct{})}
	// The election outlives ctx, so that the lease is held until the work has ended.
	election, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	turn.stop = stop
	elector, err := leaderelection.NewLeaderElector(lease.election(lock, turn))
	if err != nil {
		return fmt.Errorf("elect leader for %s: %w", lease.Name, err)
	}
	waiting := context.AfterFunc(ctx, turn.giveUp)
	defer waiting()
	elector.Run(election)
	err = turn.awaitEnd()
	if !elector.IsLeader() || errors.Is(err, ErrUnanswered) {
		return err
	}
	return errors.Join(err, release(ctx, lock, lease))
}

// watchedLock is a lock that remembers when another process last renewed the lease.
type watchedLock struct {
	resourcelock.Interface
	renewed atomic.Pointer[time.Time]
}

// Get implements resourcelock.Interface.
func (l *watchedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && record.HolderIdentity != l.Identity() {
		l.renewed.Store(&record.RenewTime.Time)
	}
	return record, raw, err
}

// tellFirst leads after it has reported when another process last had the lease.
func (l *watchedLock) tellFirst(lease Lease, lead func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if at := l.renewed.Load(); at != nil && lease.Renewed != nil {
			lease.Renewed(*at)
		}
		return lead(ctx)
	}
}

func (l Lease) resourceLock(client kubernetes.Interface) resourcelock.Interface {
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: l.Namespace, Name: l.Name},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: l.Identity, EventRecorder: l.Recorder},
	}
}

func (l Lease) election(lock resourcelock.Interface, turn *turn) leaderelection.LeaderElectionConfig {
	return leaderelection.LeaderElectionConfig{
		Lock:          lock,
		Name:          l.Name,
		LeaseDuration: orDefault(l.Duration, 15*time.Second),
		RenewDeadline: orDefault(l.RenewDeadline, 10*time.Second),
		RetryPeriod:   orDefault(l.RetryPeriod, 2*time.Second),
		Callbacks:     leaderelection.LeaderCallbacks{OnStartedLeading: turn.onStarted, OnStoppedLeading: func() {}},
	}
}

func orDefault(d, fallback time.Duration) time.Duration {
	if d == 0 {
		return fallback
	}
	return d
}

// release releases a lease that we still hold. client-go can do that by itself, but would do so
// while the work is still ending.
func release(ctx context.Context, lock resourcelock.Interface, lease Lease) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	record, _, err := lock.Get(ctx)
	if err != nil {
		return fmt.Errorf("release lease %s: %w", lease.Name, err)
	}
	if record.HolderIdentity != lease.Identity {
		return nil
	}
	now := metav1.Now()
	free := resourcelock.LeaderElectionRecord{
		LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now,
	}
	if err := lock.Update(ctx, free); err != nil {
		return fmt.Errorf("release lease %s: %w", lease.Name, err)
	}
	klog.FromContext(ctx).Info("Released lease", "lease", klog.KRef(lease.Namespace, lease.Name))
	return nil
}
