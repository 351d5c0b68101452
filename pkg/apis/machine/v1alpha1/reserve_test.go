// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

var since = time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)

var _ = Describe("A reserve mark", func() {
	It("is written for people and reads as what it was", func() {
		mark := v1alpha1.Reserve{
			Since:       since,
			Taints:      []corev1.Taint{{Key: "z", Effect: "NoSchedule"}, {Key: "a", Value: "<b>", Effect: "NoExecute"}},
			Annotations: map[string]string{"y": "1", "x": "2"},
		}
		text := `{"since":"2026-11-21T09:30:00Z","taints":[{"key":"a","value":"<b>","effect":"NoExecute"},{"key":"z","effect":"NoSchedule"}],"annotations":{"x":"2","y":"1"}}`
		Expect(mark.String()).To(Equal(text))
		read, err := v1alpha1.ParseReserve(text)
		Expect(err).NotTo(HaveOccurred())
		Expect(read.String()).To(Equal(text))
		Expect(read.Since).To(Equal(since))
		Expect(read.Annotations).To(Equal(mark.Annotations))
		Expect(read.Taints).To(ConsistOf(mark.Taints))
	})

	It("may have added nothing, because the template has it all", func() {
		read, err := v1alpha1.ParseReserve(`{"since":"2026-11-21T10:30:00+01:00"}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(read).To(Equal(v1alpha1.Reserve{Since: since}))
	})

	DescribeTable("is refused where it is not understood whole", func(text string) {
		_, err := v1alpha1.ParseReserve(text)
		Expect(err).To(HaveOccurred())
	},
		Entry("nothing", ``),
		Entry("no JSON", `2026-11-21T09:30:00Z`),
		Entry("no object", `"2026-11-21T09:30:00Z"`),
		Entry("no time", `{}`),
		Entry("another time", `{"since":"yesterday"}`),
		Entry("parts of a second", `{"since":"2026-11-21T09:30:00.5Z"}`),
		Entry("a year that cannot be written in UTC", `{"since":"9999-12-31T23:59:59-01:00"}`),
		Entry("an unknown field", `{"since":"2026-11-21T09:30:00Z","labels":{}}`),
		Entry("another case", `{"Since":"2026-11-21T09:30:00Z"}`),
		Entry("a field twice", `{"since":"2026-11-21T09:30:00Z","since":"2026-11-21T09:30:00Z"}`),
		Entry("more behind it", `{"since":"2026-11-21T09:30:00Z"} {}`),
		Entry("a taint with a time", `{"since":"2026-11-21T09:30:00Z","taints":[{"key":"k","effect":"NoSchedule","timeAdded":"2026-11-21T09:30:00Z"}]}`),
		Entry("a taint without key", `{"since":"2026-11-21T09:30:00Z","taints":[{"effect":"NoSchedule"}]}`),
		Entry("a taint without effect", `{"since":"2026-11-21T09:30:00Z","taints":[{"key":"k"}]}`),
		Entry("an unknown effect", `{"since":"2026-11-21T09:30:00Z","taints":[{"key":"k","effect":"No"}]}`),
		Entry("a taint twice", `{"since":"2026-11-21T09:30:00Z","taints":[{"key":"k","effect":"NoSchedule"},{"key":"k","value":"v","effect":"NoSchedule"}]}`),
		Entry("an annotation without key", `{"since":"2026-11-21T09:30:00Z","annotations":{"":"v"}}`),
		Entry("too much", `{"since":"2026-11-21T09:30:00Z","annotations":{"k":"`+strings.Repeat("x", 16<<10)+`"}}`),
	)

	It("reads as what it was, whatever it holds", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			mark := v1alpha1.Reserve{
				Since:       time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "since"), 0).UTC(),
				Annotations: rapid.MapOfN(rapid.StringN(1, 20, 60), rapid.StringN(0, 20, 60), 0, 4).Draw(t, "annotations"),
			}
			for _, key := range rapid.SliceOfNDistinct(rapid.StringN(1, 20, 60), 0, 4, rapid.ID).Draw(t, "keys") {
				mark.Taints = append(mark.Taints, corev1.Taint{Key: key, Value: rapid.StringN(0, 20, 60).Draw(t, "value"), Effect: rapid.SampledFrom([]corev1.TaintEffect{"NoSchedule", "NoExecute"}).Draw(t, "effect")})
			}
			text := mark.String()
			read, err := v1alpha1.ParseReserve(text)
			if err != nil || read.String() != text || !read.Since.Equal(mark.Since) || len(read.Taints) != len(mark.Taints) {
				t.Fatalf("%s was read as %v, %v", text, read, err)
			}
		})
	})
})

var _ = Describe("Applied numbers", func() {
	DescribeTable("read and write", func(text string, want v1alpha1.AppliedExcess) {
		read, err := v1alpha1.ParseAppliedExcess(text)
		Expect(err).NotTo(HaveOccurred())
		Expect(read).To(Equal(want))
		Expect(read.String()).To(Equal(text))
	},
		Entry("none", "0", v1alpha1.AppliedExcess{}),
		Entry("some", "12", v1alpha1.AppliedExcess{Machines: 12}),
		Entry("for a max", "2,max=5", v1alpha1.AppliedExcess{Machines: 2, Max: ptr.To[int32](5)}),
		Entry("for a max of none", "0,max=0", v1alpha1.AppliedExcess{Max: ptr.To[int32](0)}),
		Entry("the most", "2147483647,max=2147483647", v1alpha1.AppliedExcess{Machines: 1<<31 - 1, Max: ptr.To[int32](1<<31 - 1)}),
	)

	DescribeTable("are refused", func(text string) {
		_, err := v1alpha1.ParseAppliedExcess(text)
		Expect(err).To(HaveOccurred())
		_, err = v1alpha1.ParseAppliedReplicas(text)
		Expect(err).To(HaveOccurred())
	},
		Entry("nothing", ""), Entry("negative", "-1"), Entry("leading zero", "01"), Entry("space", "1 "), Entry("no count", "max=5"),
		Entry("no max", "2,max="), Entry("percentage", "5%"), Entry("overflow", "2147483648"), Entry("overflow of max", "1,max=2147483648"),
	)

	It("read replicas", func() {
		Expect(v1alpha1.ParseAppliedReplicas("7")).To(Equal(int32(7)))
		_, err := v1alpha1.ParseAppliedReplicas("7,max=8")
		Expect(err).To(HaveOccurred())
	})
})

func FuzzParseReserve(f *testing.F) {
	f.Add(v1alpha1.Reserve{Since: since, Taints: []corev1.Taint{{Key: "k", Effect: "NoSchedule"}}, Annotations: map[string]string{"a": "b"}}.String())
	f.Add(`{"since":"2026-11-21T10:30:00+01:00"}`)
	f.Fuzz(func(t *testing.T, text string) {
		mark, err := v1alpha1.ParseReserve(text)
		if err != nil {
			return
		}
		again, err := v1alpha1.ParseReserve(mark.String())
		if err != nil || again.String() != mark.String() {
			t.Fatalf("%q was read as %v, and that as %v, %v", text, mark, again, err)
		}
	})
}

var _ = Describe("Owners of the excess", func() {
	It("read as they were written", func() {
		owners := []string{"a, \"b\"", "c"}
		Expect(v1alpha1.ParseExcessOwners(v1alpha1.ExcessOwnersText(owners))).To(Equal(owners))
		Expect(v1alpha1.ExcessOwnersText(nil)).To(BeEmpty())
	})

	DescribeTable("are refused", func(text string) {
		_, err := v1alpha1.ParseExcessOwners(text)
		Expect(err).To(HaveOccurred())
	},
		Entry("nothing", ""), Entry("no list", "{}"), Entry("no names", `[{"manager":"a"}]`), Entry("too much", `["`+strings.Repeat("x", 4<<10)+`"]`),
	)
})
