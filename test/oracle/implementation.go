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
}

// Stock is machine-controller-manager, unmodified.
var Stock = Implementation{Name: "stock", Program: func(ctx context.Context, config *rest.Config) error {
	return mcm.RunControllers(ctx, storm.Control(config), storm.Target(config), nil)
}}
