// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"flag"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
)

// Random histories; a hundred thousand are a matter of minutes: go test ./pkg/controller/federatedhpa/plan -histories=100000
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

// edit is what users do.
func (f *fleet) edit(m *member) {
	if f.steady {
		return
	}
	f.object = f.object.DeepCopy()
	switch f.random.IntN(3) {
	case 0:
		m.selected = !m.selected
		f.note("%s selected: %v", m.name, m.selected)
	case 1:
		f.object.Spec.MaxReplicas = int32(6 + f.random.IntN(30))
		f.note("maxReplicas %d", f.object.Spec.MaxReplicas)
		f.ceiling = max(int64(f.object.Spec.MaxReplicas), int64(f.object.Status.CountedReplicas))
	case 2:
		f.object.Spec.MinReplicas = ptr.To(int32(1 + f.random.IntN(6)))
	}
}
