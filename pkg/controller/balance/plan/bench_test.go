// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"testing"

	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

// BenchmarkNew plans for pools of three zones with five machines in each.
func BenchmarkNew(b *testing.B) {
	for _, n := range []int{3, 99, 999} {
		var members []Member
		for i := range n {
			pool := fmt.Sprintf("pool-%d", i/3)
			m := NewMember(fmt.Sprintf("md-%04d", i), 5, Continuous, Applied(5), Labelled(pool), Excess("3"), share(1), ready(1))
			nodeLabel("pool", pool)(&m)
			members = append(members, m)
		}
		v := view(members...)
		b.Run(fmt.Sprint("members=", n), func(b *testing.B) {
			for b.Loop() {
				New(v)
			}
		})
	}
}
