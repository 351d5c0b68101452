// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
)

// ng returns a group like those of cluster-autoscaler's own tests, which are named ng1 and so on.
func ng(number, replicas, limit int) Group {
	return Group{Name: fmt.Sprint("ng", number), Replicas: replicas, Max: limit}
}

// text is what became of groups, as in 4/4/5/5, and what is left.
func text(sizes []int, left int) string {
	var words []string
	for _, n := range sizes {
		words = append(words, fmt.Sprint(n))
	}
	if left > 0 {
		words = append(words, fmt.Sprint("left ", left))
	}
	return strings.Join(words, "/")
}

// These are the rows of cluster-autoscaler's balancing, one by one.
var _ = DescribeTable("Growth over groups", func(want string, more int, groups ...Group) {
	sizes, left := SplitEvenly(groups, more, groups[0].Name)
	Expect(text(sizes, left)).To(Equal(want))
},
	Entry("one alone, 1", "2", 1, ng(1, 1, 10)),
	Entry("one alone, 4", "5", 4, ng(1, 1, 10)),
	Entry("1 to the smallest", "2/3/5/5", 1, ng(1, 1, 10), ng(2, 3, 10), ng(3, 5, 10), ng(4, 5, 10)),
	Entry("2 to the smallest", "3/3/5/5", 2, ng(1, 1, 10), ng(2, 3, 10), ng(3, 5, 10), ng(4, 5, 10)),
	Entry("4 to the two smallest", "4/4/5/5", 4, ng(1, 1, 10), ng(2, 3, 10), ng(3, 5, 10), ng(4, 5, 10)),
	Entry("5, either way", "5/4/5/5", 5, ng(1, 1, 10), ng(2, 3, 10), ng(3, 5, 10), ng(4, 5, 10)),
	Entry("10 to all", "6/6/6/6", 10, ng(1, 1, 10), ng(2, 3, 10), ng(3, 5, 10), ng(4, 5, 10)),
	Entry("at its max", "1/left 1", 1, ng(1, 1, 1)),
	Entry("one at its max, 1", "1/2", 1, ng(1, 1, 1), ng(2, 1, 3)),
	Entry("one at its max, 5", "1/3/left 3", 5, ng(1, 1, 1), ng(2, 1, 3)),
	Entry("two with different max", "3/5", 4, ng(2, 1, 3), ng(3, 3, 10)),
	Entry("three with different max, 9", "3/8/7", 9, ng(2, 1, 3), ng(3, 3, 10), ng(4, 5, 7)),
	Entry("three with different max, 900", "3/10/7/left 889", 900, ng(2, 1, 3), ng(3, 3, 10), ng(4, 5, 7)),
	Entry("one above its max", "2/6", 1, ng(2, 1, 3), ng(5, 6, 3)),
	Entry("the proposal's example: 1", "2/3/6", 1, ng(1, 1, 10), ng(2, 3, 10), ng(3, 6, 10)),
	Entry("the proposal's example: 4", "4/4/6", 4, ng(1, 1, 10), ng(2, 3, 10), ng(3, 6, 10)),
)

var _ = Describe("Growth over groups, by law", func() {
	It("takes from none, passes no max, wastes nothing, and leaves nothing less even than it must", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			n := rapid.IntRange(1, 6).Draw(t, "groups")
			var groups []Group
			for i := range n {
				groups = append(groups, ng(i, rapid.IntRange(0, 9).Draw(t, "replicas"), rapid.IntRange(0, 12).Draw(t, "max")))
			}
			more := rapid.IntRange(0, 40).Draw(t, "more")
			sizes, left := SplitEvenly(groups, more, groups[rapid.IntRange(0, n-1).Draw(t, "favoured")].Name)
			grown := left
			for i, g := range groups {
				if sizes[i] < g.Replicas || sizes[i] > max(g.Max, g.Replicas) {
					t.Fatalf("%v became %v", groups, sizes)
				}
				grown += sizes[i] - g.Replicas
				for j, h := range groups {
					if sizes[i] > g.Replicas && sizes[j] < h.Max && sizes[j] < sizes[i]-1 {
						t.Fatalf("%v became %v: %d should have grown before %d", groups, sizes, j, i)
					}
				}
				if left > 0 && sizes[i] < g.Max {
					t.Fatalf("%v became %v with %d left", groups, sizes, left)
				}
			}
			if grown != more {
				t.Fatalf("%d of %d", grown, more)
			}
		})
	})
})
