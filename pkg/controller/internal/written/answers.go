// SPDX-License-Identifier: Apache-2.0

package written

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Answers holds what the API server answered to the last write of each object of one kind, until a cache shows as much. A
// controller that decides on them need not wait for its cache: where others wait for the outcome, that is the longer part
// of it. The zero value is ready for use.
type Answers[T metav1.Object] struct {
	mu   sync.Mutex
	last map[string]T
}

// Note an answer.
func (a *Answers[T]) Note(answer T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last == nil {
		a.last = map[string]T{}
	}
	id := idOf(answer)
	if before, ok := a.last[id]; !ok || !reached(before.GetResourceVersion(), answer.GetResourceVersion()) {
		a.last[id] = answer
	}
}

// Newest is the later of what a cache shows and of what was answered. An object that was deleted and made anew is the one
// that the cache shows.
func (a *Answers[T]) Newest(shown T) T {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := idOf(shown)
	answer, ok := a.last[id]
	if !ok {
		return shown
	}
	if answer.GetUID() != shown.GetUID() || reached(shown.GetResourceVersion(), answer.GetResourceVersion()) {
		delete(a.last, id)
		return shown
	}
	return answer
}

// Forget an object that is gone.
func (a *Answers[T]) Forget(gone T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.last, idOf(gone))
}

// Len is how many answers it holds.
func (a *Answers[T]) Len() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.last)
}

func idOf(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }
