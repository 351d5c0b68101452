// SPDX-License-Identifier: Apache-2.0

package screen_test

import (
	"strings"
	"time"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	. "github.com/evenkeel/evenkeel/internal/plugin/screen"
	"github.com/evenkeel/evenkeel/internal/plugin/size"
	"github.com/evenkeel/evenkeel/internal/sizing"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

// amount is a fixed amount with its outcome: waits at p50, p95 and p99, the longest, and at the goal.
func amount(machines, late int, waits ...sizing.Seconds) sizing.Point {
	return sizing.Point{Policy: sizing.Fixed(machines), Outcome: sizing.Outcome{
		ReserveHours: float64(machines) * 168, MachineHours: float64(machines)*168 + 1216, Late: late, Median: waits[0], P95: waits[1], P99: waits[2], Longest: waits[3],
	}, Wait: waits[4]}
}

// answered is what a week of office hours needs.
func answered(changes ...func(*size.Answer)) size.Answer {
	monday := time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC)
	enough := amount(4, 12, 0, 0.3, 0.3, 78, 0.3)
	a := size.Answer{
		MachineDeployment: "pool-z1", Start: monday, End: monday.AddDate(0, 0, 7), Pods: 3050, Percentile: 99, WaitSeconds: 5, BootSeconds: []sizing.Seconds{95, 130},
		Machine: corev1.ResourceList{"cpu": resource.MustParse("3920m"), "memory": resource.MustParse("15Gi"), "pods": resource.MustParse("107")},
		Points:  []sizing.Point{amount(0, 624, 0, 108, 130, 141, 130), amount(1, 309, 0, 40, 116, 131, 116), enough, amount(6, 0, 0, 0.3, 0.3, 0.3, 0.3)},
		Amount:  &enough, Current: ptr.To(6),
	}
	for _, change := range changes {
		change(&a)
	}
	return a
}

func scheduled(a *size.Answer) {
	p := amount(1, 25, 0, 0.3, 3, 130, 3)
	p.Schedules, p.ReserveHours = []v1alpha1.ReserveSchedule{{Name: "day", Start: "55 7 * * MON-FRI", End: "0 18 * * MON-FRI", Replicas: ptr.To(int32(4))}}, 252.4
	a.Schedule = &p
}

var _ = It("The suggested size in words contains the same as in lines", func() {
	a := answered(scheduled)
	texts, lines := TextsOf(a), strings.Join(strings.Fields(strings.Join(Size(a, Style{Width: 200}), " ")), " ")
	for _, text := range []string{texts.Title, texts.Setup, texts.Suggestion, strings.Join(texts.Head, " ")} {
		Expect(lines).To(ContainSubstring(text))
	}
	Expect(texts.Rows).To(HaveLen(len(a.Points) + 1))
	for i, row := range texts.Rows {
		Expect(row.Cells).To(HaveLen(len(texts.Head) - 1))
		Expect(lines).To(ContainSubstring(strings.TrimSpace(row.Name + " " + strings.Join(row.Cells, " ") + " " + row.Tags)))
		Expect(row.Suggested).To(Equal(i == len(a.Points)))
	}
	Expect(texts.Rows[2].Tags).To(Equal("enough"))
	Expect(texts.Rows[3].Tags).To(Equal("now"))
})

var _ = DescribeTable("The suggested size looks as it should",
	func(name string, a size.Answer, s Style) {
		golden(name, strings.Join(Size(a, s), "\n")+"\n")
	},
	Entry("with a schedule", "size-schedule", answered(scheduled), Style{Width: 80}),
	Entry("with a schedule, in colour", "size-schedule-color", answered(scheduled), Style{Width: 80, Color: true}),
	Entry("with a price, another percentile and notes, on a narrow screen", "size-narrow", answered(scheduled, func(a *size.Answer) {
		a.Price, a.Percentile, a.Notes = 0.35, 97.5, []string{"3 pods request more than a machine has, and are left out", "and another"}
	}), Style{Width: 1}),
	Entry("with an amount at any time", "size-amount", answered(), Style{Width: 100}),
	Entry("without need for a reserve", "size-none", answered(func(a *size.Answer) { a.Amount, a.Current = &a.Points[0], nil }), Style{Width: 80}),
	Entry("where nothing is enough", "size-never", answered(func(a *size.Answer) { a.Amount, a.WaitSeconds = nil, 0.1 }), Style{Width: 80}),
)

var _ = It("A suggested size shows nothing by colours alone, and is no wider than the screen, whatever its text", func() {
	rapid.Check(GinkgoT(), func(t *rapid.T) {
		wait := rapid.Custom(func(t *rapid.T) sizing.Seconds { return sizing.Seconds(rapid.Float64Range(0, 1e9).Draw(t, "seconds")) })
		a := answered(scheduled)
		a.MachineDeployment, a.Notes = noise(t, "name"), []string{noise(t, "note")}
		a.Price = rapid.Float64Range(0, 1e6).Draw(t, "price")
		for range rapid.IntRange(0, 5).Draw(t, "points") {
			p := amount(rapid.IntRange(0, 5000).Draw(t, "machines"), rapid.IntRange(0, 1_000_000).Draw(t, "late"), wait.Draw(t, "p50"), wait.Draw(t, "p95"), wait.Draw(t, "p99"), wait.Draw(t, "longest"), wait.Draw(t, "goal"))
			a.Points = append(a.Points, p)
		}
		s := Style{Width: rapid.IntRange(Narrowest, 220).Draw(t, "width")}
		lines := Size(a, s)
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > s.Width || strings.ContainsAny(line, "\x1b\n\r\t") {
				t.Fatalf("%d columns of %d: %q", n, s.Width, line)
			}
		}
		s.Color = true
		NewWithT(t).Expect(escapes.ReplaceAllString(strings.Join(Size(a, s), "\n"), "")).To(Equal(strings.Join(lines, "\n")))
	})
})
