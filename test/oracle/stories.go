// SPDX-License-Identifier: Apache-2.0

package oracle

import "slices"

// Stories returns all stories written by hand.
func Stories() []Story { return slices.Concat(ofSets) }

// ofSets are about standalone MachineSets.
var ofSets = []Story{
	{
		Name: "a set grows and shrinks", Rows: []string{"S1", "S3", "S4", "O1", "T9"},
		Acts: []Act{set("alone", 3), scaleSet("alone", 5), scaleSet("alone", 2), scaleSet("alone", 0), Delete{Kind: Set, Name: "alone"}},
	},
	{
		Name: "the least priority goes first", Rows: []string{"S7"},
		Acts: []Act{set("alone", 4), mark(At{"alone", 2}, priority, "1"), mark(At{"alone", 1}, priority, "5"), scaleSet("alone", 3), scaleSet("alone", 1)},
	},
	{
		Name: "a failed machine is replaced", Rows: []string{"S2", "S6"},
		Acts: []Act{set("alone", 3), fail(At{"alone", 0}), Sicken{At{"alone", 1}}},
	},
	{
		Name: "a deployment grows, rolls and shrinks", Rows: []string{"D3", "R1", "R2"},
		Acts: []Act{pool(3), scale(5), class("other"), scale(2), Delete{Kind: Deployment, Name: "pool"}},
	},
	{
		Name: "a restart changes nothing", Rows: []string{"O4"},
		Acts: []Act{pool(3), Crash{1e9}, scale(4)},
	},
}
