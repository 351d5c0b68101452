// SPDX-License-Identifier: Apache-2.0

//go:build !race

package oracle_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/oracle"
)

// seeds is how many random stories of each slice are played, ORACLE of them if that is set.
func seeds(usual int) (all []uint64) {
	if text := os.Getenv("SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		Expect(err).NotTo(HaveOccurred())
		return []uint64{seed}
	}
	if n, err := strconv.Atoi(os.Getenv("ORACLE")); err == nil {
		usual = n
	}
	for n := range usual {
		all = append(all, uint64(n+1))
	}
	return all
}

// report plays a story with stock twice, and returns what differs.
func report(story oracle.Story) string {
	if v := oracle.Judge(suite, story, oracle.Stock); len(v.Differences) > 0 {
		return v.String()
	}
	return ""
}

var _ = Describe("Random stories", func() {
	for _, slice := range oracle.Slices() {
		It(fmt.Sprintf("of %s end the same in stock beside stock", slice), func() {
			var all []string
			for _, seed := range seeds(1) {
				if text := report(oracle.Random(slice, seed)); text != "" {
					all = append(all, text)
				}
			}
			Expect(strings.Join(all, "\n")).To(BeEmpty())
		})
	}
	for _, slice := range oracle.SlicesWithFaults() {
		It(fmt.Sprintf("of %s end the same when faults strike", slice), func() {
			var all []string
			for _, seed := range seeds(1) {
				if text := report(oracle.RandomInWeather(slice, seed)); text != "" {
					all = append(all, text)
				}
			}
			Expect(strings.Join(all, "\n")).To(BeEmpty())
		})
	}
})
