// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"fmt"
	"testing"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

// BenchmarkRead reads a MachineDeployment of 1,000 machines with three pods each from informers' stores. The outline is all that
// one without a reserve costs.
func BenchmarkRead(b *testing.B) {
	w := newWorld()
	for i := range 1000 {
		name := fmt.Sprint("m", i)
		w.machine("new", name)
		w.node(name)
		for range 3 {
			w.pod(name)
		}
	}
	source := w.stores()
	b.Run("outline", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			pool.Outline(w.deployment, source, noon)
		}
	})
	b.Run("whole", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			pool.Read(w.deployment, source, noon)
		}
	})
}
