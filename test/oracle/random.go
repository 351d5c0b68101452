// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// draw is an act that a slice can have next, with how often it is drawn.
type draw struct {
	weight int
	act    func(*rand.Rand) Act
	// weakness is the row of a weakness of stock that such an act can show.
	weakness string
}

// slice is a part of the controllers' behavior, with the stories that are drawn for it.
type slice struct {
	name  string
	begin func(*rand.Rand) Act
	draws []draw
}

// chances are the rows by which stock's end depends on chance.
var chances = map[string]string{"inplace": "I8"}

// interrupted are the slices whose end depends on where faults strike, with the rows by which it does.
var interrupted = map[string]string{
	"inplace": "I3, I5, I6, I7: old sets are lowered to the machines that they have, also when these were not transferred; the rest is made anew",
}

// SlicesWithFaults are the kinds of random stories that end the same when faults strike.
func SlicesWithFaults() []string {
	return slices.DeleteFunc(Slices(), func(name string) bool { return interrupted[name] != "" })
}

// Slices are the names of the kinds of random stories.
func Slices() (names []string) {
	for _, s := range slicesOf {
		names = append(names, s.name)
	}
	return names
}

// actsPerStory is how many acts a random story has, beside the first.
const actsPerStory = 6

// Random draws a story of a slice from a seed. The same seed draws the same story. It has no acts that
// show a weakness of stock that the other implementation does not have.
func Random(name string, seed uint64, cured ...string) Story {
	for i, s := range slicesOf {
		if s.name == name {
			s.draws = slices.DeleteFunc(slices.Clone(s.draws), func(d draw) bool { return slices.Contains(cured, d.weakness) })
			story := s.story(rand.New(rand.NewPCG(seed, uint64(i))), fmt.Sprintf("%s, seed %d", name, seed))
			story.Chance = chances[name]
			return story
		}
	}
	panic("no slice " + name) // a mistake in a spec
}

// RandomInWeather draws a story as Random does, in which faults strike. Stock creates machines in vain
// then (17.1), and deletes any of those that it has; so that the end does not depend on which ones,
// the story leaves all machines alike, and its acts are far apart.
func RandomInWeather(name string, seed uint64, cured ...string) Story {
	s := Random(name, seed, cured...)
	s.Acts = slices.DeleteFunc(s.Acts, func(a Act) bool {
		switch act := a.(type) {
		case Create:
			return act.Object.GetObjectKind().GroupVersionKind().Kind == Machine
		case Delete:
			return act.Policy == metav1.DeletePropagationOrphan // it races with the garbage collector
		case PatchMachine, PatchNode, Sicken, Recover, DeleteNode, Together, Name, Updates, Boots:
			return true
		}
		return false
	})
	s.Name += " , with faults"
	s.Weather = seed
	return s
}

func (s slice) story(r *rand.Rand, name string) Story {
	story := Story{Name: name, Acts: []Act{s.begin(r)}}
	for range actsPerStory {
		story.Acts = append(story.Acts, s.draw(r))
	}
	return story
}

// draw draws an act; one in six is two at almost the same time.
func (s slice) draw(r *rand.Rand) Act {
	if r.IntN(6) == 0 {
		return Together{Pause: time.Duration(1+r.IntN(3)) * 700 * time.Millisecond, Acts: []Act{s.one(r), s.one(r)}}
	}
	return s.one(r)
}

func (s slice) one(r *rand.Rand) Act {
	sum := 0
	for _, d := range s.draws {
		sum += d.weight
	}
	at := r.IntN(sum)
	for _, d := range s.draws {
		if at -= d.weight; at < 0 {
			return d.act(r)
		}
	}
	panic("weights have no sum") // impossible
}

// always is an act that nothing is drawn for.
func always(a Act) func(*rand.Rand) Act { return func(*rand.Rand) Act { return a } }

// anyOf draws a machine of an owner.
func anyOf(owner string) func(*rand.Rand) At {
	return func(r *rand.Rand) At { return At{owner, r.IntN(6)} }
}

// pick draws one of some acts.
func pick(acts ...Act) func(*rand.Rand) Act {
	return func(r *rand.Rand) Act { return acts[r.IntN(len(acts))] }
}

// toMachine draws a machine and one of some acts on it.
func toMachine(owner string, acts ...func(At) Act) func(*rand.Rand) Act {
	return func(r *rand.Rand) Act { return acts[r.IntN(len(acts))](anyOf(owner)(r)) }
}

// apart gives the machine of an act a priority of its own: stock's choice among machines that only
// such an act distinguishes is random (S7).
func apart(r *rand.Rand, act Act) Act {
	return Together{Acts: []Act{act, mark(theSame, priority, fmt.Sprint(10+r.IntN(10_000)))}}
}

// life are draws that happen to the machines of any owner.
func life(owner string) []draw {
	return []draw{
		{weight: 2, act: toMachine(owner, func(a At) Act { return fail(a) })},
		{weight: 1, act: toMachine(owner, func(a At) Act { return Sicken{a} })},
		{weight: 2, act: toMachine(owner, func(a At) Act { return DeleteMachine{a} })},
		{weight: 2, act: func(r *rand.Rand) Act {
			return apart(r, toMachine(owner, func(a At) Act { return DeleteNode{a} }, func(a At) Act { return Recover{a} })(r))
		}},
		{weight: 3, act: func(r *rand.Rand) Act { return mark(anyOf(owner)(r), priority, fmt.Sprint(r.IntN(6))) }},
		{weight: 1, act: toMachine(owner, func(a At) Act { return mark(a, markedTime, "<now>") })},
		{weight: 1, act: pick(Boots{true}, Boots{false}, Boots{false})},
		{weight: 1, act: always(Crash{5 * time.Second})},
		{weight: 1, act: func(r *rand.Rand) Act {
			return machine(fmt.Sprintf("orphan-%d", r.IntN(3)), owner, func(m *mcmapi.Machine) { m.Spec.Class.Name = "foreign" })
		}},
	}
}

const (
	markedTime = "machine.sapcloud.io/marked-for-deletion-time"
	priority   = "machinepriority.machine.sapcloud.io"
	preserving = "node.machine.sapcloud.io/preserve"
)

// template are changes that do not roll, of a MachineDeployment or MachineSet.
func template(patch func(format string, args ...any) Patch) []draw {
	return []draw{
		{weight: 1, act: func(r *rand.Rand) Act {
			return patch(`{"spec":{"template":{"spec":{"nodeTemplate":{"metadata":{"labels":{"zone":"%d"}}}}}}}`, r.IntN(3))
		}},
		{weight: 1, act: func(r *rand.Rand) Act {
			return patch(`{"spec":{"template":{"spec":{"nodeTemplate":{"spec":{"taints":[{"key":"dedicated","value":"%d","effect":"NoSchedule"}]}}}}}}`, r.IntN(3))
		}},
		{weight: 1, act: func(r *rand.Rand) Act {
			return patch(`{"spec":{"template":{"spec":{"drainTimeout":"%dm0s"}}}}`, 1+r.IntN(3))
		}},
		{weight: 1, act: func(r *rand.Rand) Act {
			return patch(`{"metadata":{"annotations":{"owner":"%d"},"labels":{"team":"%d"}}}`, r.IntN(3), r.IntN(3))
		}},
		{weight: 1, act: func(r *rand.Rand) Act { return patch(`{"spec":{"minReadySeconds":%d}}`, r.IntN(3)) }},
	}
}

func scaling(most int) draw {
	return draw{weight: 6, act: func(r *rand.Rand) Act { return scale(r.IntN(most)) }}
}

// shows marks a draw whose act can show a weakness of stock.
func shows(row string, d draw) draw {
	d.weakness = row
	return d
}

// rolls are changes that make a new MachineSet.
func rolls() []draw {
	return []draw{
		{weight: 5, act: func(r *rand.Rand) Act { return class(string(rune('a' + r.IntN(3)))) }},
		{weight: 1, act: func(r *rand.Rand) Act {
			return edit(`{"spec":{"template":{"metadata":{"annotations":{"version":"%d"}}}}}`, r.IntN(3))
		}},
		{weight: 1, act: func(r *rand.Rand) Act {
			return soon(class(string(rune('a'+r.IntN(3)))), scale(r.IntN(6)))
		}},
		{weight: 1, act: func(r *rand.Rand) Act { return edit(`{"spec":{"revisionHistoryLimit":%d}}`, r.IntN(3)) }},
		{weight: 1, act: pick(edit(`{"spec":{"paused":true}}`), edit(`{"spec":{"paused":false}}`), edit(`{"spec":{"paused":false}}`))},
	}
}

func named() draw {
	return draw{weight: 3, act: func(r *rand.Rand) Act {
		return Name{Of: "pool", Nth: []int{r.IntN(5), r.IntN(5)}[:1+r.IntN(2)], Replicas: r.IntN(5), Old: r.IntN(4) == 0}
	}}
}

func anyPool(change func(*rand.Rand) func(*mcmapi.MachineDeployment)) func(*rand.Rand) Act {
	return func(r *rand.Rand) Act {
		return pool(int32(2+r.IntN(3)), change(r), func(d *mcmapi.MachineDeployment) {
			if r.IntN(3) == 0 {
				d.Spec.RevisionHistoryLimit = ptr.To(int32(r.IntN(2)))
			}
			if r.IntN(4) == 0 {
				d.Spec.ProgressDeadlineSeconds = ptr.To[int32](300)
			}
		})
	}
}

func anyRolling(r *rand.Rand) func(*mcmapi.MachineDeployment) {
	surges := []string{"1", "2", "0", "50%", "1"}
	return rolling(surges[r.IntN(len(surges))], []string{"0", "1", "25%"}[r.IntN(3)])
}

func anyInPlace(r *rand.Rand) func(*mcmapi.MachineDeployment) {
	how := mcmapi.OrchestrationTypeAuto
	if r.IntN(3) == 0 {
		how = mcmapi.OrchestrationTypeManual
	}
	return inPlace(how, []string{"0", "1"}[r.IntN(2)], []string{"1", "2"}[r.IntN(2)])
}

func ofSet(format string, args ...any) Patch { return editSet("alone", format, args...) }

func join(all ...[]draw) (draws []draw) {
	for _, one := range all {
		draws = append(draws, one...)
	}
	return draws
}

var slicesOf = []slice{
	{"sets", func(r *rand.Rand) Act { return set("alone", int32(1+r.IntN(4))) }, join(life("alone"), template(ofSet), []draw{
		{weight: 6, act: func(r *rand.Rand) Act { return scaleSet("alone", r.IntN(6)) }},
		{weight: 1, act: pick(ofSet(`{"metadata":{"labels":{"freeze":"True"}}}`), ofSet(`{"metadata":{"labels":{"freeze":null}}}`))},
		{weight: 1, act: pick(ofSet(`{"metadata":{"labels":{%q:"x"}}}`, scaleUpDisabled), ofSet(`{"metadata":{"labels":{%q:null}}}`, scaleUpDisabled))},
		{weight: 1, act: pick(Delete{Kind: Set, Name: "alone"}, Delete{Kind: Set, Name: "alone", Policy: metav1.DeletePropagationOrphan})},
		{weight: 1, act: always(set("alone", 2))},
	})},
	{"scaling", anyPool(anyRolling), join(life("pool"), template(edit), []draw{
		scaling(7), scaling(4), named(),
		{weight: 1, act: pick(edit(`{"spec":{"paused":true}}`), edit(`{"spec":{"paused":false}}`))},
	})},
	{"rolling", anyPool(anyRolling), join(life("pool"), template(edit), rolls(), []draw{
		scaling(6), named(),
		{weight: 1, act: func(r *rand.Rand) Act {
			return edit(`{"spec":{"strategy":{"rollingUpdate":{"maxSurge":%d,"maxUnavailable":%d}}}}`, r.IntN(3), r.IntN(3))
		}},
	})},
	{"recreate", anyPool(func(*rand.Rand) func(*mcmapi.MachineDeployment) { return recreate }), join(life("pool"), rolls(), []draw{scaling(6), named()})},
	{"inplace", anyPool(anyInPlace), join(rolls(), template(edit), []draw{
		shows("D7", scaling(5)),
		{weight: 2, act: pick(Updates{true}, Updates{false}, Updates{false})},
		{weight: 2, act: toMachine("pool", func(a At) Act {
			return PatchNode{a, fmt.Sprintf(`{"metadata":{"labels":{%q:"true"}}}`, mcmapi.LabelKeyNodeSelectedForUpdate)}
		})},
		{weight: 1, weakness: "I2", act: toMachine("pool", func(a At) Act { return fail(a) }, func(a At) Act { return DeleteMachine{a} })},
		{weight: 1, act: always(Crash{5 * time.Second})},
	})},
	{"rollback", anyPool(anyRolling), join(rolls(), template(edit), []draw{
		scaling(5),
		{weight: 5, act: func(r *rand.Rand) Act {
			return edit(`{"spec":{"rollbackTo":{"revision":%d}}}`, []int{0, 1, 2, 9}[r.IntN(4)])
		}},
	})},
	{"preserve", func(r *rand.Rand) Act {
		return pool(int32(2+r.IntN(3)), func(d *mcmapi.MachineDeployment) { d.Spec.AutoPreserveFailedMachineMax = int32(r.IntN(3)) })
	}, []draw{
		scaling(5),
		{weight: 5, act: toMachine("pool", func(a At) Act { return fail(a) })},
		{weight: 3, act: func(r *rand.Rand) Act {
			return apart(r, mark(anyOf("pool")(r), preserving, []string{"now", "when-failed", "false", "no such value", ""}[r.IntN(5)]))
		}},
		{weight: 2, act: func(r *rand.Rand) Act {
			return apart(r, PatchNode{anyOf("pool")(r), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, preserving, []string{"now", "when-failed", "false", ""}[r.IntN(4)])})
		}},
		{weight: 2, act: func(r *rand.Rand) Act {
			return apart(r, toMachine("pool", func(a At) Act { return Recover{a} }, func(a At) Act { return expire(a) })(r))
		}},
		{weight: 2, act: func(r *rand.Rand) Act { return edit(`{"spec":{"autoPreserveFailedMachineMax":%d}}`, r.IntN(3)) }},
		{weight: 1, act: always(class("b"))},
	}},
	{"safety", anyPool(anyRolling), []draw{
		scaling(6),
		{weight: 2, act: pick(edit(`{"metadata":{"labels":{"freeze":"True"}}}`), edit(`{"metadata":{"labels":{"freeze":null}}}`))},
		{weight: 2, act: always(edit(`{"metadata":{"annotations":{%q:"True"}}}`, unfreeze))},
		{weight: 2, act: func(r *rand.Rand) Act { return editSets(r, `{"metadata":{"labels":{"freeze":"True"}}}`) }},
		{weight: 2, act: func(r *rand.Rand) Act {
			return editSets(r, fmt.Sprintf(`{"metadata":{"annotations":{%q:"True"}}}`, unfreeze))
		}},
		{weight: 2, act: always(class("b"))},
		{weight: 1, act: toMachine("pool", func(a At) Act { return fail(a) })},
	}},
}

const (
	scaleUpDisabled = "node.machine.sapcloud.io/scale-up-disabled"
	unfreeze        = "safety.machine.sapcloud.io/unfreeze"
)

// editSets draws a MachineSet of the pool.
func editSets(r *rand.Rand, merge string) Act { return PatchSet{At{"pool", r.IntN(3)}, merge} }

// expire ends the preservation of a machine.
func expire(at At) Act {
	return PatchMachine{At: at, Subresource: "status", Merge: `{"status":{"currentStatus":{"preserveExpiryTime":"2000-01-01T00:00:00Z"}}}`}
}
