// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// drawing is a model that is drawn: each of its steps is written as "from to actor", and state 0 is
// the first one.
type drawing [][3]int

func (d drawing) Begin() []int { return []int{0} }

func (d drawing) Rest(int) string { return "" }

func (d drawing) Steps(from int) (all []Step[int]) {
	for _, line := range d {
		if line[0] == from {
			all = append(all, Step[int]{What: string(rune('0'+from)) + string(rune('0'+line[1])), To: line[1], Actor: Actor(line[2])})
		}
	}
	return all
}

var _ = Describe("Steps that repeat forever", func() {
	DescribeTable("are a story only if they are fair", func(d drawing, way string) {
		r := Search[int](d, 100)
		if way == "" {
			Expect(r.Story).To(BeNil())
			return
		}
		Expect(r.Story).NotTo(BeNil())
		Expect(r.Story.Wrong).To(HavePrefix("I4"))
		var steps []string
		for _, step := range r.Story.Steps {
			steps = append(steps, step.What)
		}
		Expect(strings.Join(steps, " ")).To(Equal(way))
	},
		Entry("if nobody takes another step", drawing{{0, 1, 1}, {1, 2, 1}, {2, 1, 1}}, "01 12 21"),
		Entry("if steps end", drawing{{0, 1, 1}, {1, 2, 2}, {0, 2, 2}}, ""),
		Entry("not if an actor could end them all the time", drawing{{0, 1, 1}, {1, 0, 1}, {0, 2, 2}, {1, 2, 2}}, ""),
		Entry("if that actor could not do so all the time", drawing{{0, 1, 1}, {1, 0, 1}, {0, 2, 2}}, "01 10"),
		Entry("if that actor is promised no turn", drawing{{0, 1, 1}, {1, 0, 1}, {0, 2, 0}, {1, 2, 0}}, "01 10"),
		Entry("if that actor has another step among them", drawing{{0, 1, 1}, {1, 0, 1}, {0, 4, 2}, {1, 2, 2}, {2, 0, 1}, {2, 4, 2}}, "01 12 20"),
		Entry("by two actors that could each end those of the other", drawing{{0, 1, 1}, {1, 0, 1}, {0, 3, 2}, {1, 3, 2}, {0, 2, 2}, {2, 0, 2}, {2, 3, 1}}, "01 10 02 20"),
		Entry("that an unfair way leads to", drawing{{0, 1, 1}, {1, 0, 1}, {0, 2, 2}, {1, 2, 2}, {2, 3, 1}, {3, 2, 2}}, "02 23 32"),
	)
})
