// SPDX-License-Identifier: Apache-2.0

package picture_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/internal/plugin/picture"
	"github.com/evenkeel/evenkeel/internal/plugin/size"
	"github.com/evenkeel/evenkeel/internal/sizing"
)

// amounts is an answer with these waits for 0, 1, 2 and more machines; the last amount is enough.
func amounts(waits ...sizing.Seconds) size.Answer {
	a := answer(10, len(waits)-1)
	a.Percentile, a.WaitSeconds = 99, 5
	for machines, wait := range waits {
		point := *kept(machines, float64(168*machines))
		point.Wait = wait
		a.Points = append(a.Points, point)
	}
	a.Amount, a.Schedule.Wait = &a.Points[len(waits)-1], 0.3
	return a
}

var _ = Describe("A picture of a frontier", func() {
	It("looks as it should", func() {
		expectGolden(drawnBy(picture.Frontier, amounts(160, 150, 130, 120, 0.3)), "frontier.svg")
	})

	It("has a dot for each amount where its cost and its wait are: that of no machine on the left, of twice the hours twice as far", func() {
		text := drawnBy(picture.Frontier, amounts(100, 50, 0))
		Expect(text).To(And(
			ContainSubstring(`<circle class="amount" cx="0" cy="0" r="4.5"/>`),
			ContainSubstring(`<circle class="amount" cx="352.8" cy="75" r="4.5"/>`),
			ContainSubstring(`<circle class="amount enough" cx="705.6" cy="150" r="4.5"/>`),
			ContainSubstring(`d="M0 0L352.8 75L705.6 150"`), ContainSubstring("p99 of the waits, in seconds"),
		))
	})

	It("shows long waits in minutes, or hours", func() {
		Expect(drawnBy(picture.Frontier, amounts(900, 1))).To(ContainSubstring("in minutes"))
		Expect(drawnBy(picture.Frontier, amounts(90000, 1))).To(ContainSubstring("in hours"))
	})

	It("has no dot for a schedule if there is none, and names those dots only between which there is room", func() {
		a := amounts(make([]sizing.Seconds, 100)...)
		Expect(strings.Count(drawnBy(picture.Frontier, a), `class="scheduled"`)).To(Equal(1))
		a.Schedule, a.Amount = nil, nil
		text := drawnBy(picture.Frontier, a)
		Expect(text).NotTo(ContainSubstring(`class="scheduled"`))
		Expect(strings.Count(text, "<circle")).To(Equal(100))
		Expect(strings.Count(text, `class="name"`)).To(BeNumerically("~", 28, 5))
	})

	It("is well-formed and has no script, whatever a name contains", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			a := amounts(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sizing.Seconds { return sizing.Seconds(rapid.Float64Range(0, 1e7).Draw(t, "wait")) }), 1, 20).Draw(t, "waits")...)
			a.MachineDeployment = rapid.OneOf(rapid.Just(`"><script>alert(1)</script>`), rapid.StringMatching(`[ -~]{0,40}`)).Draw(t, "name")
			text := drawnBy(picture.Frontier, a)
			if err := wellFormed(text); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(text, "<script") || strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || strings.Count(text, `class="tick`) > 13 {
				t.Fatal(text)
			}
		})
	})
})
