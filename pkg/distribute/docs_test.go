// SPDX-License-Identifier: Apache-2.0

package distribute_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/pkg/distribute"
)

// row is a table row of the page: total, targets, answer.
var row = regexp.MustCompile("(?m)^\\| (\\d+) \\| `([^`]+)` \\| ([^|]+?) \\|")

// word is a target of the page: a weight, then perhaps bounds, what runs of it, what failed, and the probe.
var word = regexp.MustCompile(`^(\d+)(?:\[(\d*)\.\.(\d*)\])?(?:\(runs (\d+)(?:, (\d+) failed)?(?:, probe (\d+))?\))?$`)

var _ = It("gives every answer of its page", func() {
	page, err := os.ReadFile("../../docs/distribute.md")
	Expect(err).NotTo(HaveOccurred())
	rows := row.FindAllStringSubmatch(string(page), -1)
	Expect(len(rows)).To(BeNumerically(">=", 15))
	for _, r := range rows {
		l := readLayout(r[2])
		got, err := WithFallback(number(r[1], 0), l.targets, l.health, Options{})
		Expect(err).NotTo(HaveOccurred())
		says := slashed(got.Replicas)
		if got.Deficit > 0 {
			says += ", " + strconv.FormatInt(got.Deficit, 10) + " too many"
		}
		if got.Overflow > 0 {
			says += ", " + strconv.FormatInt(got.Overflow, 10) + " nowhere"
		}
		Expect(says).To(Equal(r[3]), r[0])
	}
})

// readLayout reads tiers between angle brackets of targets between semicolons.
func readLayout(s string) layout {
	var weights []int64
	var spots []spot
	var tiers []int32
	for tier, part := range strings.Split(s, " > ") {
		for target := range strings.SplitSeq(part, " ; ") {
			m := word.FindStringSubmatch(target)
			Expect(m).NotTo(BeNil(), target)
			sp := between(number(m[2], 0), number(m[3], Unbounded))
			if m[4] != "" {
				sp.health = Health{Blocked: true, Usable: number(m[4], 0), Failed: number(m[5], 0), Probe: number(m[6], -1)}
			}
			weights, spots, tiers = append(weights, number(m[1], 0)), append(spots, sp), append(tiers, int32(tier))
		}
	}
	return grouped(weighted(weights, spots...), tiers...)
}

func number(s string, absent int64) int64 {
	if s == "" {
		return absent
	}
	n, err := strconv.ParseInt(s, 10, 64)
	Expect(err).NotTo(HaveOccurred())
	return n
}
