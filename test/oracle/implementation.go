// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/test/sim/mcm"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// Implementation is one of the three controllers' implementations.
type Implementation struct {
	Name string
	// Program runs the controllers. Its configurations are storm.Control and storm.Target of the one
	// that it gets.
	Program storm.Program
	// Restarts means that the process restarts after faults, because it would not recover by itself.
	Restarts bool
}

// Stock is machine-controller-manager, unmodified.
//
// After faults it restarts: it drops keys (Q5), and believes to have written what it changed in its
// cache before the write failed (T8).
var Stock = Implementation{Name: "stock", Restarts: true, Program: func(ctx context.Context, config *rest.Config) error {
	return mcm.RunControllers(ctx, storm.Control(config), storm.Target(config))
}}
