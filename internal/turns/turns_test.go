// SPDX-License-Identifier: Apache-2.0

package turns_test

import (
	"slices"
	"testing"

	"github.com/evenkeel/evenkeel/internal/turns"
)

func TestNamespacesTakeTurns(t *testing.T) {
	items := []string{"a1", "a2", "b1", "a3", "c1", "b2"}
	got := turns.ByNamespace(items, func(item string) string { return item[:1] })
	if want := []string{"a1", "b1", "c1", "a2", "b2", "a3"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if items[1] != "a2" {
		t.Error("the items themselves were sorted")
	}
}
