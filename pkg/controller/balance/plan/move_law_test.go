// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

var _ = Describe("Moves, by law", func() {
	// Replicas change, zones fail and come back, plans are carried out in part, and memory is lost.
	It("1, 4, 5 and 9: conserve replicas, take no machine before another serves, and come to rest", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			n := rapid.IntRange(2, 4).Draw(t, "zones")
			total, m := 0, []Change{ScaleUp, Continuous}[rapid.IntRange(0, 1).Draw(t, "mode")]
			var members []Member
			for i := range n {
				r := rapid.IntRange(0, 6).Draw(t, "replicas")
				members = append(members, NewMember(string(rune('a'+i)), r, m, Applied(r)))
				total += r
			}
			w := newWorld(members...)
			w.draining = time.Duration(rapid.IntRange(0, 5).Draw(t, "minutes to drain")) * time.Minute
			w.wrote = func(name string, change Write) {
				if change.Gone == "" {
					return
				}
				for _, m := range w.Members {
					if text := m.Object.Annotations[v1alpha1.MoveAnnotation]; strings.Contains(text, `"from":"`+name+`"`) && w.serves(m) < int(m.Object.Spec.Replicas) {
						t.Fatalf("%s goes, and %s has only %d of %d", change.Gone, m.Object.Name, w.serves(m), m.Object.Spec.Replicas)
					}
					for _, x := range m.Machines {
						if x.Object.DeletionTimestamp != nil {
							t.Fatalf("%s goes, and so does %s", change.Gone, x.Object.Name)
						}
					}
				}
			}
			for range rapid.IntRange(0, 12).Draw(t, "steps") {
				at := rapid.IntRange(0, n-1).Draw(t, "at")
				name := w.Members[at].Object.Name
				switch rapid.IntRange(0, 5).Draw(t, "what") {
				case 0:
					if !strings.Contains(w.each(func(m Member) string { return m.Object.Annotations[v1alpha1.MoveAnnotation] }), "id") {
						more := rapid.IntRange(0, 5).Draw(t, "more")
						total += more
						w.ask(name, int(w.Members[at].Object.Spec.Replicas)+more)
					}
				case 1:
					w.out[name] = !w.out[name]
				case 2:
					w.Memory = Memory{}
				case 3:
					w.half(rapid.IntRange(0, n).Draw(t, "cut"))
				case 4:
					w.set(name, []Change{Mode(v1alpha1.BalanceOff), ScaleUp, Continuous}[rapid.IntRange(0, 2).Draw(t, "mode")])
				case 5:
					w.tick(7) // a machine boots
				}
				w.tick(1)
			}
			w.out = map[string]bool{}
			for i := range w.Members {
				w.set(w.Members[i].Object.Name, m)
			}
			w.pass(6 * time.Hour)
			if got := Sum(w.replicas()); got != total {
				t.Fatalf("%d replicas of %d: %s", got, total, w.replicas())
			}
			if counts := Numbers(w.replicas()); members[0].Object.Annotations[v1alpha1.BalanceAnnotation] == "Continuous" {
				for _, a := range counts {
					for _, b := range counts {
						if a > b+1 {
							t.Fatalf("%v is not even", counts)
						}
					}
				}
			}
		})
	})
})

// serves is how many machines of a member serve and are ready.
func (w *world) serves(m Member) int {
	n := 0
	for _, x := range m.Machines {
		if !pendingTaker(x) && x.Object.Status.CurrentStatus.Phase == "Running" && x.Object.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

// half carries only the first writes of a plan out.
func (w *world) half(cut int) {
	p := New(w.View)
	for i, o := range p.Outcomes {
		if i < cut && !o.Write.IsEmpty() {
			w.write(&w.Members[i], o.Write)
		}
	}
}
