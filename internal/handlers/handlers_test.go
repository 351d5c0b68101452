// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"reflect"
	"testing"

	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/handlers"
)

func TestHandlers(t *testing.T) {
	var changes [][2]any
	var versions []any
	events := 0
	for _, handler := range []cache.ResourceEventHandler{
		handlers.OnChange(func(was, is any) { changes = append(changes, [2]any{was, is}) }),
		handlers.OnVersions(func(items ...any) { versions = append(versions, items...) }),
		handlers.OnEvent(func() { events++ }),
	} {
		handler.OnAdd("a", false)
		handler.OnUpdate("a", "b")
		handler.OnDelete("b")
		handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "c", Obj: "c"})
	}
	if want := [][2]any{{nil, "a"}, {"a", "b"}, {"b", nil}, {"c", nil}}; !reflect.DeepEqual(changes, want) {
		t.Errorf("changes are %v, want %v", changes, want)
	}
	if want := []any{"a", "a", "b", "b", "c"}; !reflect.DeepEqual(versions, want) {
		t.Errorf("versions are %v, want %v", versions, want)
	}
	if events != 4 {
		t.Errorf("%d events, want 4", events)
	}
}
