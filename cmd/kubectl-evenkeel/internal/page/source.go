// SPDX-License-Identifier: Apache-2.0

package page

import "github.com/evenkeel/evenkeel/internal/overview"

// Source is where what the page shows comes from.
type Source struct {
	// Read says what there is to see now. It is called by one goroutine at a time.
	Read func() overview.Overview
	// Changed gets a value when Read would say something new. One value may stand for many changes.
	Changed <-chan struct{}
}
