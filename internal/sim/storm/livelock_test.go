// SPDX-License-Identifier: Apache-2.0

package storm_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/internal/sim/storm"
)

var _ = Describe("A livelock", func() {
	change := func(name string, at time.Time) sim.Write {
		return sim.Write{Request: sim.Request{User: "u", Verb: "update", Resource: "nodes", Name: name}, Effect: sim.Modified, Time: at}
	}

	It("is one object that changes without end while no time passes", func() {
		see, now := storm.Livelock(), time.Now()
		for range storm.Endless - 1 {
			Expect(see(change("a", now))).To(BeEmpty())
			Expect(see(change("b", now))).To(BeEmpty())
		}
		Expect(see(change("a", now))).To(HavePrefix("livelock: 2000 changes of nodes /a within one moment"))
	})

	It("is none where time passes, and where nothing changes", func() {
		see, now := storm.Livelock(), time.Now()
		for i := range 2 * storm.Endless {
			Expect(see(change("a", now.Add(time.Duration(i)*time.Millisecond)))).To(BeEmpty())
		}
		for range 2 * storm.Endless {
			idle := change("a", now)
			idle.Effect = ""
			Expect(see(idle)).To(BeEmpty())
		}
	})
})
