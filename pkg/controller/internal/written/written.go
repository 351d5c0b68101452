// SPDX-License-Identifier: Apache-2.0

// Package written remembers what a controller wrote last, so that it does not decide on a cache that is older than its
// own writes: that is how controllers write things twice and undo their own work.
//
// A sync that finds its cache behind simply ends. The event that brings the cache up to date brings the next sync.
package written

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Log holds the resourceVersion of the last write per object. The zero value is ready for use.
type Log struct {
	mu   sync.Mutex
	last map[string]string
}

// Wrote notes what the API server answered to a write.
func (l *Log) Wrote(object, version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = map[string]string{}
	}
	if before, ok := l.last[object]; !ok || !reached(before, version) {
		l.last[object] = version
	}
}

// Seen tells whether a cache that shows this version of an object knows all our writes of it.
func (l *Log) Seen(object, version string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, ok := l.last[object]
	if !ok {
		return true
	}
	if !reached(version, last) {
		return false
	}
	delete(l.last, object)
	return true
}

// Forget an object that is gone.
func (l *Log) Forget(object string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.last, object)
}

// Keep forgets all objects but those that are there.
func (l *Log) Keep(there func(object string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.last, func(object, _ string) bool { return !there(object) })
}

// Len is how many objects are remembered.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.last)
}

// reached tells whether version a is b or later. Versions that cannot be compared count as reached: to wait for what
// cannot be recognized would be forever.
func reached(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order >= 0
}
