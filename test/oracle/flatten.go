// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// flattener writes an object field by field.
type flattener struct {
	*numbering
	kind       string
	generation int64
	out        Object
}

// add writes a value and what is in it.
func (f *flattener) add(path string, value any) {
	if excluded(f.kind, path, f.loose) || namespaced(path, value) {
		return
	}
	switch v := value.(type) {
	case nil:
	case map[string]any:
		for key, inner := range v {
			f.add(under(path, key), inner)
		}
	case []any:
		f.addList(path, v)
	default:
		f.put(path, f.value(path, v))
	}
}

// under returns the path of a field of an object.
func under(path, key string) string {
	if strings.ContainsAny(key, "./") || strings.HasSuffix(path, "abels") || strings.HasSuffix(path, "nnotations") {
		return path + "[" + key + "]"
	}
	return path + "." + key
}

// addList writes a list in the order of its keys.
func (f *flattener) addList(path string, list []any) {
	keys := map[string]int{}
	var plain []string
	for _, element := range list {
		content, object := element.(map[string]any)
		if !object {
			plain = append(plain, f.value(path, element))
			continue
		}
		key := f.rename(keyOf(content))
		if keys[key]++; keys[key] > 1 {
			key = fmt.Sprintf("%s'%d", key, keys[key])
		}
		f.add(path+"["+key+"]", content)
		f.put(path+"["+key+"]", "present")
	}
	if plain != nil {
		slices.Sort(plain)
		f.put(path, strings.Join(plain, ", "))
	}
}

// keyOf returns what identifies an element of a list.
func keyOf(element map[string]any) string {
	var parts []string
	for _, field := range []string{"type", "kind", "name", "key", "effect"} {
		if text, ok := element[field].(string); ok {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, " ")
}

func (f *flattener) put(path, value string) {
	if !excluded(f.kind, path, f.loose) && !omitted(path, value) {
		f.out[path] = value
	}
}

// omitted reports whether a typed client omits a value: what is no pointer and has the value of an
// absent field.
func omitted(path, value string) bool {
	if value != "0" && value != "false" && value != "" || !strings.HasPrefix(path, "spec.") && !strings.HasPrefix(path, "status.") {
		return false
	}
	return !slices.ContainsFunc(pointers, func(field string) bool { return strings.HasSuffix(path, field) }) && !strings.HasSuffix(path, "]")
}

// pointers are fields in which zero is something else than nothing.
var pointers = []string{"maxSurge", "maxUnavailable", "revisionHistoryLimit", "progressDeadlineSeconds", "rollbackTo.revision"}

// value returns a scalar as text.
func (f *flattener) value(path string, v any) string {
	text, isText := v.(string)
	switch {
	case strings.HasPrefix(path, "metadata.ownerReferences[") && strings.HasSuffix(path, ".uid"):
		if f.uids[text] {
			return "there"
		}
		return "gone"
	case path == "status.observedGeneration":
		if fmt.Sprint(v) == fmt.Sprint(f.generation) {
			return "current"
		}
		return "behind"
	case isText:
		return f.rename(text)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}
