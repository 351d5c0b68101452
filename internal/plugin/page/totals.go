// SPDX-License-Identifier: Apache-2.0

package page

import "github.com/evenkeel/evenkeel/internal/overview"

// totals are the numbers at the top of the page.
type totals struct {
	// Serving is the number of serving machines, Replicas the desired number; Ready and Excess are
	// the same for the reserve.
	Serving, Replicas, Ready, Excess int
	// Coming is the number of booting machines, Leaving that of leaving ones.
	Coming, Leaving, Failed int
	// Waiting is -1 if pods could not be read.
	Waiting int
	// Wrong is the number of problems.
	Wrong int
}

func newTotals(o overview.Overview) totals {
	t := totals{Waiting: o.PodsWaiting, Wrong: len(o.Troubles)}
	for _, pool := range o.Pools {
		for _, zone := range pool.Zones {
			t.Replicas += zone.Replicas
			t.Excess += zone.Excess
			t.Serving += zone.Count[overview.Working]
			t.Ready += zone.Count[overview.ReserveReady]
			t.Coming += zone.Count[overview.Booting] + zone.Count[overview.ReserveBooting]
			t.Leaving += zone.Count[overview.Leaving]
			t.Failed += zone.Count[overview.Failed]
		}
	}
	return t
}

// shownTroubles is how many problems are shown before the rest is folded.
const shownTroubles = 4

// troubles are the problems, the worst first.
type troubles struct {
	// All is their number, Next the number of the first folded one.
	All, Next    int
	First, Later []overview.Trouble
}

func newTroubles(all []overview.Trouble) troubles {
	first := min(len(all), shownTroubles)
	return troubles{len(all), first + 1, all[:first], all[first:]}
}
