// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
	. "github.com/evenkeel/evenkeel/test/builders/nodegroup"
)

// drawn is a group with machines at random.
func drawn(t *rapid.T) (Group, []Member) {
	lo := rapid.Int32Range(0, 4).Draw(t, "min")
	hi := rapid.Int32Range(lo, 8).Draw(t, "max")
	notes := []string{}
	if rapid.Bool().Draw(t, "excess") {
		notes = append(notes, excess+rapid.SampledFrom([]string{"2", "3,max=5", "1,max=9", "x"}).Draw(t, "applied"))
	}
	if rapid.Bool().Draw(t, "split") {
		notes = append(notes, unsplit+rapid.SampledFrom([]string{"0", "3", "9"}).Draw(t, "may be acted on"))
	}
	g, err := NewGroup(Deployment(v1alpha1.Bounds{Min: lo, Max: hi}.String(), rapid.Int32Range(0, 10).Draw(t, "replicas"), notes...))
	if err != nil {
		t.Fatal(err)
	}
	text := rapid.StringOfN(rapid.SampledFrom([]rune("SSSSRRLTPO")), 0, 9, -1).Draw(t, "machines")
	return g, Members(text)
}

var _ = Describe("Laws of changes", func() {
	It("6: no raise passes max, nothing falls below min, and what is refused changes nothing", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			g, all := drawn(t)
			raised, err := NewRaise(g, g.Replicas(), rapid.Int32Range(-2, 9).Draw(t, "delta"))
			if err != nil && !raised.IsEmpty() || err == nil && (raised.To > g.Bounds.Max || raised.To <= raised.From) {
				t.Fatalf("raise %s: %v", inWords(raised), err)
			}
			leave := going(rapid.StringOfN(rapid.SampledFrom([]rune("abcdefghi")), 0, 9, -1).Draw(t, "leave"))
			removed, err := NewRemoval(g, all, spread(all), leave, Noon)
			if err != nil && !removed.IsEmpty() || removed.To > removed.From || removed.To < removed.From && removed.To < g.Bounds.Min {
				t.Fatalf("removal %s: %v", inWords(removed), err)
			}
			back := NewWithdrawal(g, all, -rapid.Int32Range(-1, 9).Draw(t, "back"))
			if back.To > back.From || back.To < back.From && back.To < g.Bounds.Min {
				t.Fatalf("withdrawal %s", inWords(back))
			}
		})
	})

	It("7: a removal carried out is nothing the second time, and lowers replicas by those that served", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			g, all := drawn(t)
			leave := going(rapid.StringOfN(rapid.SampledFrom([]rune("abcdefghi")), 0, 9, -1).Draw(t, "leave"))
			c, err := NewRemoval(g, all, spread(all), leave, Noon)
			if err != nil {
				return
			}
			serving := int32(0)
			for i := range all {
				if leave[all[i].Name()] {
					if all[i].Serves() {
						serving++
					}
					all[i].Gone = true
				}
			}
			if c.From-c.To != serving {
				t.Fatalf("%s for %d that served", inWords(c), serving)
			}
			d := carriedOut(g.Deployment, c)
			for name := range leave {
				if _, there := pool.Named(d)[name]; !there && strings.Contains(inWords(c), name+"~") {
					t.Fatalf("%s is not named by %s", name, inWords(c))
				}
			}
			again, err := NewRemoval(Group{Deployment: d, Bounds: g.Bounds}, all, spread(all), leave, Noon.Add(time.Hour))
			if err != nil || !again.IsEmpty() {
				t.Fatalf("again: %s %v", inWords(again), err)
			}
		})
	})

	It("8: a withdrawal leaves machine-controller-manager no machine too many", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			g, all := drawn(t)
			c := NewWithdrawal(g, all, -99)
			if c.IsEmpty() {
				return
			}
			lowered := carriedOut(g.Deployment, c)
			counted := 0
			for _, m := range all {
				if m.Counted() {
					counted++
				}
			}
			before, after := pool.Visible(g.Deployment), pool.Visible(lowered)
			if after < counted && after < before {
				t.Fatalf("%d machines, %d wanted after %s", counted, after, inWords(c))
			}
		})
	})

	It("write no more than they decided", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			g, all := drawn(t)
			before := g.Deployment.DeepCopy()
			_, _ = NewRaise(g, g.Replicas(), 1)
			_, _ = NewRemoval(g, all, spread(all), going("abc"), Noon)
			_ = NewWithdrawal(g, all, -3)
			if !equality.Semantic.DeepEqual(before, g.Deployment) {
				t.Fatal("the MachineDeployment was changed")
			}
		})
	})
})
