// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"fmt"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/test/bench/internal/fleet"
	"github.com/evenkeel/evenkeel/test/ui"
)

// patience is how long the browser may take for one change before the benchmark gives up.
const patience = time.Minute

// measure prints what it finds.
func measure(ctx context.Context, f *fleet.Fleet, p *plugin, browser *ui.Browser, changes int) error {
	begin := time.Now()
	tab, err := browser.Open(ctx, p.address, ui.Look{Width: 1440, Height: 900})
	if err != nil {
		return err
	}
	if err := tab.Until(ctx, fmt.Sprintf(`document.querySelectorAll("[data-machine]").length === %d && document.querySelector("#link.live")`, f.Machines)); err != nil {
		return err
	}
	fmt.Printf("page open and live after %d ms\n", time.Since(begin).Milliseconds())
	var took []time.Duration
	for i := range changes {
		one, err := change(ctx, f, tab, i*f.Machines/changes)
		if err != nil {
			return err
		}
		took = append(took, one)
	}
	slices.Sort(took)
	fmt.Printf("from the API server's answer to the page in the browser, %d changes: median %d ms, 9 in 10 within %d ms, longest %d ms\n",
		len(took), took[len(took)/2].Milliseconds(), took[len(took)*9/10].Milliseconds(), took[len(took)-1].Milliseconds())
	peak, err := p.memory()
	if err != nil {
		return err
	}
	fmt.Printf("memory of the plugin: %.0f MiB at most\n", peak)
	return nil
}

// change lets a machine fail, and returns how long it took until the reader saw that.
func change(ctx context.Context, f *fleet.Fleet, tab *ui.Tab, i int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := f.Becomes(ctx, i, mcm.MachineFailed); err != nil {
		return 0, err
	}
	answered := time.Now()
	err := tab.Until(ctx, fmt.Sprintf(`document.querySelector("[data-machine=%s]").getAttribute("href") === "#failed"`, fleet.Machine(i)))
	return time.Since(answered), err
}
