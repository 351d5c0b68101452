// SPDX-License-Identifier: Apache-2.0

package sample

import "testing"

func expect[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestAll(t *testing.T) {
	expect(t, Held(1, 2), true)
	expect(t, Held(2, 2), false)
	expect(t, Held(3, 2), false)
	expect(t, Loose(1, 9), true)
	expect(t, Loose(9, 1), false)
	expect(t, Total([]int{1, 2, -4}), 3)
	expect(t, Name(1), "one")
	expect(t, Name(3), "none")
	expect(t, Make("ab").Name, "ab")
	expect(t, Make("ab").Names["ab"], 2)
	expect(t, Less("a", "b"), true)
	expect(t, Order("z", "aa"), -1)
	expect(t, Known("one"), true)
	expect(t, Known("three"), false)
}

func TestProduct(t *testing.T) {
	if p, err := Product(3, 4); err != nil || p != 12 {
		t.Errorf("got %d, %v", p, err)
	}
	if _, err := Product(1<<63, 2); err == nil {
		t.Error("no overflow")
	}
}
