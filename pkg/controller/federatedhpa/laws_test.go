// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"flag"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// Random histories; a hundred thousand are a matter of minutes: go test ./pkg/controller/federatedhpa -histories=100000
var (
	histories = flag.Int("histories", 4000, "random histories of the laws")
	history   = flag.Uint64("history", 0, "the only history to play, 0 for all")
)

// played is one history: its rounds to rest, or the law that it broke.
func played(seed uint64, steps int) (int, error) {
	f := newFleet(seed)
	for range steps {
		if err := f.happen(); err != nil {
			return 0, f.blame(seed, err)
		}
		if f.random.IntN(2) == 0 {
			if _, err := f.sync(true); err != nil {
				return 0, f.blame(seed, err)
			}
		}
	}
	f.note("calm")
	rounds, err := f.calm()
	if err != nil {
		return 0, f.blame(seed, err)
	}
	return rounds, nil
}

func (f *fleet) blame(seed uint64, err error) error {
	return fmt.Errorf("%w\nrepeat with -history=%d\n%s", err, seed, strings.Join(f.trail, "\n"))
}

var _ = Describe("Random histories", func() {
	It("keep the laws at every step, and come to rest", func() {
		longest := 0
		for seed := range uint64(*histories) {
			if *history != 0 && seed+1 != *history {
				continue
			}
			rounds, err := played(seed+1, 60)
			Expect(err).NotTo(HaveOccurred())
			longest = max(longest, rounds)
		}
		AddReportEntry("longest way to rest, in rounds", longest)
		Expect(longest).To(BeNumerically("<", 40))
	})
})
