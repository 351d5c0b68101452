// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/test/fixture"
)

const (
	hashLabel = "machine-template-hash"
	finalizer = "machine.sapcloud.io/machine-controller-manager"
)

// twin is a MachineDeployment whose selector is that of pool.
func twin() *mcmapi.MachineDeployment {
	return fixture.MachineDeployment("twin", 1, func(d *mcmapi.MachineDeployment) {
		d.Spec.Selector.MatchLabels["name"], d.Spec.Template.Labels["name"] = "pool", "pool"
		d.Spec.Template.Spec.Class.Name = "twin"
	})
}

// asPool gives a set what the selector of pool asks for.
func asPool(s *mcmapi.MachineSet) {
	s.Labels = map[string]string{"name": "pool"}
	s.Spec.Selector.MatchLabels["name"], s.Spec.Template.Labels["name"] = "pool", "pool"
}

func history(limit int32) func(*mcmapi.MachineDeployment) {
	return func(d *mcmapi.MachineDeployment) { d.Spec.RevisionHistoryLimit = &limit }
}

func deadline(seconds int32) func(*mcmapi.MachineDeployment) {
	return func(d *mcmapi.MachineDeployment) { d.Spec.ProgressDeadlineSeconds = &seconds }
}

var (
	pause  = edit(`{"spec":{"paused":true}}`)
	resume = edit(`{"spec":{"paused":false}}`)
	remove = Delete{Kind: Deployment, Name: "pool"}
)

// ofValidation are about what is refused, and what ends a pass early.
var ofValidation = []Story{
	{
		Name: "a deployment that is invalid stands still", Rows: []string{"E2", "V1"}, Weakness: "E2",
		Acts: []Act{pool(2), edit(`{"spec":{"replicas":-1}}`), remove, scale(1)},
	},
	{
		Name: "a strategy without its block", Rows: []string{"V1", "E2", "E8"},
		Acts: []Act{pool(2, rolling("1", "0")), edit(`{"spec":{"replicas":3,"strategy":{"type":"Recreate"}}}`), edit(`{"spec":{"strategy":{"type":"Unheard"}}}`), edit(`{"spec":{"strategy":{"type":"RollingUpdate"}}}`)},
	},
	{
		Name: "a template without the labels of the selector", Rows: []string{"V2", "E2"},
		Acts: []Act{pool(2), edit(`{"spec":{"replicas":3,"template":{"metadata":{"labels":{"name":"else"}}}}}`), edit(`{"spec":{"template":{"metadata":{"labels":{"name":"pool"}}}}}`)},
	},
	{
		Name: "a set that is invalid stands still", Rows: []string{"E2", "V2"}, Weakness: "E2",
		Acts: []Act{set("alone", 2), ofSet(`{"spec":{"replicas":-2}}`), deleteAlone, scaleSet("alone", 0)},
	},
	{
		Name: "a selector of everything", Rows: []string{"E3"}, Weakness: "E3",
		Acts: []Act{pool(2, func(d *mcmapi.MachineDeployment) { d.Spec.Selector = &metav1.LabelSelector{} }), scale(3)},
	},
	{
		Name: "percentages", Rows: []string{"V3", "T13", "D10"},
		Acts: []Act{pool(3, rolling("34%", "34%")), Boots{true}, class("other"), Boots{false}, scale(5)},
	},
	{
		Name: "a frozen deployment is scaled", Rows: []string{"E1", "F7"},
		Acts: []Act{pool(2), Together{Acts: []Act{edit(`{"metadata":{"labels":{"freeze":"True"}}}`), scale(3)}}},
	},
}

// ofTemplates are about templates, hashes, names, revisions and annotations.
var ofTemplates = []Story{
	{
		Name: "annotations are copied to the new set", Rows: []string{"T6"},
		Acts: []Act{
			pool(1), edit(`{"metadata":{"annotations":{"owner":"x","kubectl.kubernetes.io/last-applied-configuration":"{}",%q:"<now>"}}}`, lastChange),
			edit(`{"metadata":{"annotations":{"owner":null,"other":"y"}}}`), class("other"), edit(`{"metadata":{"annotations":{"other":"z"}}}`),
		},
	},
	{
		Name: "what is synced without a rollout", Rows: []string{"T7", "T8", "T3"},
		Acts: []Act{
			pool(2),
			edit(`{"spec":{"template":{"spec":{"nodeTemplate":{"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"}},"spec":{"taints":[{"key":"e","value":"f","effect":"NoSchedule"}]}}}}}}`),
			edit(`{"spec":{"template":{"spec":{"drainTimeout":"5m","creationTimeout":"9m","maxEvictRetries":7}}}}`),
			edit(`{"spec":{"template":{"spec":{"class":{"kind":"OtherClass"}}}}}`),
			edit(`{"spec":{"minReadySeconds":9,"autoPreserveFailedMachineMax":2}}`),
		},
	},
	{
		Name: "what does roll", Rows: []string{"T3"},
		Acts: []Act{
			pool(1), edit(`{"spec":{"template":{"metadata":{"labels":{"more":"x"}}}}}`), edit(`{"spec":{"template":{"metadata":{"annotations":{"more":"x"}}}}}`),
			edit(`{"spec":{"template":{"spec":{"class":{"apiGroup":"other.dev"}}}}}`), edit(`{"spec":{"template":{"spec":{"class":{"name":"other"}}}}}`),
		},
	},
	{
		Name: "machines of a failed set get no node template", Rows: []string{"T8"},
		Acts: []Act{
			set("alone", 2, func(s *mcmapi.MachineSet) { s.Spec.AutoPreserveFailedMachineMax = 1 }), fail(alone(0)),
			ofSet(`{"spec":{"template":{"spec":{"nodeTemplate":{"metadata":{"labels":{"a":"b"}}},"class":{"kind":"Other"},"drainTimeout":"3m"}}}}`),
		},
	},
	{
		Name: "old sets keep pushing their own template", Rows: []string{"T8", "T6"},
		Acts: []Act{
			pool(2), Boots{true}, class("other"), edit(`{"spec":{"template":{"spec":{"nodeTemplate":{"metadata":{"labels":{"a":"b"}}}}}}}`),
			PatchMachine{At: nth(0), Merge: `{"spec":{"nodeTemplate":{"metadata":{"labels":{"by":"hand"}}}}}`}, Boots{false},
		},
	},
	{
		Name: "revisions", Rows: []string{"T11", "T1", "T2", "P13"},
		Acts: []Act{pool(1), class("a"), class("b"), class("a"), class("class")},
	},
	{
		Name: "a revision that is no number", Rows: []string{"T11"},
		Acts: []Act{pool(1), PatchSet{nth(0), `{"metadata":{"annotations":{"deployment.kubernetes.io/revision":"x"}}}`}, class("a"), class("b")},
	},
	{
		Name: "records of replicas", Rows: []string{"T13", "D2", "D9"},
		Acts: []Act{pool(2, rolling("2", "0")), scale(4), edit(`{"spec":{"strategy":{"rollingUpdate":{"maxSurge":1}}}}`), scale(3)},
	},
	{
		Name: "a set made by hand is adopted and gets its hash", Rows: []string{"T14", "O4"},
		Acts: []Act{set("byhand", 2, asPool), pool(2), scale(3), class("other")},
	},
	{
		Name: "a name that is taken", Rows: []string{"T4"},
		Acts: []Act{taken(), pool(2), scale(3)},
	},
	{
		Name: "a set that the server refuses", Rows: []string{"T5", "P5"},
		Acts: []Act{Refuse{Set, true}, pool(2), Refuse{Set, false}, scale(3), Refuse{Set, true}, class("other"), Refuse{Set, false}, scale(2)},
	},
	{
		Name: "a deployment without machines has a set", Rows: []string{"D12", "T2", "D10"},
		Acts: []Act{pool(0), class("other"), scale(2), scale(0)},
	},
}

// ofScaling are about sizes in the steady state and while more than one set is active.
var ofScaling = []Story{
	{
		Name: "a deployment grows and shrinks", Rows: []string{"D2", "D3", "D9", "D13", "P4"},
		Acts: []Act{pool(3), scale(5), scale(1), scale(0), scale(2), remove},
	},
	{
		Name: "scaling while an old set is the only one", Rows: []string{"D3"},
		Acts: []Act{pool(2), pause, class("other"), scale(4), scale(0), scale(3), resume},
	},
	{
		Name: "scaling together with a template", Rows: []string{"D2", "T3"},
		Acts: []Act{pool(2), edit(`{"spec":{"replicas":4,"template":{"spec":{"class":{"name":"other"}}}}}`), edit(`{"spec":{"replicas":2,"template":{"spec":{"class":{"name":"third"}}}}}`)},
	},
	{
		Name: "scaling up in the midst of a rollout", Rows: []string{"D5", "D6"},
		Acts: []Act{pool(4, rolling("1", "1")), Boots{true}, class("other"), scale(6), scale(9), Boots{false}},
	},
	{
		Name: "scaling down in the midst of a rollout", Rows: []string{"D5", "D6"},
		Acts: []Act{pool(6, rolling("1", "2")), Boots{true}, class("other"), scale(5), scale(3), scale(0), Boots{false}, scale(2)},
	},
	{
		Name: "scaling back when the new set is complete", Rows: []string{"D4"},
		Acts: []Act{pool(3), class("other"), pause, scale(5), resume},
	},
	{
		Name: "scaling in a rollout that recreates stands still", Rows: []string{"D7"}, Weakness: "D7",
		Acts: []Act{pool(2, inPlace(mcmapi.OrchestrationTypeManual, "0", "1")), class("other"), selectForUpdate(0), scale(3), scale(2)},
	},
	{
		Name: "scaling while paused", Rows: []string{"D8", "E5", "D3"},
		Acts: []Act{pool(2), pause, scale(4), class("other"), scale(1), resume},
	},
	{
		Name: "surge that stays within its bounds", Rows: []string{"D10", "D11", "R1"},
		Acts: []Act{pool(4, rolling("2", "0")), Boots{true}, class("other"), Boots{false}},
	},
	{
		Name: "neither surge nor unavailable", Rows: []string{"D11", "V1"},
		Acts: []Act{pool(2, rolling("0", "0")), class("other")},
	},
	{
		Name: "the scale subresource", Rows: []string{"D14"},
		Acts: []Act{
			pool(1), Patch{Deployment, "pool", `{"spec":{"replicas":3}}`, "scale"}, set("alone", 1), Patch{Set, "alone", `{"spec":{"replicas":2}}`, "scale"},
		},
	},
	{
		Name: "active is what has replicas", Rows: []string{"D1", "D2"},
		Acts: []Act{pool(0), class("other"), scale(3), edit(`{"spec":{"template":{"spec":{"class":{"name":"class"}}}}}`)},
	},
}

// taken is a MachineSet with the name that the first of pool gets, and which is not of pool.
func taken() Create {
	return set(firstName(pool(2)), 1, func(s *mcmapi.MachineSet) {
		s.Spec.Selector.MatchLabels["name"], s.Spec.Template.Labels["name"] = "others", "others"
	})
}

// selectForUpdate lets a person select a machine for an update in place.
func selectForUpdate(n int) PatchNode {
	return PatchNode{nth(n), `{"metadata":{"labels":{"` + mcmapi.LabelKeyNodeSelectedForUpdate + `":"true"}}}`}
}
