// SPDX-License-Identifier: Apache-2.0

//go:build !race

package lens_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/mcm"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// history is what the controllers wrote.
type history struct {
	// decided is what they wrote to each object in turn. Machines and nodes, whose names are drawn by lot, are told
	// apart only by what was written to them.
	decided string
	// statuses is how often they wrote one. That varies: a status shows what the caches held at the moment.
	statuses int
}

func historyOf(writes []sim.Write) (h history) {
	all := map[string]string{}
	for _, w := range writes {
		if w.User != "controllers" || w.Resource == "events" {
			continue
		}
		if w.Subresource == "status" {
			h.statuses++
			continue
		}
		effect := string(w.Effect)
		if w.NoOp() {
			effect = "no change"
		}
		all[w.Resource+"/"+w.Name] += fmt.Sprintf("; %s %s", w.Verb, effect)
	}
	var lines []string
	for object, wrote := range all {
		if kind, _, _ := strings.Cut(object, "/"); kind == "machines" || kind == "nodes" {
			object = kind
		}
		lines = append(lines, object+wrote)
	}
	slices.Sort(lines)
	h.decided = strings.Join(lines, "\n")
	return h
}

// ordinary is what happens to a pool without excess: what the controllers wrote at each step.
func ordinary(wrap func(context.Context, versioned.Interface) mcm.Lens) (steps []history) {
	storm.Bubble(suite, func() {
		p := newPool(sim.Options{Seed: 1}, wrap)
		defer p.End()
		p.LatencyOf(func(r sim.Request) (before, after time.Duration) {
			if r.Writes() { // stock controllers make too many machines of an API server that answers at once
				return 2 * time.Millisecond, 2 * time.Millisecond
			}
			return 0, 0
		})
		since := 0
		settled := func() {
			GinkgoHelper()
			Expect(p.Settle(11*time.Minute, 12*time.Hour)).To(Succeed())
			steps = append(steps, historyOf(p.Writes()[since:]))
			since = len(p.Writes())
		}
		world.Create(p.deployments(), fixture.MachineDeployment("pool", 1))
		settled()
		for _, patch := range []string{
			`{"spec":{"replicas":2}}`,
			`{"spec":{"template":{"spec":{"nodeTemplate":{"metadata":{"labels":{"a":"b"}}}}}}}`,
			`{"spec":{"replicas":5}}`,
			`{"metadata":{"annotations":{"their":"own"}}}`,
			`{"spec":{"template":{"spec":{"class":{"name":"other"}}}}}`,
			`{"spec":{"replicas":2}}`,
		} {
			p.patch("%s", patch)
			settled()
		}
		world.Delete(p.deployments(), "pool")
		settled()
		Expect(p.Objects(machinesResource)).To(BeEmpty())
	})
	return steps
}

var _ = Describe("Without any excess", func() {
	It("the controllers write behind the lens what they write without it (L5)", func() {
		const runs = 16 // in which stock shows all it does: the order of its goroutines varies a little
		usual := map[int]map[string]bool{}
		var stockStatuses, ourStatuses int
		for range runs {
			for step, wrote := range ordinary(stock) {
				if usual[step] == nil {
					usual[step] = map[string]bool{}
				}
				usual[step][wrote.decided] = true
				stockStatuses += wrote.statuses
			}
		}
		for range runs {
			for step, wrote := range ordinary(func(ctx context.Context, inner versioned.Interface) mcm.Lens {
				return throughViews(ctx, inner, func(view.Creation) *api.Reserve { return nil })
			}) {
				Expect(usual[step]).To(HaveKey(wrote.decided), fmt.Sprint("step ", step))
				ourStatuses += wrote.statuses
			}
		}
		variants := []int{}
		for step := range len(usual) {
			variants = append(variants, len(usual[step]))
		}
		AddReportEntry("stock and ours without excess", ReportEntryVisibilityAlways, fmt.Sprintf(
			"different histories of stock, by step: %v; statuses written in %d runs: stock %d, ours %d", variants, runs, stockStatuses, ourStatuses))
		Expect(variants).To(HaveEach(BeNumerically("<=", 2)), "stock varies so much that the comparison says little")
		Expect(float64(ourStatuses)).To(BeNumerically("~", stockStatuses, 0.03*float64(stockStatuses)))
	})
})
