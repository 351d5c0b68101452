// SPDX-License-Identifier: Apache-2.0

package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	kjson "sigs.k8s.io/json"
)

// tree is an object as JSON, with numbers as they are written.
type tree = map[string]any

// parseTree returns what it can decode; [decode] returns an error for the rest.
func parseTree(raw []byte) (t tree) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	_ = decoder.Decode(&t)
	return t
}

// decodeStored decodes an object as it is stored and as its type.
func decodeStored(stored []byte, object any) (tree, error) {
	return parseTree(stored), decode(stored, object)
}

// treeOf returns an object of machine-controller-manager's types as JSON, without its kind, which
// views omit. Such objects can always be encoded.
func treeOf(object any) tree {
	raw, _ := json.Marshal(object)
	t := parseTree(raw)
	delete(t, "kind")
	delete(t, "apiVersion")
	return t
}

// decode reads an object as machine-controller-manager's clients do.
func decode(raw []byte, object any) error {
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, object); err != nil {
		return fmt.Errorf("decode object: %w", err)
	}
	return nil
}

// overlay applies the change from before to after to live, of which before is a part: it keeps what
// before does not have. It changes live, and the result may share parts with all three.
func overlay(live, before, after any) any {
	if reflect.DeepEqual(before, after) {
		return live
	}
	switch after := after.(type) {
	case tree:
		if live, ok := live.(tree); ok {
			known, _ := before.(tree) // what was null had nothing
			return overlayTree(live, known, after)
		}
	case []any:
		live, isList := live.([]any)
		before, wasList := before.([]any)
		if isList && wasList && len(live) == len(before) {
			return overlayList(live, before, after)
		}
	}
	return after
}

func overlayTree(live, before, after tree) tree {
	for key := range before {
		if _, kept := after[key]; !kept {
			delete(live, key)
		}
	}
	for key, value := range after {
		was, known := before[key]
		switch held, there := live[key]; {
		case known && there:
			live[key] = overlay(held, was, value)
		case known && reflect.DeepEqual(was, value): // a default that is stored by its absence
		case there:
			live[key] = overlay(held, nil, value)
		default:
			live[key] = value
		}
	}
	return live
}

// overlayList finds for each element its former value: an equal element, or one of the same
// identity.
func overlayList(live, before, after []any) []any {
	origin := make([]int, len(after))
	used := make([]bool, len(before))
	match := func(same func(was, is any) bool) {
		for i, is := range after {
			if origin[i] >= 0 {
				continue
			}
			for j, was := range before {
				if !used[j] && same(was, is) {
					origin[i], used[j] = j, true
					break
				}
			}
		}
	}
	for i := range origin {
		origin[i] = -1
	}
	match(func(was, is any) bool { return reflect.DeepEqual(was, is) })
	match(func(was, is any) bool { return slices.Equal(identity(was), identity(is)) && len(identity(is)) > 0 })
	result := make([]any, len(after))
	for i, is := range after {
		if result[i] = is; origin[i] >= 0 {
			result[i] = overlay(live[origin[i]], before[origin[i]], is)
		}
	}
	return result
}

// identity returns what distinguishes the elements of a list in Kubernetes: conditions have a type,
// taints a key and an effect, owners a uid, all others a name.
func identity(element any) []any {
	t, _ := element.(tree)
	for _, fields := range [][]string{{"type"}, {"key", "effect"}, {"uid"}, {"name"}} {
		var found []any
		for _, field := range fields {
			if value, ok := t[field].(string); ok {
				found = append(found, value)
			}
		}
		if len(found) == len(fields) {
			return found
		}
	}
	return nil
}

// branch returns the tree at a path, and creates it if it is missing.
func branch(t tree, path ...string) tree {
	for _, key := range path {
		next, ok := t[key].(tree)
		if !ok {
			next = tree{}
			t[key] = next
		}
		t = next
	}
	return t
}
