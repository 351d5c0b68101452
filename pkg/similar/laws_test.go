// SPDX-License-Identifier: Apache-2.0

package similar_test

import (
	"maps"
	"math"
	"slices"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	. "github.com/evenkeel/evenkeel/pkg/similar"
)

// fleet is one drawn input.
type fleet struct {
	templates []Template
	o         Options
}

// drawFleet draws amounts that are near each other, so that chains along several resources are common, and few labels,
// so that many templates have the same.
func drawFleet(t *rapid.T) fleet {
	f := fleet{o: Defaults()}
	switch rapid.IntRange(0, 5).Draw(t, "ratios") {
	case 0:
		f.o = Options{}
	case 1:
		f.o = Options{MemoryRatio: 0.05, AllocatableRatio: 0.015, FreeRatio: 0.1}
	}
	if rapid.IntRange(0, 3).Draw(t, "ignoring") == 0 {
		f.o.IgnoredLabels = []string{"kind"}
	}
	loose := drawLoose(t)
	for i := range rapid.IntRange(0, 12).Draw(t, "number") {
		f.templates = append(f.templates, drawTemplate(t, "md"+strconv.Itoa(i), loose))
	}
	return f
}

// looseness is how far each amount may stray from 100, to both sides.
type looseness struct{ memory, allocatableCPU, allocatableMemory, freeCPU, freeMemory int64 }

// drawLoose lets some amounts stray beyond the ratios; were it all of them, nothing would ever be near anything.
func drawLoose(t *rapid.T) looseness {
	stray := func(what string, far int64) int64 { return rapid.SampledFrom([]int64{0, 0, 1, far}).Draw(t, what) }
	return looseness{stray("memory", 2), stray("cpu", 6), stray("allocatable memory", 6), stray("free", 6), stray("free memory", 9)}
}

func drawTemplate(t *rapid.T, name string, loose looseness) Template {
	near := func(what string, stray int64) resource.Quantity {
		return *resource.NewQuantity(100+rapid.Int64Range(-stray, stray).Draw(t, what), resource.DecimalSI)
	}
	drawn := Template{
		Name:     name,
		Capacity: corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": near("memory", loose.memory)},
		Allocatable: corev1.ResourceList{
			"cpu": near("allocatable cpu", loose.allocatableCPU), "memory": near("allocatable memory", loose.allocatableMemory),
		},
		Free:   corev1.ResourceList{"cpu": near("free cpu", loose.freeCPU), "memory": near("free memory", loose.freeMemory)},
		Labels: map[string]string{"topology.kubernetes.io/zone": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone")},
	}
	switch rapid.IntRange(0, 19).Draw(t, "oddity") {
	case 19:
		drawn.Labels["kind"] = "odd"
	case 18:
		drawn.Capacity["cpu"] = resource.MustParse("8")
	case 17:
		drawn.Allocatable["example.com/gpu"] = resource.MustParse("1")
	case 15:
		drawn.Taints = []corev1.Taint{dedicated}
	case 16:
		drawn.Capacity["example.com/gpu"] = resource.MustParse("0")
	}
	return drawn
}

func (f fleet) groups() [][]string { return Groups(f.templates, f.o) }

func (f fleet) named(name string) Template {
	return f.templates[slices.IndexFunc(f.templates, func(t Template) bool { return t.Name == name })]
}

// groupOf is the group that each name is in.
func groupOf(groups [][]string) map[string]int {
	of := map[string]int{}
	for i, group := range groups {
		for _, name := range group {
			of[name] = i
		}
	}
	return of
}

func same(a, b [][]string) bool { return slices.EqualFunc(a, b, slices.Equal) }

// law runs a property over drawn fleets.
func law(name string, holds func(t *rapid.T, f fleet)) {
	It(name, func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) { holds(t, drawFleet(t)) })
	})
}

var _ = Describe("Laws", func() {
	law("reflexive", func(t *rapid.T, f fleet) {
		for _, a := range f.templates {
			if d, similar := Compare(a, a, f.o); !similar {
				t.Fatalf("%+v differs from itself: %s", a, d)
			}
		}
	})

	law("symmetric", func(t *rapid.T, f fleet) {
		for _, a := range f.templates {
			for _, b := range f.templates {
				d, ab := Compare(a, b, f.o)
				e, ba := Compare(b, a, f.o)
				if ab != ba || d != (Difference{Of: e.Of, Name: e.Name, A: e.B, B: e.A}) {
					t.Fatalf("%s, %s: %v %s but %v %s", a.Name, b.Name, ab, d, ba, e)
				}
			}
		}
	})

	law("partition", func(t *rapid.T, f fleet) {
		var all []string
		for _, group := range f.groups() {
			if len(group) == 0 || !slices.IsSorted(group) {
				t.Fatalf("group %v", group)
			}
			all = append(all, group...)
		}
		slices.Sort(all)
		if !slices.Equal(all, sortedNames(f.templates)) {
			t.Fatalf("%v of %v", all, sortedNames(f.templates))
		}
	})

	law("order-free", func(t *rapid.T, f fleet) {
		shuffled := fleet{rapid.Permutation(f.templates).Draw(t, "order"), f.o}
		if before, after := f.groups(), shuffled.groups(); !same(before, after) {
			t.Fatalf("%v became %v", before, after)
		}
	})

	law("sound", func(t *rapid.T, f fleet) {
		for _, group := range f.groups() {
			for _, a := range group {
				for _, b := range group {
					if d, similar := Compare(f.named(a), f.named(b), f.o); !similar {
						t.Fatalf("%s and %s are together: %s", a, b, d)
					}
				}
			}
		}
	})

	law("complete", func(t *rapid.T, f fleet) {
		of := groupOf(f.groups())
		for _, chain := range chains(f.templates, f.o) {
			for _, a := range chain {
				for _, b := range chain {
					if of[a.Name] != of[b.Name] && Similar(a, b, f.o) && !strained(a, b, chain, f.o) {
						t.Fatalf("%s and %s are apart: %v", a.Name, b.Name, f.groups())
					}
				}
			}
		}
	})

	law("local", func(t *rapid.T, f fleet) {
		var some []Template
		for i, chain := range chains(f.templates, f.o) {
			if rapid.Bool().Draw(t, "keep "+strconv.Itoa(i)) {
				some = append(some, chain...)
			}
		}
		of, alone := groupOf(f.groups()), groupOf(Groups(some, f.o))
		for _, a := range some {
			for _, b := range some {
				if (of[a.Name] == of[b.Name]) != (alone[a.Name] == alone[b.Name]) {
					t.Fatalf("%s and %s: %v among all, %v without the others", a.Name, b.Name, f.groups(), Groups(some, f.o))
				}
			}
		}
	})

	law("reference", func(t *rapid.T, f fleet) {
		if got, want := f.groups(), byPairs(f.templates, f.o); !same(got, want) {
			t.Fatalf("%v, by pairs %v", got, want)
		}
	})

	It("total", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			f := drawFleet(t)
			ratio := rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 1, 2, math.MaxFloat64})
			f.o.MemoryRatio = ratio.Draw(t, "memory ratio")
			f.o.AllocatableRatio = ratio.Draw(t, "allocatable ratio")
			f.o.FreeRatio = ratio.Draw(t, "free ratio")
			strange := rapid.SampledFrom([]string{"-1", "0", "1n", "1", "8Ei", "-8Ei", "1e30"})
			for i := range f.templates {
				f.templates[i].Free["cpu"] = resource.MustParse(strange.Draw(t, "free"))
				f.templates[i].Capacity["memory"] = resource.MustParse(strange.Draw(t, "memory"))
				if rapid.Bool().Draw(t, "bare") {
					f.templates[i] = Template{Name: f.templates[i].Name, Estimated: rapid.Bool().Draw(t, "estimated")}
				}
			}
			if n := len(groupOf(f.groups())); n != len(f.templates) {
				t.Fatalf("%d of %d are in a group", n, len(f.templates))
			}
		})
	})
})

// strained tells whether something in their chain is not similar to one of the two.
func strained(a, b Template, chain []Template, o Options) bool {
	return slices.ContainsFunc(chain, func(c Template) bool { return !Similar(a, c, o) || !Similar(b, c, o) })
}

// What the laws are about must be drawn often enough to be tested by them.
var _ = It("draws chains, and groups of several, often enough", func() {
	stretched, several := 0, 0
	rapid.Check(GinkgoT(), func(t *rapid.T) {
		f := drawFleet(t)
		if len(f.groups()) > len(chains(f.templates, f.o)) {
			stretched++
		}
		for _, chain := range chains(f.templates, f.o) {
			if _, loose := looseAxis(chain, f.o); !loose && len(chain) > 1 {
				several++
			}
		}
	})
	if stretched < 100 || several < 100 {
		Fail(strconv.Itoa(stretched) + " chains, " + strconv.Itoa(several) + " groups of several")
	}
})

// byPairs are the groups as docs/decisions/0003-similar-groups.md has them, in the plainest way: every pair is compared, and
// nothing is hashed or sorted but what is cut.
func byPairs(templates []Template, o Options) [][]string {
	var groups [][]string
	for _, chain := range chains(templates, o) {
		axis, loose := looseAxis(chain, o)
		if !loose {
			groups = append(groups, sortedNames(chain))
			continue
		}
		for _, window := range windows(chain, axis) {
			groups = append(groups, byPairs(window, o)...)
		}
	}
	slices.SortFunc(groups, slices.Compare)
	return groups
}

// chains follows similar templates from one to the next.
func chains(templates []Template, o Options) [][]Template {
	var all [][]Template
	reached := map[int]bool{}
	for i := range templates {
		if reached[i] {
			continue
		}
		reached[i] = true
		chain := []int{i}
		for k := 0; k < len(chain); k++ {
			for j := range templates {
				if !reached[j] && Similar(templates[chain[k]], templates[j], o) {
					reached[j] = true
					chain = append(chain, j)
				}
			}
		}
		members := make([]Template, len(chain))
		for k, j := range chain {
			members[k] = templates[j]
		}
		all = append(all, members)
	}
	return all
}

// axis is an amount that a ratio applies to.
type axis struct {
	amount func(Template) float64
	ratio  float64
}

// looseAxis is the first along which the templates are too far apart: memory, then allocatable and free by name.
func looseAxis(chain []Template, o Options) (axis, bool) {
	axes := []axis{{func(t Template) float64 { return thousandths(t.Capacity, "memory") }, o.MemoryRatio}}
	names := slices.Sorted(maps.Keys(chain[0].Allocatable))
	for _, name := range names {
		axes = append(axes, axis{func(t Template) float64 { return thousandths(t.Allocatable, name) }, o.AllocatableRatio})
	}
	for _, name := range names {
		axes = append(axes, axis{func(t Template) float64 { return thousandths(t.Free, name) }, o.FreeRatio})
	}
	for _, a := range axes {
		for _, s := range chain {
			for _, t := range chain {
				if !a.close(s, t) {
					return a, true
				}
			}
		}
	}
	return axis{}, false
}

func thousandths(l corev1.ResourceList, name corev1.ResourceName) float64 {
	q := l[name]
	return float64(q.MilliValue())
}

func (a axis) close(s, t Template) bool {
	x, y := a.amount(s), a.amount(t)
	return x == y || max(x, y)-min(x, y) <= a.ratio*max(x, y)
}

// windows takes the largest and all close to it, again and again.
func windows(templates []Template, a axis) [][]Template {
	var all [][]Template
	for left := templates; len(left) > 0; {
		largest := slices.MaxFunc(left, func(s, t Template) int {
			return int(a.amount(s) - a.amount(t))
		})
		var window, rest []Template
		for _, t := range left {
			if a.close(largest, t) {
				window = append(window, t)
			} else {
				rest = append(rest, t)
			}
		}
		all = append(all, window)
		left = rest
	}
	return all
}

func sortedNames(templates []Template) []string {
	var all []string
	for _, t := range templates {
		all = append(all, t.Name)
	}
	slices.Sort(all)
	return all
}
