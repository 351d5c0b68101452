// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"fmt"
	"reflect"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

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
			pool.SetWorkload(&after, int32(r))
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
