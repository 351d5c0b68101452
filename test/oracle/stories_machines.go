// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
)

func name(replicas int, nths ...int) Name { return Name{Of: "pool", Nth: nths, Replicas: replicas} }

func trigger(value string) Patch {
	return edit(`{"metadata":{"annotations":{%q:%q}}}`, triggerDeletion, value)
}

// ofNamedDeletions are about machines that cluster-autoscaler names.
var ofNamedDeletions = []Story{
	{
		Name: "a named machine goes", Rows: []string{"N1", "N3", "N4", "N5"},
		Acts: []Act{pool(4), name(3, 2), name(1, 0, 1)},
	},
	{
		Name: "a named machine in the old format", Rows: []string{"N2", "N4"},
		Acts: []Act{pool(3), Name{Of: "pool", Nth: []int{1}, Replicas: 2, Old: true}, Name{Of: "pool", Nth: []int{0}, Replicas: 1, Old: true, Unstamped: true}},
	},
	{
		Name: "a named machine without a stamp", Rows: []string{"N2", "N5"},
		Acts: []Act{pool(3), Name{Of: "pool", Nth: []int{1}, Replicas: 2, Unstamped: true}},
	},
	{
		Name: "names that are nothing", Rows: []string{"N3"},
		Acts: []Act{pool(3), trigger("nobody~2000-01-01T00:00:00Z,x~y~z,~"), trigger("nobody"), trigger("")},
	},
	{
		Name: "a named machine of another deployment", Rows: []string{"N3"}, Weakness: "N3",
		Acts: []Act{pool(2), set("alone", 2), Name{Of: "pool", From: "alone", Nth: []int{0}, Replicas: 2}, scaleSet("alone", 1)},
	},
	{
		Name: "a named machine is spared when replicas come back", Rows: []string{"N7", "N5"},
		Acts: []Act{pool(3), Name{Of: "pool", Nth: []int{0}, Replicas: 3}, name(2, 1)},
	},
	{
		Name: "a named machine that is gone already", Rows: []string{"N3"},
		Acts: []Act{
			pool(3), Together{3 * time.Second, []Act{DeleteMachine{nth(0)}, name(2, 0)}}, Together{3 * time.Second, []Act{fail(nth(1)), name(1, 1)}},
		},
	},
	{
		Name: "a priority of people is honoured", Rows: []string{"N8", "S7"},
		Acts: []Act{pool(3), mark(nth(2), priority, "1"), PatchNode{nth(0), `{"metadata":{"annotations":{"` + priority + `":"1"}}}`}, scale(2), scale(1)},
	},
	{
		Name: "named while paused", Rows: []string{"E5", "N1"},
		Acts: []Act{pool(3), pause, name(2, 0), resume},
	},
	{
		Name: "named in the midst of a rollout", Rows: []string{"N4", "N5", "D5"},
		Acts: []Act{pool(4), Boots{true}, class("other"), name(3, 1), Boots{false}},
	},
	{
		Name: "named while the process is down", Rows: []string{"N4", "N5", "N6"},
		Acts: []Act{pool(4), Down{[]Act{name(3, 1), Wait{time.Minute}}}, Down{[]Act{mark(nth(0), priority, "1"), scale(2)}}},
	},
	{
		Name: "several named at once, with more replicas to go", Rows: []string{"N5", "S7", "N6"},
		Acts: []Act{pool(5), name(2, 1, 3)},
	},
}

func auto1(d *mcmapi.MachineDeployment) { d.Spec.AutoPreserveFailedMachineMax = 1 }

func markNode(n int, value string) PatchNode {
	return PatchNode{nth(n), `{"metadata":{"annotations":{"` + preserving + `":"` + value + `"}}}`}
}

// ofPreservation are about failed machines that stay.
var ofPreservation = []Story{
	{
		Name: "one failed machine is preserved, the next is not", Rows: []string{"Y1", "Y2", "S25", "S24"},
		Acts: []Act{pool(3, auto1), fail(nth(0)), fail(nth(1)), fail(nth(2))},
	},
	{
		Name: "fewer may be preserved", Rows: []string{"Y3", "Y1"},
		Acts: []Act{pool(1, auto1), scale(2), scale(3), fail(nth(0)), edit(`{"spec":{"autoPreserveFailedMachineMax":2}}`), fail(nth(1)), edit(`{"spec":{"autoPreserveFailedMachineMax":1}}`), edit(`{"spec":{"autoPreserveFailedMachineMax":0}}`)},
	},
	{
		Name: "the newest of several failed machines is preserved", Rows: []string{"Y2", "Y1"},
		Acts: []Act{pool(1, auto1), scale(2), scale(3), Down{[]Act{fail(nth(0)), fail(nth(1)), fail(nth(2))}}},
	},
	{
		Name: "the oldest preserved machine goes first", Rows: []string{"Y3"},
		Acts: []Act{
			pool(1), scale(2), scale(3), edit(`{"spec":{"autoPreserveFailedMachineMax":3}}`), fail(nth(2)), fail(nth(1)), fail(nth(0)),
			edit(`{"spec":{"autoPreserveFailedMachineMax":2}}`), edit(`{"spec":{"autoPreserveFailedMachineMax":1}}`),
		},
	},
	{
		Name: "of preserved machines the automatic ones go first", Rows: []string{"Y6", "S7"},
		Acts: []Act{pool(1, auto1), scale(2), mark(nth(0), preserving, "when-failed"), fail(nth(0)), fail(nth(1)), scale(1)},
	},
	{
		Name: "preserved by people", Rows: []string{"Y4", "S2"},
		Acts: []Act{pool(3), mark(nth(0), preserving, "when-failed"), fail(nth(0)), expire(nth(0))},
	},
	{
		Name: "preserved now, though it runs", Rows: []string{"Y4", "Y6", "S7"},
		Acts: []Act{pool(3), mark(nth(0), preserving, "now"), scale(1), scale(0)},
	},
	{
		Name: "not preserved", Rows: []string{"Y2", "Y4"},
		Acts: []Act{pool(3, auto1), mark(nth(0), preserving, "false"), fail(nth(0)), mark(nth(1), preserving, "what"), fail(nth(1))},
	},
	{
		Name: "preserved through its node", Rows: []string{"Y5"},
		Acts: []Act{pool(3), markNode(0, "when-failed"), fail(nth(0)), markNode(1, "false"), mark(nth(1), preserving, "when-failed"), fail(nth(1))},
	},
	{
		Name: "preserved and its node is gone", Rows: []string{"Y4", "Y5"},
		Acts: []Act{pool(3), mark(nth(0), preserving, "when-failed"), Together{Acts: []Act{DeleteNode{nth(0)}, fail(nth(0))}}},
	},
	{
		Name: "a preserved machine recovers", Rows: []string{"Y2", "Y1"},
		Acts: []Act{pool(3, auto1), fail(nth(0)), Recover{nth(0)}, fail(nth(1))},
	},
	{
		Name: "preserved machines go last", Rows: []string{"Y6", "S7"},
		Acts: []Act{pool(4, auto1), fail(nth(0)), scale(2), scale(1), scale(0)},
	},
	{
		Name: "rollouts do not spare preserved machines", Rows: []string{"Y6", "Y7", "R9"},
		Acts: []Act{pool(2, auto1), mark(nth(1), preserving, "now"), fail(nth(0)), class("other")},
	},
	{
		Name: "recreating does not spare preserved machines", Rows: []string{"Y6", "C2"},
		Acts: []Act{pool(2, recreate), mark(nth(1), preserving, "now"), class("other")},
	},
}

func freezeSet(value string) PatchSet {
	return PatchSet{nth(0), `{"metadata":{"labels":{"freeze":` + value + `}}}`}
}

// held makes a machine one that its machine-controller has seen already, so that it has to drain.
func held(m *mcmapi.Machine) { m.Finalizers = []string{finalizer} }

// overshoot adds machines that a set adopts.
func overshoot(label string, n int) Together {
	var acts []Act
	for i := range n {
		acts = append(acts, machine("extra-"+string(rune('a'+i)), label, held))
	}
	return Together{Acts: acts}
}

// ofSafety are about freezing.
var ofSafety = []Story{
	{
		Name: "too many machines freeze a deployment", Rows: []string{"F2", "F3", "F4", "F6", "F9", "S27"},
		Acts: []Act{pool(1), Drains{true}, adopted(6), scale(2), scale(7), Drains{false}},
	},
	{
		Name: "exactly as many machines as freeze a set", Rows: []string{"F3", "F4"},
		Acts: []Act{set("alone", 1), Drains{true}, overshoot("alone", 2), Together{Acts: []Act{machine("last", "alone", held)}}, unhold(alone(1)), unhold(alone(1)), Drains{false}},
	},
	{
		Name: "exactly as many machines as freeze a deployment", Rows: []string{"F3", "F4"},
		Acts: []Act{
			pool(2, rolling("1", "0")), Drains{true}, adopted(2), Together{Acts: []Act{machine("last", "pool", held, hashed)}}, unhold(nth(2)), unhold(nth(2)), Drains{false},
		},
	},
	{
		Name: "unfreezing what is still too large freezes again", Rows: []string{"F8", "F4"},
		Acts: []Act{pool(1), Drains{true}, adopted(6), edit(`{"metadata":{"annotations":{%q:"yes"}}}`, unfreeze), Drains{false}},
	},
	{
		Name: "a set that is frozen by hand thaws", Rows: []string{"F4", "F6", "F7"},
		Acts: []Act{pool(2), freezeSet(`"True"`), scale(3)},
	},
	{
		Name: "a label on a deployment vanishes", Rows: []string{"F7", "E1"},
		Acts: []Act{pool(2), edit(`{"metadata":{"labels":{"freeze":"True"}}}`), scale(3)},
	},
	{
		Name: "unfreeze by annotation", Rows: []string{"F8", "F6"},
		Acts: []Act{pool(2), freezeSet(`"True"`), edit(`{"metadata":{"annotations":{%q:"yes"}}}`, unfreeze), PatchSet{nth(0), `{"metadata":{"annotations":{"` + unfreeze + `":"x"}}}`}},
	},
	{
		Name: "a frozen condition without a label", Rows: []string{"F4", "F7"},
		Acts: []Act{
			pool(2), Patch{Deployment, "pool", `{"status":{"conditions":[{"type":"Frozen","status":"True","reason":"X","lastTransitionTime":"<now>","lastUpdateTime":"<now>"}]}}`, "status"},
		},
	},
	{
		Name: "a deployment that recreates is frozen by hand", Rows: []string{"F5"},
		Acts: []Act{pool(2, recreate), freezeSet(`"True"`), scale(3), freezeSet("null")},
	},
}

// adopted adds machines that the set of pool adopts.
func adopted(n int) Together {
	var acts []Act
	for i := range n {
		acts = append(acts, machine("extra-"+string(rune('a'+i)), "pool", held, hashed))
	}
	return Together{Acts: acts}
}

// hashed gives a machine the hash of the first set of pool.
func hashed(m *mcmapi.Machine) { m.Labels[hashLabel] = hashOf(pool(0)) }

// unhold lets a machine that drains go.
func unhold(at At) PatchMachine {
	return PatchMachine{At: at, Merge: `{"metadata":{"finalizers":null}}`}
}
