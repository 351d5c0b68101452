// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/daemon"
	"github.com/evenkeel/evenkeel/test/sim"
)

// restart is how long a program that lost its lease stays down.
const restart = 5 * time.Second

// Twins starts two instances of a program, which take turns on a Lease as our daemons do. An
// instance that loses the lease ends, and then waits for it again. Both have the same identity for
// the servers, but the writes of their programs contain that of the Lease: see [ByTwin].
func (w *World) Twins(name string, program Program) (first, second *Process) {
	lives := &atomic.Int64{}
	instance := func(ctx context.Context, config *rest.Config) error {
		for ctx.Err() == nil {
			identity := fmt.Sprintf("%s-%d", name, lives.Add(1))
			if elected(ctx, config, name, identity, program); ctx.Err() != nil {
				return nil
			}
			w.turns.Add(1)
			time.Sleep(restart)
		}
		return nil
	}
	return w.Start(name, instance), w.Start(name, instance)
}

// elected runs the program while it holds the lease. However it ends, it tries again.
func elected(ctx context.Context, config *rest.Config, name, identity string, program Program) {
	lease := daemon.Lease{
		Namespace: "kube-system", Name: name, Identity: identity,
		Duration: 30 * time.Second, RenewDeadline: 20 * time.Second, RetryPeriod: 5 * time.Second,
	}
	client := kubernetes.NewForConfigOrDie(Control(config))
	config = rest.CopyConfig(config)
	config.UserAgent = name + "/" + identity
	_ = daemon.Elect(ctx, client, lease, func(ctx context.Context) error { return program(ctx, config) })
}

// ByTwin reports whether a write is by the one of the [World.Twins] that has this identity.
func ByTwin(w sim.Write, identity string) bool {
	return slices.Contains(strings.Split(w.Agent, "/"), identity)
}
