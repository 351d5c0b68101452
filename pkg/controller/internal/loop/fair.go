// SPDX-License-Identifier: Apache-2.0

package loop

import "k8s.io/client-go/tools/cache"

// fair is a queue that serves namespaces in turn, so that one with thousands of keys does not delay
// the others. Within a namespace, keys come out in the order in which they were added. The
// workqueue around it calls it under its lock.
type fair struct {
	waiting map[string][]string
	// turns are the namespaces with waiting keys, in the order in which they are served.
	turns []string
	size  int
}

func newFair() *fair { return &fair{waiting: map[string][]string{}} }

// Touch does nothing: a key that waits and is added again keeps its place.
func (f *fair) Touch(string) {}

func (f *fair) Len() int { return f.size }

func (f *fair) Push(key string) {
	namespace := namespaceOf(key)
	if len(f.waiting[namespace]) == 0 {
		f.turns = append(f.turns, namespace)
	}
	f.waiting[namespace] = append(f.waiting[namespace], key)
	f.size++
}

func (f *fair) Pop() string {
	namespace := f.turns[0]
	f.turns = f.turns[1:]
	keys := f.waiting[namespace]
	if len(keys) == 1 {
		delete(f.waiting, namespace)
	} else {
		f.waiting[namespace] = keys[1:]
		f.turns = append(f.turns, namespace)
	}
	f.size--
	return keys[0]
}

// namespaceOf returns the namespace of a key, and an empty text for a key of another form.
func namespaceOf(key string) string {
	namespace, _, _ := cache.SplitMetaNamespaceKey(key)
	return namespace
}
