// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"fmt"
	"math"
	"reflect"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

var _ = DescribeTable("The applied excess of a MachineDeployment with seven replicas is", func(text string, want pool.Applied) {
	d := excess(7, text)
	if text == "" {
		d.Annotations = nil
	}
	Expect(pool.AppliedOf(d, 7)).To(Equal(want))
},
	Entry("none, and without a bound, if nothing is recorded", "", pool.Applied{Max: pool.Unbounded}),
	Entry("none, and without a bound, if the record is invalid", "some", pool.Applied{Max: pool.Unbounded}),
	Entry("none, if more is counted than there is", "1,counted=2,replicas=7", pool.Applied{Max: pool.Unbounded}),
	Entry("what is recorded, without a bound", "2", pool.Applied{Excess: 2, Max: pool.Unbounded}),
	Entry("what is recorded, for a bound", "2,max=8", pool.Applied{Excess: 2, Max: 8}),
	Entry("what is recorded, for a bound of zero", "2,max=0", pool.Applied{Excess: 2}),
	Entry("counted in part", "3,max=9,counted=2,replicas=7", pool.Applied{Excess: 3, Max: 9, Counted: 2}),
	Entry("counted as before, where replicas were raised", "3,counted=2,replicas=6", pool.Applied{Excess: 3, Max: pool.Unbounded, Counted: 2}),
	Entry("absorbed in part, where replicas were lowered by one", "3,counted=2,replicas=8", pool.Applied{Excess: 3, Max: pool.Unbounded, Counted: 1, Absorbed: 1}),
	Entry("absorbed as far as it was counted, where replicas were lowered by more", "3,counted=2,replicas=10", pool.Applied{Excess: 3, Max: pool.Unbounded, Absorbed: 2}),
)

var _ = DescribeTable("Applying an excess to four machines for workload", func(before string, a pool.Applied, replicas int, after string) {
	d := excess(4, before)
	pool.Apply(d, 4, a)
	Expect(d.Spec.Replicas).To(BeEquivalentTo(replicas))
	if after == "" {
		Expect(d.Annotations).NotTo(HaveKey(machine.AppliedExcessAnnotation))
	} else {
		Expect(d.Annotations).To(HaveKeyWithValue(machine.AppliedExcessAnnotation, after))
	}
	Expect(d.Annotations).NotTo(HaveKey(machine.AppliedReplicasAnnotation))
},
	Entry("records it", "1", pool.Applied{Excess: 2, Max: pool.Unbounded}, 4, "2"),
	Entry("records the max that it is for", "1", pool.Applied{Excess: 2, Max: 5}, 4, "2,max=5"),
	Entry("counts it within replicas", "1", pool.Applied{Excess: 3, Max: 9, Counted: 2}, 6, "3,max=9,counted=2,replicas=6"),
	Entry("removes the record with the excess", "2,max=5", pool.Applied{Max: pool.Unbounded}, 4, ""),
	Entry("removes the record with the excess, whatever max is", "2,max=5", pool.Applied{Max: 5}, 4, ""),
	Entry("leaves a record as it is, if its values are the same", "2,max=2147483647", pool.Applied{Excess: 2, Max: pool.Unbounded}, 4, "2,max=2147483647"),
	Entry("leaves a record that cannot be read, if there is no excess", "some", pool.Applied{Max: pool.Unbounded}, 4, "some"),
)

// setWorkload changes the number of machines for workload, and not the growth that waits.
func setWorkload(d *machine.MachineDeployment, r int32) {
	pool.Resize(d, r, pool.Requested(d)-max(0, pool.Workload(d, d.Spec.Replicas)))
}

var _ = DescribeTable("Workload that is set where replicas include two reserve machines", func(text string, r, replicas int, after string) {
	d := excess(5, text)
	setWorkload(d, int32(r))
	Expect(d.Spec.Replicas).To(BeEquivalentTo(replicas))
	Expect(d.Annotations).To(HaveKeyWithValue(machine.AppliedExcessAnnotation, after))
},
	Entry("raises replicas up to max", "2,max=6,counted=2,replicas=5", 4, 6, "2,max=6,counted=2,replicas=6"),
	Entry("takes one of the reserve at max", "2,max=6,counted=2,replicas=5", 5, 6, "1,max=6,counted=1,replicas=6"),
	Entry("takes the reserve, and leaves a record that there is none", "2,max=6,counted=2,replicas=5", 6, 6, "0"),
	Entry("grows beyond max without any of it", "2,max=6,counted=2,replicas=5", 8, 8, "0"),
	Entry("lowers replicas to the reserve alone", "2,max=6,counted=2,replicas=5", 0, 2, "2,max=6,counted=2,replicas=2"),
	Entry("does not take from a reserve that exceeds max already", "2,max=3,counted=2,replicas=5", 3, 5, "2,max=3,counted=2,replicas=5"),
)

var _ = DescribeTable("A count is written to the API as", func(n int, want int32) {
	Expect(pool.ClampInt32(n)).To(Equal(want))
},
	Entry("zero, if it is below that", -1, int32(0)),
	Entry("the maximum, if it is above that", math.MaxInt32+1, int32(math.MaxInt32)),
	Entry("itself, if the API can hold it", math.MaxInt32, int32(math.MaxInt32)),
)

var _ = It("Growth by one machine that is still to be split over zones is no workload yet", func() {
	d := newWorld().deployment
	pool.Resize(d, 3, 1)
	Expect(d.Spec.Replicas).To(BeEquivalentTo(4))
	Expect(d.Annotations).To(Equal(map[string]string{machine.AppliedReplicasAnnotation: "3"}))
	Expect([]int32{pool.Workload(d, d.Spec.Replicas), pool.Requested(d)}).To(Equal([]int32{3, 4}))
})

var _ = It("A reserve that is all that replicas have is not taken for workload of zero machines", func() {
	d := excess(2, "2,max=2,counted=2,replicas=2")
	pool.Resize(d, 0, 0)
	Expect(d.Spec.Replicas).To(BeEquivalentTo(2))
	Expect(d.Annotations).To(HaveKeyWithValue(machine.AppliedExcessAnnotation, "2,max=2,counted=2,replicas=2"))
})

var _ = DescribeTable("Replicas include reserve machines", func(a pool.Applied, do bool) {
	Expect(a.Included()).To(Equal(do))
},
	Entry("that are counted", pool.Applied{Counted: 1}, true),
	Entry("that a client has just taken out of them", pool.Applied{Absorbed: 1}, true),
	Entry("not if all are beyond them", pool.Applied{Excess: 1}, false),
)

func applied(text string) metav1.Object {
	return &metav1.ObjectMeta{Annotations: map[string]string{machine.AppliedReplicasAnnotation: text}}
}

var _ = Describe("The machines for workload", func() {
	DescribeTable("are what machine-controller-manager may act on",
		func(d metav1.Object, replicas, want int) {
			Expect(pool.Workload(d, int32(replicas))).To(BeEquivalentTo(want))
		},
		Entry("replicas", &metav1.ObjectMeta{}, 3, 3),
		Entry("less while growth is split", applied("3"), 9, 3),
		Entry("none while growth from zero is split", applied("0"), 9, 0),
		Entry("replicas once they are lowered below that", applied("5"), 3, 3),
		Entry("replicas lowered to zero", applied("5"), 0, 0),
		Entry("replicas where the annotation is invalid", applied("many"), 3, 3),
		Entry("replicas where the annotation is too large", applied("2147483648"), 3, 3),
		Entry("negative replicas, which stay invalid", applied("0"), -3, -3),
	)

	DescribeTable("are held back where",
		func(text string, want int, held bool) {
			d := &metav1.ObjectMeta{}
			if text != "" {
				d = applied(text).(*metav1.ObjectMeta)
			}
			got, is := pool.AppliedReplicas(d)
			Expect(is).To(Equal(held))
			Expect(got).To(BeEquivalentTo(want))
		},
		Entry("the annotation contains it", "3", 3, true),
		Entry("it is zero", "0", 0, true),
		Entry("not where it is missing", "", 0, false),
		Entry("not where it is invalid", "many", 0, false),
	)

	It("never exceed replicas, whatever the annotation contains", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			replicas := rapid.Int32().Draw(t, "replicas")
			text := rapid.OneOf(rapid.StringMatching(`[0-9]{1,10}`), rapid.String()).Draw(t, "applied")
			if n := pool.Workload(applied(text), replicas); n > replicas {
				t.Fatalf("%d machines for %d replicas and applied replicas %q", n, replicas, text)
			}
		})
	})
})

// excess is a MachineDeployment with so many replicas and this applied excess.
func excess(replicas int, text string) *machine.MachineDeployment {
	d := &machine.MachineDeployment{}
	d.Spec.Replicas, d.Annotations = int32(replicas), map[string]string{machine.AppliedExcessAnnotation: text}
	return d
}

// drawCounted is a MachineDeployment whose replicas include some of its reserve, as that was written.
func drawCounted(t *rapid.T) *machine.MachineDeployment {
	r, counted := rapid.IntRange(0, 9).Draw(t, "r"), rapid.IntRange(1, 3).Draw(t, "counted")
	pending, waits := rapid.IntRange(0, 3).Draw(t, "pending"), rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "waits")
	text := fmt.Sprint(counted + pending)
	if rapid.Bool().Draw(t, "bounded") {
		text += fmt.Sprintf(",max=%d", r+counted+rapid.IntRange(0, 4).Draw(t, "room"))
	}
	d := excess(r+counted+waits, fmt.Sprintf("%s,counted=%d,replicas=%d", text, counted, r+counted+waits))
	if waits > 0 {
		d.Annotations[machine.AppliedReplicasAnnotation] = fmt.Sprint(r)
	}
	return d
}

func workload(d *machine.MachineDeployment) int { return int(pool.Workload(d, d.Spec.Replicas)) }

func appliedOf(d *machine.MachineDeployment) pool.Applied { return pool.AppliedOf(d, d.Spec.Replicas) }

var _ = DescribeTable("Replicas that include reserve machines", func(replicas int, text string, r, visible int) {
	d := excess(replicas, text)
	Expect([]int{workload(d), pool.Visible(d)}).To(Equal([]int{r, visible}))
},
	Entry("are those for workload and the reserve", 7, "2,counted=2,replicas=7", 5, 7),
	Entry("do not include what is being made", 7, "3,counted=2,replicas=7", 5, 8),
	Entry("raised by a client, are raised for workload", 8, "2,counted=2,replicas=7", 6, 8),
	Entry("lowered by a client, change neither workload nor reserve until that is decided", 6, "2,counted=2,replicas=7", 5, 7),
	Entry("lowered by the reserve, likewise", 5, "2,counted=2,replicas=7", 5, 7),
	Entry("lowered by more, are lowered for workload by the rest at once", 4, "2,counted=2,replicas=7", 4, 6),
	Entry("lowered to zero, leave no workload", 0, "2,counted=2,replicas=7", 0, 2),
	Entry("below zero, show the reserve alone", -3, "2", -3, 2),
	Entry("stop at max for what is being made", 7, "4,max=8,counted=2,replicas=7", 5, 8),
	Entry("above max are honored", 9, "2,max=8,counted=2,replicas=9", 7, 9),
	Entry("show no more than the reserve where the object was copied", 1, "2,counted=2,replicas=100", 1, 3),
	Entry("count none of it where the text is invalid", 7, "2,counted=3,replicas=7", 7, 7),
	Entry("count none of it where the text is incomplete", 7, "2,counted=2", 7, 7),
)

var _ = Describe("Where replicas include reserve machines", func() {
	It("what is written is what is read", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			d := drawCounted(t)
			if text := appliedOf(d).String(int(d.Spec.Replicas)); text != d.Annotations[machine.AppliedExcessAnnotation] {
				t.Fatalf("%s became %s", d.Annotations[machine.AppliedExcessAnnotation], text)
			}
		})
	})

	It("another client's raise is one of workload, and a reduction takes no more from machine-controller-manager than the reserve cannot cover", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			d := drawCounted(t)
			was, r, waits := appliedOf(d), workload(d), int(pool.Requested(d))-workload(d)
			visible, by := pool.Visible(d), rapid.IntRange(-int(d.Spec.Replicas), 5).Draw(t, "by")
			d.Spec.Replicas += int32(by)
			is := appliedOf(d)
			if is.Excess != was.Excess || is.Counted+is.Absorbed != was.Counted || is.Absorbed != max(0, min(-by, was.Counted)) {
				t.Fatalf("%+v became %+v", was, is)
			}
			if waits > 0 {
				return // growth is held back, and lost first
			}
			if want := max(r, r+by+is.Absorbed) - max(0, -by-is.Absorbed); by <= 0 && workload(d) != r+by+is.Absorbed || by > 0 && workload(d) != want {
				t.Fatalf("%d by %d is %d", r, by, workload(d))
			}
			if by <= 0 && pool.Visible(d) < visible+by+is.Absorbed {
				t.Fatalf("%d are visible, %d were", pool.Visible(d), visible)
			}
		})
	})

	It("a new number for workload is what is read, growth keeps waiting, nothing passes max, and an undecided reduction stays undecided", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			d := drawCounted(t)
			d.Spec.Replicas -= int32(min(rapid.IntRange(0, 2).Draw(t, "lowered"), workload(d)))
			before, waits := d.DeepCopy(), pool.Requested(d)-pool.Workload(d, d.Spec.Replicas)
			after, r := *d, rapid.IntRange(0, 12).Draw(t, "new r")
			setWorkload(&after, int32(r))
			was, is := appliedOf(d), appliedOf(&after)
			switch {
			case !reflect.DeepEqual(d, before):
				t.Fatalf("%+v became %+v", before, d)
			case workload(&after) != r || pool.Requested(&after)-int32(r) != waits:
				t.Fatalf("set %d with %d waiting, read %d of %d", r, waits, workload(&after), pool.Requested(&after))
			case is.Absorbed != was.Absorbed && is.Counted > 0:
				t.Fatalf("%+v became %+v", was, is)
			case is.Counted > 0 && int(after.Spec.Replicas) > max(int(d.Spec.Replicas), is.Max):
				t.Fatalf("%d replicas, %+v", after.Spec.Replicas, is)
			case was.Excess-is.Excess != was.Counted-is.Counted || is.Counted < was.Counted && int(after.Spec.Replicas) < max(int(d.Spec.Replicas), was.Max):
				t.Fatalf("%+v became %+v with %d replicas", was, is, after.Spec.Replicas)
			}
		})
	})

	It("a release takes reserve machines first, and leaves replicas and what machine-controller-manager sees as they are", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			d := drawCounted(t)
			after, n := *d, rapid.IntRange(1, 5).Draw(t, "machines")
			pool.Release(&after, int32(n))
			was, is := appliedOf(d), appliedOf(&after)
			taken := min(n, was.Counted)
			if workload(&after) != workload(d)+n || is.Counted != was.Counted-taken || int(after.Spec.Replicas) != int(d.Spec.Replicas)+n-taken {
				t.Fatalf("%d of %d %+v became %d of %d %+v", workload(d), d.Spec.Replicas, was, workload(&after), after.Spec.Replicas, is)
			}
			if _, recorded := after.Annotations[machine.AppliedExcessAnnotation]; taken > 0 && !recorded {
				t.Fatalf("%+v is not recorded", is)
			}
			if n <= was.Counted && pool.Visible(&after) != pool.Visible(d) {
				t.Fatalf("%d were visible, %d are", pool.Visible(d), pool.Visible(&after))
			}
		})
	})

	It("where the reserve is counted makes no difference to machine-controller-manager", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			d := drawCounted(t)
			a, r := appliedOf(d), workload(d)
			additive := *d
			pool.Apply(&additive, int32(r), pool.Applied{Excess: a.Excess, Max: a.Max})
			if pool.Visible(&additive) != pool.Visible(d) || workload(&additive) != r || int(additive.Spec.Replicas) != int(d.Spec.Replicas)-a.Counted {
				t.Fatalf("%+v and %+v", d, additive)
			}
			back := additive
			if pool.Apply(&back, int32(r), a); !reflect.DeepEqual(&back, d) {
				t.Fatalf("%+v and back %+v", d, back)
			}
		})
	})
})
