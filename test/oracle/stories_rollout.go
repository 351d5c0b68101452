// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
)

// ofRollingUpdate are about the strategy RollingUpdate.
var ofRollingUpdate = []Story{
	{
		Name: "a rollout, one by one", Rows: []string{"R1", "R4", "R5", "R7", "R9", "P5", "P6"},
		Acts: []Act{pool(3), class("other"), scale(1), remove},
	},
	{
		Name: "a rollout that makes room first", Rows: []string{"R2", "R4"},
		Acts: []Act{pool(4, rolling("0", "2")), Boots{true}, class("other"), Boots{false}},
	},
	{
		Name: "a rollout that is stuck marks old nodes", Rows: []string{"R6", "R7", "R8"},
		Acts: []Act{pool(3), Boots{true}, class("other"), Boots{false}},
	},
	{
		Name: "broken old machines go first", Rows: []string{"R3"},
		Acts: []Act{pool(4, rolling("1", "1")), Boots{true}, Together{Acts: []Act{scale(6), Wait{time.Minute}, class("other")}}, Boots{false}},
	},
	{
		Name: "three sets at once", Rows: []string{"R2", "R3", "R4", "D6"},
		Acts: []Act{pool(5, rolling("1", "2")), Boots{true}, class("second"), class("third"), scale(3), Boots{false}},
	},
	{
		Name: "going back before the end", Rows: []string{"R11", "T3", "R1"},
		Acts: []Act{pool(3), Boots{true}, class("other"), class("class"), Boots{false}},
	},
	{
		Name: "going back after the end", Rows: []string{"R11", "T11"},
		Acts: []Act{pool(2), class("other"), class("class"), class("other")},
	},
	{
		Name: "paused in the midst", Rows: []string{"R10", "E5"},
		Acts: []Act{pool(3), Boots{true}, class("other"), pause, Boots{false}, scale(2), resume},
	},
	{
		Name: "old sets are kept up to a limit", Rows: []string{"R12"},
		Acts: []Act{pool(1, history(1)), class("a"), class("b"), class("c"), edit(`{"spec":{"revisionHistoryLimit":0}}`)},
	},
	{
		Name: "old sets are all kept", Rows: []string{"R12"},
		Acts: []Act{pool(1), class("a"), class("b"), class("c")},
	},
	{
		Name: "an annotation of a user on a node goes with the rollout", Rows: []string{"R7", "R9"}, Weakness: "R9",
		Acts: []Act{
			pool(2), PatchNode{nth(0), `{"metadata":{"annotations":{"cluster-autoscaler.kubernetes.io/scale-down-disabled":"true"}}}`},
			Boots{true}, class("other"), class("class"), Boots{false},
		},
	},
	{
		Name: "a new machine fails in a rollout", Rows: []string{"R2", "S2"},
		Acts: []Act{pool(3, rolling("1", "1")), Boots{true}, class("other"), fail(nth(3)), Boots{false}},
	},
	{
		Name: "a class that cannot be made", Rows: []string{"R2", "S23", "P1"},
		Acts: []Act{pool(3), Quota{true}, class("other"), Quota{false}, scale(2)},
	},
	{
		Name: "limits change in the midst", Rows: []string{"D10", "D11", "T13"},
		Acts: []Act{pool(4), Boots{true}, class("other"), edit(`{"spec":{"strategy":{"rollingUpdate":{"maxSurge":2,"maxUnavailable":1}}}}`), Boots{false}},
	},
	{
		Name: "the process restarts in the midst", Rows: []string{"R6", "R7"},
		Acts: []Act{pool(3), Together{Acts: []Act{class("other"), Wait{30 * time.Second}, Crash{5 * time.Second}}}, scale(4)},
	},
	{
		Name: "machines that drain count against surge", Rows: []string{"D10", "S20", "R8"},
		Acts: []Act{pool(3), Drains{true}, class("other"), Drains{false}},
	},
	{
		Name: "each step of a rollout", Rows: []string{"R4", "R7", "P5", "D10"},
		Acts: []Act{pool(3), Glance{class("other"), 10 * time.Second}, Glance{Wait{time.Second}, 20 * time.Second}, Glance{Wait{time.Second}, 30 * time.Second}, Wait{time.Second}},
	},
	{
		Name: "much changes while the process is down", Rows: []string{"O4", "R1", "D2", "Q8"},
		Acts: []Act{
			pool(3), Down{[]Act{class("a"), scale(4), DeleteMachine{nth(0)}}}, Down{[]Act{class("b"), class("c"), fail(nth(1)), scale(2)}},
			Down{[]Act{class("class"), Delete{Kind: Deployment, Name: "pool"}}},
		},
	},
	{
		Name: "the strategy changes in the midst", Rows: []string{"C2", "R1"},
		Acts: []Act{pool(3), Boots{true}, class("other"), edit(`{"spec":{"strategy":{"type":"Recreate"}}}`), Boots{false}},
	},
}

// ofRecreate are about the strategy Recreate.
var ofRecreate = []Story{
	{
		Name: "all go, then all come", Rows: []string{"C1", "C2", "C3", "C4", "Q7"},
		Acts: []Act{pool(3, recreate), class("other"), scale(4), remove},
	},
	{
		Name: "a machine that stays holds the new set", Rows: []string{"C1", "C3"},
		Acts: []Act{
			pool(2, recreate), Drains{true}, class("other"), scale(3), Drains{false},
		},
	},
	{
		Name: "recreate nothing", Rows: []string{"C2", "D12"},
		Acts: []Act{pool(0, recreate), class("other"), scale(2)},
	},
	{
		Name: "recreate with a new size", Rows: []string{"C4", "D2"},
		Acts: []Act{pool(2, recreate), edit(`{"spec":{"replicas":3,"template":{"spec":{"class":{"name":"other"}}}}}`), class("third"), class("other")},
	},
}

const (
	auto   = mcmapi.OrchestrationTypeAuto
	manual = mcmapi.OrchestrationTypeManual
)

// ofInPlaceUpdate are about the strategy InPlaceUpdate.
var ofInPlaceUpdate = []Story{
	{
		Name: "an update in place", Rows: []string{"I1", "I2", "I6", "I7", "I8", "I4", "I10"},
		Acts: []Act{pool(3, inPlace(auto, "0", "1")), class("other"), scale(4), scale(2), remove},
	},
	{
		Name: "an update in place with surge", Rows: []string{"I8", "I10", "I5"},
		Acts: []Act{pool(3, inPlace(auto, "1", "0")), class("other")},
	},
	{
		Name: "an update in place that fails", Rows: []string{"I9"},
		Acts: []Act{pool(2, inPlace(auto, "0", "1")), Updates{true}, class("other"), Updates{false}},
	},
	{
		Name: "updates that people select", Rows: []string{"I8", "I11", "I7", "I10"},
		Acts: []Act{pool(3, inPlace(manual, "0", "1")), class("other"), selectForUpdate(0), selectForUpdate(0), selectForUpdate(0)},
	},
	{
		Name: "scaling a manual update", Rows: []string{"D7", "I11"}, Weakness: "D7",
		Acts: []Act{pool(3, inPlace(manual, "0", "1")), class("other"), selectForUpdate(0), scale(4), scale(3), selectForUpdate(0), selectForUpdate(0)},
	},
	{
		Name: "a machine that boots in place", Rows: []string{"I5"}, Weakness: "I5",
		Acts: []Act{pool(2, inPlace(auto, "0", "1")), Boots{true}, scale(3), Boots{false}},
	},
	{
		Name: "going back in place", Rows: []string{"I2", "T3"}, Weakness: "I2",
		Acts: []Act{pool(2, inPlace(auto, "0", "1")), class("other"), class("class"), scale(3), DeleteMachine{nth(0)}},
	},
	{
		Name: "a machine is deleted in an update", Rows: []string{"I2", "I6", "I7"},
		Acts: []Act{pool(3, inPlace(manual, "0", "1")), class("other"), DeleteMachine{nth(0)}, selectForUpdate(0)},
	},
	{
		Name: "all old machines go in place", Rows: []string{"I7"},
		Acts: []Act{pool(1, inPlace(manual, "0", "1")), class("other"), DeleteMachine{nth(0)}},
	},
	{
		Name: "one update after the other", Rows: []string{"I6", "R12"},
		Acts: []Act{pool(2, inPlace(auto, "0", "2"), history(0)), class("second"), class("third")},
	},
	{
		Name: "the process restarts in an update in place", Rows: []string{"I3", "I6"},
		Acts: []Act{pool(3, inPlace(auto, "0", "1")), Together{Acts: []Act{class("other"), Wait{40 * time.Second}, Crash{5 * time.Second}, Wait{40 * time.Second}, Crash{5 * time.Second}}}},
	},
}

// ofStatus are about the status, progress and pauses of MachineDeployments.
var ofStatus = []Story{
	{
		Name: "a rollout that misses its deadline", Rows: []string{"P5", "P7", "P9", "P14"},
		Acts: []Act{pool(2, deadline(300)), Boots{true}, class("other"), pause, resume, Boots{false}},
	},
	{
		Name: "a first set that misses its deadline", Rows: []string{"P7", "P9", "P12"},
		Acts: []Act{Boots{true}, pool(2, deadline(120)), Boots{false}},
	},
	{
		Name: "pause and resume", Rows: []string{"P14", "E5"},
		Acts: []Act{pool(2), pause, resume, scale(3)},
	},
	{
		Name: "available and not", Rows: []string{"P2", "P1", "P3"},
		Acts: []Act{
			pool(3), Boots{true}, DeleteMachine{nth(0)}, Boots{false}, edit(`{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":1}}}}`),
			Boots{true}, DeleteMachine{nth(0)}, Boots{false},
		},
	},
	{
		Name: "a failed machine shows in the status", Rows: []string{"P1", "P10", "S23"},
		Acts: []Act{pool(2), Quota{true}, scale(3), Quota{false}},
	},
	{
		Name: "a condition of others stays", Rows: []string{"P3"},
		Acts: []Act{
			pool(1), Patch{Deployment, "pool", `{"status":{"conditions":[{"type":"Others","status":"True","reason":"Theirs","lastTransitionTime":"<now>","lastUpdateTime":"<now>"}]}}`, "status"},
			scale(2), class("other"),
		},
	},
	{
		Name: "scaling leaves progress alone", Rows: []string{"P4", "P5"},
		Acts: []Act{pool(2), scale(3), scale(1), class("other"), scale(2)},
	},
	{
		Name: "preserved machines count as available", Rows: []string{"P2", "P1"},
		Acts: []Act{pool(3), mark(nth(0), preserving, "when-failed"), fail(nth(0)), scale(4)},
	},
}

func rollback(revision int) Patch { return edit(`{"spec":{"rollbackTo":{"revision":%d}}}`, revision) }

// ofRollback are about going back to a revision.
var ofRollback = []Story{
	{
		Name: "back to the last revision", Rows: []string{"B1", "B2", "B4", "R11"},
		Acts: []Act{pool(2), class("a"), class("b"), rollback(0), rollback(0)},
	},
	{
		Name: "back to a named revision", Rows: []string{"B1", "B2", "B4"},
		Acts: []Act{
			pool(2), edit(`{"metadata":{"annotations":{"owner":"first"}}}`), class("a"), edit(`{"metadata":{"annotations":{"owner":"second"}}}`),
			edit(`{"spec":{"template":{"spec":{"nodeTemplate":{"metadata":{"labels":{"a":"b"}}},"drainTimeout":"4m0s"}}}}`), class("b"), rollback(1), rollback(2),
		},
	},
	{
		Name: "back to what is there, or never was", Rows: []string{"B3"},
		Acts: []Act{pool(2), rollback(0), rollback(1), class("a"), rollback(2), rollback(9)},
	},
	{
		Name: "back while paused waits", Rows: []string{"E6", "B1", "D8"},
		Acts: []Act{pool(2), class("a"), pause, rollback(1), scale(3), resume},
	},
	{
		Name: "back from a template that has no set yet", Rows: []string{"B1", "B2"},
		Acts: []Act{pool(2), class("a"), pause, class("b"), rollback(1), resume, rollback(3)},
	},
	{
		Name: "back in the midst of a rollout, with another size", Rows: []string{"E6", "B2", "R11"},
		Acts: []Act{pool(3), Boots{true}, class("a"), edit(`{"spec":{"replicas":4,"rollbackTo":{"revision":1}}}`), Boots{false}},
	},
}
