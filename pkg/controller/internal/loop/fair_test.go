// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/controller/internal/loop"
)

var _ = Describe("The queue of a loop", func() {
	It("does not have a namespace wait for the thousands of another", func() {
		entries := play(loop.Options{}, func(d *diary, key string) (time.Duration, error) {
			if d.note(key); key == "large/0" {
				time.Sleep(time.Second) // until all have been added
			}
			return 0, nil
		}, func(l *loop.Loop) {
			for i := range 2000 {
				l.Add(fmt.Sprint("large/", i))
			}
			l.Add("small/1")
			l.Add("small/2")
		})
		Expect(entries).To(HaveLen(2002))
		Expect(entries[0].key).To(Equal("large/0"))
		for i, e := range entries {
			if e.key == "small/2" {
				Expect(i).To(BeNumerically("<=", 4))
			}
		}
	})

	It("serves namespaces in turn, and the keys of each in the order in which they came", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			queue, added, served := loop.NewFair(), map[string][]string{}, map[string][]string{}
			since := map[string]map[string]int{} // by namespace with waiting keys: how often each other was served since the last turn
			waits := func(namespace string) bool { return len(added[namespace]) > len(served[namespace]) }
			for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
				if queue.Len() == 0 || rapid.Bool().Draw(t, "push") {
					namespace := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "namespace")
					if !waits(namespace) {
						since[namespace] = map[string]int{}
					}
					key := fmt.Sprint(namespace, "/", i)
					added[namespace] = append(added[namespace], key)
					queue.Push(key)
					continue
				}
				key := queue.Pop()
				namespace := key[:1]
				served[namespace] = append(served[namespace], key)
				since[namespace] = map[string]int{}
				for other := range added {
					if other == namespace || !waits(other) {
						continue
					}
					if since[other][namespace]++; since[other][namespace] > 1 {
						t.Fatalf("%s was served twice while %s waited", namespace, other)
					}
				}
			}
			left := 0
			for namespace, keys := range added {
				if n := len(served[namespace]); fmt.Sprint(served[namespace]) != fmt.Sprint(keys[:n]) {
					t.Fatalf("served %v of %v", served[namespace], keys)
				}
				left += len(keys) - len(served[namespace])
			}
			if queue.Len() != left {
				t.Fatalf("length %d, but %d wait", queue.Len(), left)
			}
		})
	})
})
