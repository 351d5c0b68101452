// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func alone(n int) At { return At{"alone", n} }

// cutOff takes away the label by which a set claims a machine, or gives it back.
func cutOff(at At, value string) PatchMachine {
	return PatchMachine{At: at, Merge: `{"metadata":{"labels":{"name":"` + value + `"}}}`}
}

var deleteAlone = Delete{Kind: Set, Name: "alone"}

// ofSets are about the machines of standalone MachineSets.
var ofSets = []Story{
	{
		Name: "a set grows and shrinks", Rows: []string{"S1", "S3", "S4", "O1", "O8", "T9", "S20", "S22"},
		Acts: []Act{set("alone", 3), scaleSet("alone", 5), scaleSet("alone", 2), scaleSet("alone", 0), deleteAlone},
	},
	{
		Name: "a set shrinks by priority, then by age", Rows: []string{"S7", "S8"},
		Acts: []Act{
			set("alone", 2), scaleSet("alone", 3), scaleSet("alone", 4), mark(alone(3), priority, "1"), mark(alone(0), priority, "5"),
			scaleSet("alone", 3), scaleSet("alone", 1),
		},
	},
	{
		Name: "a priority that is no number is the default", Rows: []string{"S7"},
		Acts: []Act{set("alone", 1), scaleSet("alone", 2), mark(alone(0), priority, "first"), mark(alone(1), priority, "2"), scaleSet("alone", 1)},
	},
	{
		Name: "a marked machine goes before others of its priority", Rows: []string{"S7"},
		Acts: []Act{set("alone", 1), scaleSet("alone", 3), mark(alone(1), markedTime, "<now>"), mark(alone(2), markedTime, "<now+1h>"), scaleSet("alone", 2), scaleSet("alone", 1)},
	},
	{
		Name: "a machine that does not run goes first", Rows: []string{"S7", "S10"},
		Acts: []Act{
			set("alone", 2), scaleSet("alone", 3), Boots{true}, scaleSet("alone", 4), Together{Acts: []Act{Sicken{alone(1)}, Wait{time.Minute}, scaleSet("alone", 3)}},
			scaleSet("alone", 2), Boots{false},
		},
	},
	{
		Name: "a failed machine is deleted first, then replaced", Rows: []string{"S2", "S6", "O9"},
		Acts: []Act{
			set("alone", 3), fail(alone(0)), Sicken{alone(1)}, Together{Acts: []Act{fail(alone(1)), fail(alone(2))}}, Drains{true}, fail(alone(0)), Drains{false},
		},
	},
	{
		Name: "an Unknown machine stays", Rows: []string{"S10"},
		Acts: []Act{set("alone", 2), Together{Acts: []Act{Sicken{alone(0)}, Wait{2 * time.Minute}, Recover{alone(0)}}}},
	},
	{
		Name: "a machine that somebody deletes is replaced", Rows: []string{"S2", "Q8"},
		Acts: []Act{set("alone", 2), DeleteMachine{alone(1)}, Together{Acts: []Act{DeleteMachine{alone(0)}, DeleteMachine{alone(1)}}}},
	},
	{
		Name: "failed machines wait while the count is short", Rows: []string{"S3", "S5", "E7"},
		Acts: []Act{
			set("alone", 3), ofSet(`{"metadata":{"labels":{%q:""}}}`, scaleUpDisabled), DeleteMachine{alone(0)}, fail(alone(0)), scaleSet("alone", 2),
			ofSet(`{"metadata":{"labels":{%q:null}}}`, scaleUpDisabled), scaleSet("alone", 3),
		},
	},
	{
		Name: "a frozen set does not grow, and does shrink", Rows: []string{"S5", "E7", "F9", "F2", "F3", "F4", "F6", "S27"},
		Acts: []Act{
			set("alone", 1), Drains{true}, overshoot("alone", 6), scaleSet("alone", 2), scaleSet("alone", 0), scaleSet("alone", 2), Drains{false},
		},
	},
	{
		Name: "a label that freezes", Rows: []string{"S5", "E7", "F4"},
		Acts: []Act{
			set("alone", 3), Glance{soon(Wait{20 * time.Second}, ofSet(`{"metadata":{"labels":{"freeze":"True"}}}`), scaleSet("alone", 4)), 5 * time.Second}, Wait{time.Minute},
			Glance{soon(ofSet(`{"metadata":{"labels":{"freeze":"True"}}}`), scaleSet("alone", 1)), 5 * time.Second}, Wait{time.Minute},
		},
	},
	{
		Name: "machines that drain are counted, and replaced", Rows: []string{"S2", "S20", "O9"},
		Acts: []Act{set("alone", 3), Drains{true}, scaleSet("alone", 1), scaleSet("alone", 2), DeleteMachine{alone(0)}, Drains{false}},
	},
	{
		Name: "a machine that was updated in place is no victim", Rows: []string{"S6"},
		Acts: []Act{
			set("alone", 3), PatchMachine{At: alone(1), Merge: `{"metadata":{"labels":{"node.machine.sapcloud.io/update-result":"successful"}}}`},
			scaleSet("alone", 1), scaleSet("alone", 0),
		},
	},
	{
		Name: "a marked machine with priority 1 goes at the next stamp", Rows: []string{"N5", "S6", "N7"},
		Acts: []Act{
			set("alone", 3), mark(alone(1), priority, "1"), mark(alone(1), markedTime, "<now>"),
			ofSet(`{"metadata":{"annotations":{%q:"<now>"}}}`, lastChange), mark(alone(0), markedTime, "<now>"),
		},
	},
	{
		Name: "more than a batch", Rows: []string{"S3"},
		Acts: []Act{set("alone", 20), scaleSet("alone", 5)},
	},
	{
		Name: "a set changes while the process is down", Rows: []string{"S2", "S6", "S7", "Q8"},
		Acts: []Act{
			set("alone", 2), scaleSet("alone", 4), Down{[]Act{fail(alone(3)), mark(alone(1), priority, "2"), scaleSet("alone", 3)}},
			Down{[]Act{DeleteMachine{alone(0)}, scaleSet("alone", 5)}}, Down{[]Act{deleteAlone}},
		},
	},
	{
		Name: "minReadySeconds mean nothing", Rows: []string{"S12"},
		Acts: []Act{set("alone", 2, func(s *mcmapi.MachineSet) { s.Spec.MinReadySeconds = 5000 }), scaleSet("alone", 3)},
	},
	{
		Name: "a machine that cannot be made", Rows: []string{"S23"},
		Acts: []Act{set("alone", 2), Quota{true}, scaleSet("alone", 3), Quota{false}, scaleSet("alone", 4)},
	},
}

// ofSetStatus are about the status of MachineSets.
var ofSetStatus = []Story{
	{
		Name: "labels that are no longer those of the template", Rows: []string{"S21"},
		Acts: []Act{set("alone", 2), ofSet(`{"spec":{"template":{"metadata":{"labels":{"more":"x"}}}}}`), scaleSet("alone", 3)},
	},
	{
		Name: "counts of machines that boot", Rows: []string{"S20", "S22"},
		Acts: []Act{Boots{true}, set("alone", 2), Boots{false}},
	},
	{
		Name: "a machine that the server refuses", Rows: []string{"S26", "P8", "S3"},
		Acts: []Act{
			set("alone", 1), pool(1), Refuse{Machine, true}, scaleSet("alone", 2), scale(2), class("other"), Refuse{Machine, false}, scaleSet("alone", 3), scale(3),
		},
	},
	{
		Name: "a preserved machine is counted", Rows: []string{"S24", "S25", "S23"},
		Acts: []Act{
			set("alone", 3, func(s *mcmapi.MachineSet) { s.Spec.AutoPreserveFailedMachineMax = 1 }),
			mark(alone(0), preserving, "when-failed"), fail(alone(0)), fail(alone(1)), scaleSet("alone", 4),
		},
	},
}

// ofOwnership are about adoption, finalizers and deletion.
var ofOwnership = []Story{
	{
		Name: "a set adopts machines that were there before", Rows: []string{"O4", "O5", "Q8"},
		Acts: []Act{
			machine("first", "alone"), machine("second", "alone"), machine("stranger", "other"), set("alone", 2), scaleSet("alone", 3), scaleSet("alone", 1),
		},
	},
	{
		Name: "a deployment adopts sets and machines that were restored", Rows: []string{"O4", "O5", "T3"},
		Acts: []Act{
			Together{Acts: []Act{
				set("pool", 2, func(s *mcmapi.MachineSet) {
					s.Labels = map[string]string{"name": "pool", hashLabel: "1234"}
					s.Spec.Selector.MatchLabels[hashLabel], s.Spec.Template.Labels = "1234", map[string]string{"name": "pool", hashLabel: "1234"}
				}),
				pool(2),
			}},
			scale(3), class("other"),
		},
	},
	{
		Name: "a machine that no longer matches", Rows: []string{"O6"}, Weakness: "O6",
		Acts: []Act{set("alone", 2), cutOff(alone(0), "nobody"), scaleSet("alone", 3), cutOff(alone(0), "alone"), deleteAlone},
	},
	{
		Name: "a deletion that orphans spares nothing", Rows: []string{"O10"}, Weakness: "O10",
		Acts: []Act{pool(2), Delete{Deployment, "pool", metav1.DeletePropagationOrphan}, pool(3)},
	},
	{
		Name: "a deployment goes with all it has", Rows: []string{"O7", "E4", "O8"},
		Acts: []Act{pool(3), mark(nth(0), preserving, "now"), Delete{Kind: Deployment, Name: "pool"}},
	},
	{
		Name: "a deployment goes in the foreground", Rows: []string{"O7"},
		Acts: []Act{pool(2), Delete{Deployment, "pool", metav1.DeletePropagationForeground}},
	},
	{
		Name: "a deployment goes in the midst of a rollout", Rows: []string{"O7", "E4"},
		Acts: []Act{pool(3), Boots{true}, class("other"), Delete{Kind: Deployment, Name: "pool"}},
	},
	{
		Name: "a set that is deleted under its deployment comes back", Rows: []string{"O8", "T2"},
		Acts: []Act{pool(2), DeleteSet{nth(0)}, scale(3)},
	},
	{
		Name: "a finalizer that others hold", Rows: []string{"O1", "O2", "O3"},
		Acts: []Act{
			pool(1), edit(`{"metadata":{"finalizers":["others.dev/hold","` + finalizer + `"]}}`), Delete{Kind: Deployment, Name: "pool"},
			edit(`{"metadata":{"finalizers":null}}`),
		},
	},
	{
		Name: "a finalizer that was taken away", Rows: []string{"O1"},
		Acts: []Act{pool(1), edit(`{"metadata":{"finalizers":null}}`), set("alone", 1), ofSet(`{"metadata":{"finalizers":null}}`)},
	},
	{
		Name: "two deployments that match the same set", Rows: []string{"O11"},
		Acts: []Act{pool(2), Create{twin()}, scale(3), edit(`{"spec":{"replicas":1}}`)},
	},
}
