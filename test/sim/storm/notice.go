// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/reachability"
)

// Probing runs a program beside a probe of its API server, as our daemons do. If resourceVersions
// go back, both end, so that the process starts again.
func Probing(probe func(*rest.Config) reachability.Probe, program Program) Program {
	return func(ctx context.Context, config *rest.Config) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			defer cancel()
			ended <- reachability.New("control", probe(config), reachability.Options{}).Run(ctx)
		}()
		err := program(ctx, config)
		cancel()
		return errors.Join(err, <-ended)
	}
}
