// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	kjson "sigs.k8s.io/json"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// fails is what *testing.T, *testing.F's and *rapid.T have in common.
type fails interface {
	Fatalf(string, ...any)
}

// lossless is V1.
func lossless[T any](t fails, stored []byte, show func(*T) *T, restore func([]byte, *T) ([]byte, error)) {
	object := new(T)
	if kjson.UnmarshalCaseSensitivePreserveInts(stored, object) != nil { // as clients do
		return // no such object can be stored
	}
	kept, err := json.Marshal(object)
	if err != nil {
		t.Fatalf("%v", err)
	}
	again, err := restore(stored, show(object))
	if err != nil {
		return // nor this one
	}
	if !bytes.Equal(again, stored) {
		t.Fatalf("shown and restored\n%s\nis\n%s", stored, again)
	}
	if after, _ := json.Marshal(object); !bytes.Equal(kept, after) {
		t.Fatalf("showing changed\n%s\ninto\n%s", kept, after)
	}
}

// shows is V2.
func shows[T any](t *rapid.T, restored []byte, show func(*T) *T, after *T) {
	object := new(T)
	if err := json.Unmarshal(restored, object); err != nil {
		t.Fatal(err)
	}
	is, _ := json.Marshal(show(object))
	want, _ := json.Marshal(show(after)) // annotations of ours that leaked into a view are not written
	if !bytes.Equal(is, want) {
		t.Fatalf("written and shown\n%s\nis\n%s\nstored\n%s", want, is, restored)
	}
}

// unknowns are the fields that no type knows, with their places. In a list, the place is what the element is about.
func unknowns(at string, value any, found map[string]int) map[string]int {
	switch value := value.(type) {
	case tree:
		for key, inner := range value {
			if key == "unknown" {
				found[fmt.Sprint(at, "=", inner)]++
			} else {
				unknowns(at+"."+key, inner, found)
			}
		}
	case []any:
		for _, inner := range value {
			unknowns(at+about(inner), inner, found)
		}
	}
	return found
}

// about is what distinguishes the elements of a list: taints by key and effect, conditions by type.
func about(element any) string {
	t, _ := element.(tree)
	return fmt.Sprint([]any{t["key"], t["effect"], t["type"]})
}

// keeps is the part of V3 about unknown fields.
func keeps(t *rapid.T, stored, restored []byte) {
	var before, after tree
	if err := json.Unmarshal(stored, &before); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(restored, &after); err != nil {
		t.Fatal(err)
	}
	if was, is := unknowns("", before, map[string]int{}), unknowns("", after, map[string]int{}); !reflect.DeepEqual(was, is) {
		t.Fatalf("unknown fields\n%v\nbecame\n%v", was, is)
	}
}

// withoutGivenUp is a stored Machine without the added taint that its mark gives up with the next write, because the view
// has another of the same key and effect (V4). That element does not go on existing.
func withoutGivenUp(t *rapid.T, stored []byte, m *v1alpha1.Machine) []byte {
	mark, err := machine.ParseReserve(m.Annotations[machine.ReserveAnnotation])
	if err != nil || len(mark.Taints) == 0 {
		return stored
	}
	added := mark.Taints[0] // no drawn mark has more
	all := m.Spec.NodeTemplateSpec.Spec.Taints
	last := -1
	for i, taint := range all {
		if taint == added {
			last = i
		}
	}
	matches := func(taint corev1.Taint) bool { return taint.MatchTaint(&added) }
	if last < 0 || !slices.ContainsFunc(view.ShowMachine(m).Spec.NodeTemplateSpec.Spec.Taints, matches) {
		return stored
	}
	var object tree
	if err := json.Unmarshal(stored, &object); err != nil {
		t.Fatal(err)
	}
	spec := object["spec"].(tree)["nodeTemplate"].(tree)["spec"].(tree)
	spec["taints"] = slices.Delete(spec["taints"].([]any), last, last+1)
	return []byte(encodedFor(t, object))
}

// ours are the annotations that only we write.
func ours(annotations map[string]string) map[string]string {
	found := map[string]string{}
	for key, value := range annotations {
		if strings.HasPrefix(key, machine.AnnotationPrefix) && key != machine.ReserveAnnotation {
			found[key] = value
		}
	}
	return found
}

var _ = Describe("Arbitrary objects", func() {
	It("are the same when shown and restored (V1)", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			a := arbitrary{t}
			lossless(t, a.stored(a.machine()), view.ShowMachine, view.RestoreMachine)
			lossless(t, a.stored(a.deployment()), view.ShowDeployment, view.RestoreDeployment)
		})
	})

	It("show what was written to a Machine (V2), and keep what was not (V3)", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			a := arbitrary{t}
			m := a.machine()
			stored := a.stored(m)
			after := view.ShowMachine(m).DeepCopy()
			keepsElements := true
			if a.chance(40) {
				after.Labels, after.Annotations = a.words(), a.words()
			}
			if a.chance(40) {
				after.Spec.NodeTemplateSpec.Annotations = a.words()
			}
			if a.chance(40) {
				after.Spec.NodeTemplateSpec.Spec.Taints, keepsElements = a.taints(), false
			} else if a.chance(40) {
				for i, taint := range after.Spec.NodeTemplateSpec.Spec.Taints {
					taint.Value += "!"
					after.Spec.NodeTemplateSpec.Spec.Taints[i] = taint
				}
				slices.Reverse(after.Spec.NodeTemplateSpec.Spec.Taints)
			}
			if a.chance(40) {
				after.Status.Conditions[0].Status = "Unknown"
				after.Status.Conditions = append([]corev1.NodeCondition{{Type: "New"}}, after.Status.Conditions...)
			}
			after.Spec.ProviderID = "p"
			restored, err := view.RestoreMachine(stored, after)
			if err != nil {
				t.Fatal(err)
			}
			shows(t, restored, view.ShowMachine, after)
			if keepsElements {
				keeps(t, withoutGivenUp(t, stored, m), restored)
			}
			is := &v1alpha1.Machine{}
			if err := json.Unmarshal(restored, is); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(ours(is.Annotations), ours(m.Annotations)) {
				t.Fatalf("our annotations %v became %v", m.Annotations, is.Annotations)
			}
		})
	})

	It("show what was written to a MachineDeployment (V2), and keep what was not (V3)", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			a := arbitrary{t}
			d := a.deployment()
			stored := a.stored(d)
			after := view.ShowDeployment(d).DeepCopy()
			if a.chance(40) {
				after.Labels, after.Annotations = a.words(), a.words()
			}
			for i := range after.Status.Conditions {
				if a.chance(40) {
					after.Status.Conditions[i].Message = a.word()
				}
			}
			if a.chance(40) {
				after.Spec.Paused = !after.Spec.Paused
				after.Status.CollisionCount = ptr.To[int32](3)
			}
			after.Status.Replicas = 5
			restored, err := view.RestoreDeployment(stored, after)
			if err != nil {
				t.Fatal(err)
			}
			shows(t, restored, view.ShowDeployment, after)
			keeps(t, stored, restored)
			is := &v1alpha1.MachineDeployment{}
			if err := json.Unmarshal(restored, is); err != nil {
				t.Fatal(err)
			}
			if is.Spec.Replicas != d.Spec.Replicas || !reflect.DeepEqual(ours(is.Annotations), ours(d.Annotations)) {
				t.Fatalf("%s became %s", stored, restored)
			}
		})
	})

	It("stay the same when marked and unmarked", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			m := arbitrary{t}.machine()
			m = pool.Unmark(m)
			marked := pool.Mark(m, reserve)
			if is, want := encodedFor(t, view.ShowMachine(marked)), encodedFor(t, view.ShowMachine(m)); is != want {
				t.Fatalf("%s marked shows as %s", want, is)
			}
			if is, want := encodedFor(t, pool.Mark(marked, reserve)), encodedFor(t, marked); is != want {
				t.Fatalf("%s marked twice is %s", want, is)
			}
			if is, want := encodedFor(t, pool.Unmark(marked)), encodedFor(t, m); is != want {
				t.Fatalf("%s marked and unmarked is %s", want, is)
			}
		})
	})
})

func encodedFor(t *rapid.T, object any) string {
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// FuzzLossless looks for an object that is not the same when shown and restored (V1).
func FuzzLossless(f *testing.F) {
	f.Add(`{"metadata":{"annotations":{"evenkeel.machine.sapcloud.io/reserve":"{\"since\":\"2026-11-21T09:30:00Z\",\"taints\":[{\"key\":\"k\",\"effect\":\"NoSchedule\"}]}"}},` +
		`"spec":{"nodeTemplate":{"spec":{"taints":[{"key":"a","effect":"NoSchedule"},{"key":"k","effect":"NoSchedule","later":1}]}}}}`)
	f.Add(`{"spec":{"replicas":3},"metadata":{"annotations":{"evenkeel.machine.sapcloud.io/applied-excess":"2,max=4"}},"status":{"conditions":[{"type":"A"}]}}`)
	f.Add(`{"spec":{"nodeTemplate":{"spec":{"taints":[null,{}]}}},"status":null}`)
	f.Add(`{"speC":{"repliCAs":1},"spec":{"REPLICAS":2}}`)
	f.Fuzz(func(t *testing.T, stored string) {
		lossless(t, []byte(stored), view.ShowMachine, view.RestoreMachine)
		lossless(t, []byte(stored), view.ShowDeployment, view.RestoreDeployment)
	})
}
