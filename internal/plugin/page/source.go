// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/plugin/size"
)

// Source provides what the page shows.
type Source struct {
	// Read returns the present state. It is called by one goroutine at a time.
	Read func() overview.Overview
	// Changed has a value when Read would return something new. One value may stand for many
	// changes.
	Changed <-chan struct{}
	// Size returns how large the reserve of a MachineDeployment should be, or size.ErrNotFound. It
	// is called by one goroutine at a time, and ends early when ctx does.
	Size func(ctx context.Context, namespace, name string) (size.Answer, error)
}
