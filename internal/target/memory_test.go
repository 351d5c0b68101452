// SPDX-License-Identifier: Apache-2.0

package target_test

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// BenchmarkMemory prints how many bytes a waiting pod of a large workload takes in the cache, with and without sharing.
func BenchmarkMemory(b *testing.B) {
	sharing, _ := target.Sharing()
	for name, transform := range map[string]func(any) (any, error){"alone": target.Strip, "shared": sharing} {
		b.Run(name, func(b *testing.B) {
			store := cache.NewStore(cache.MetaNamespaceKeyFunc)
			before := allocated()
			for i := range b.N {
				// What is decoded from an answer shares nothing.
				text, err := fixture.Pod(fmt.Sprint("web-", i), ownedBy("web")).Marshal()
				if err != nil {
					b.Fatal(err)
				}
				pod := &corev1.Pod{}
				if err := pod.Unmarshal(text); err != nil {
					b.Fatal(err)
				}
				slim, err := transform(pod)
				if err != nil {
					b.Fatal(err)
				}
				if err := store.Add(slim); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(allocated()-before)/float64(b.N), "bytes/pod")
			runtime.KeepAlive(store)
		})
	}
}

func allocated() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
