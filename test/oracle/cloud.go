// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"context"
	"errors"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

const (
	bootTime  = 20 * time.Second
	drainTime = 10 * time.Second
	// updateTime is how long an update in place takes.
	updateTime = 30 * time.Second
	endless    = 10_000 * time.Hour
)

// cloud is the double of machine-controllers, kubelets and node agents. Its fields change while the
// Waker is locked.
type cloud struct {
	*world.Cloud
	// sick names machines whose Node is not ready.
	sick map[string]bool
	// blocked means that machines do not boot, exhausted that none can be created.
	blocked, exhausted bool
	updates            *world.Updates
	// inPlace and preserving mean that the story needs these parts.
	inPlace, preserving bool
}

func newCloud(w *world.Waker) *cloud {
	c := &cloud{sick: map[string]bool{}, updates: &world.Updates{Waker: w, Time: updateTime, AtOnce: true}}
	c.Cloud = &world.Cloud{
		Waker: w, Boot: bootTime, Drain: drainTime,
		Refused:     func(*mcmapi.Machine) bool { return c.exhausted },
		Unhealthy:   func(m *mcmapi.Machine) bool { return c.sick[m.Name] },
		BootBlocked: func(*mcmapi.Machine) bool { return c.blocked },
	}
	return c
}

// reconcile is the cloud's part of an Actor.
func (c *cloud) reconcile(ctx context.Context, core kubernetes.Interface, ours versioned.Interface) (again time.Duration, err error) {
	var errs []error
	parts := []world.Reconcile{c.Cloud.Reconcile}
	if c.inPlace {
		parts = append(parts, c.updates.Reconcile)
	}
	if c.preserving {
		parts = append(parts, c.preserve)
	}
	for _, part := range parts {
		wait, err := part(ctx, core, ours)
		again, errs = requeue.Sooner(again, wait), append(errs, err)
	}
	return again, errors.Join(errs...)
}
