// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// goodBounds and badBounds are what both doors, the parser and the admission policy, are held
// against.
var (
	goodBounds = []string{
		"0:0", "1:5", "1:5:0", "1:5:2", "0:2147483647:2147483647", "1:5:0%", "1:5:5%", "1:5:1000%",
		"1:10:cpu=16", "1:10:cpu=16,memory=64Gi", "1:10:cpu=10%", "1:10:cpu=0.5,nvidia.com/gpu=1", "5:5:memory=1500M",
		"1:10:max(1,5%)", "1:10:max(5%,1)", "1:10:max(2,cpu=16,memory=64Gi)", "1:10:max(5%,cpu=10%)", "1:10:max(cpu=1,memory=1Gi)", "1:10:max(0,0%)",
	}
	badBounds = []string{
		"", " ", ":", "1", "1:", ":1", "1:5:", "1:5:2:3", "1:5 ", " 1:5", "1: 5", "01:5", "1:05", "-1:5", "1:-5", "+1:5",
		"1:5:-1", "1:5:2.5", "1:5:x", "1:5:5 %", "1:5:%", "1:5:1001%", "1:5:05%", "1:5:-5%",
		"5:1", "5:1:2", "2147483648:2147483649", "0:2147483648", "0:1:2147483648", "0:1:9999999999",
		"1:5:cpu", "1:5:cpu=", "1:5:=1", "1:5:cpu=1,", "1:5:,cpu=1", "1:5:cpu=1,,memory=1", "1:5:cpu=1,cpu=2", "1:5:cpu=1,memory=1,cpu=1%",
		"1:5:cpu=1x", "1:5:cpu=-1", "1:5:cpu=1e3", "1:5:cpu=01", "1:5:cpu=1.2345", "1:5:cpu=1;memory=1", "1:5:a/b/c=1", "1:5:-cpu=1",
		"1:5:2,cpu=1", "1:5:cpu=1,2", "1:5\n", "1:5:2\n", "١:٥", "1:5:" + strings.Repeat("a", 63) + "b=1",
		"1:5:max(1)", "1:5:max()", "1:5:max(1,)", "1:5:max(,1)", "1:5:max(1,5%", "1:5:max1,5%)", "1:5:1,5%", "1:5:max(1, 5%)", "1:5:Max(1,5%)", "1:5:min(1,5%)",
		"1:5:max(1,2)", "1:5:max(5%,10%)", "1:5:max(1,5%,1)", "1:5:max(1,max(2,5%))", "1:5:max(1,cpu=1,cpu=2)", "1:5:max(1,2147483648)", "1:5:max(1,1001%)",
		"1:5:max(1,5%)2", "1:5:max(1,5%),cpu=1", "1:5:cpu=1,5%",
		"1:5:" + strings.TrimSuffix(strings.Repeat("cpu=1,", 60), ","),
	}
)

var _ = Describe("Bounds", func() {
	DescribeTable("are read whole",
		func(text string, want machine.Bounds) {
			Expect(machine.ParseBounds(text)).To(Equal(want))
		},
		Entry("without excess", "1:5", machine.Bounds{Min: 1, Max: 5}),
		Entry("with a count", "1:5:2", machine.Bounds{Min: 1, Max: 5, Excess: &machine.Excess{Count: ptr.To[int32](2)}}),
		Entry("with an explicit zero", "1:5:0", machine.Bounds{Min: 1, Max: 5, Excess: &machine.Excess{Count: ptr.To[int32](0)}}),
		Entry("with a percentage", "0:5:20%", machine.Bounds{Max: 5, Excess: &machine.Excess{Percent: ptr.To[int32](20)}}),
		Entry("with the largest of several", "1:9:max(5%,1)", machine.Bounds{Min: 1, Max: 9, Excess: &machine.Excess{Count: ptr.To[int32](1), Percent: ptr.To[int32](5)}}),
		Entry("with resources, sorted", "0:5:memory=64Gi,cpu=10%", machine.Bounds{Max: 5, Excess: &machine.Excess{
			Resources: []machine.ResourceExcess{
				{Name: "cpu", Percent: ptr.To[int32](10)},
				{Name: "memory", Quantity: ptr.To(resource.MustParse("64Gi"))},
			}}}),
	)

	DescribeTable("have one form of an excess",
		func(text, form string) {
			b, err := machine.ParseBounds(text)
			Expect(err).NotTo(HaveOccurred())
			Expect(b.String()).To(Equal(form))
		},
		Entry("of the largest of several", "1:9:max(5%,1)", "1:9:max(1,5%)"),
		Entry("of a count beside resources", "1:9:max(memory=1Gi,cpu=2,3)", "1:9:max(3,cpu=2,memory=1Gi)"),
		Entry("of an amount below a thousandth, which has no suffix", "1:9:cpu=0.5m,memory=1.001m", "1:9:cpu=1m,memory=2m"),
		Entry("of resources, whose largest counts anyway", "1:9:max(memory=1Gi,cpu=2)", "1:9:cpu=2,memory=1Gi"),
	)

	It("say what to write where they are not understood", func() {
		for _, text := range badBounds {
			_, err := machine.ParseBounds(text)
			Expect(err).To(HaveOccurred(), "%q", text)
			Expect(err.Error()).To(Or(ContainSubstring("write min:max"), ContainSubstring("must"), ContainSubstring("only once")), "%q", text)
		}
		for _, text := range goodBounds {
			_, err := machine.ParseBounds(text)
			Expect(err).NotTo(HaveOccurred(), "%q", text)
		}
	})

	It("are read part by part as their grammar says of the whole", func() {
		grammar := regexp.MustCompile(machine.BoundsGrammar)
		for _, text := range slices.Concat(goodBounds, badBounds) {
			Expect(machine.AreBounds(text)).To(Equal(grammar.MatchString(text)), "%q", text)
		}
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			text := rapid.OneOf(boundsLike(), rapid.StringMatching(`1:5:(max\()?([0-9]%?|cpu=1)(,([0-9]%?|cpu=1|)){0,2}\)?`)).Draw(t, "bounds")
			if grammar.MatchString(text) != machine.AreBounds(text) {
				t.Fatalf("%q: taken for bounds: %v", text, machine.AreBounds(text))
			}
		})
	})

	It("come back from their own text", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			text := boundsLike().Draw(t, "bounds")
			b, err := machine.ParseBounds(text)
			if err != nil {
				return // garbage has no text of its own
			}
			again, err := machine.ParseBounds(b.String())
			if err != nil || again.String() != b.String() {
				t.Fatalf("%q became %q: %v", text, b, err)
			}
		})
	})
})

// boundsLike draws texts close to bounds: mostly right, with every part now and then wrong.
func boundsLike() *rapid.Generator[string] {
	number := rapid.OneOf(
		rapid.StringMatching(`[0-9]{1,2}`),
		rapid.SampledFrom([]string{"0", "1", "5", "2147483647", "2147483648", "00", "-1", "", "9999999999"}))
	excess := excessLike(number, amountLike())
	parts := rapid.Custom(func(t *rapid.T) string {
		text := number.Draw(t, "min") + ":" + number.Draw(t, "max")
		if rapid.Bool().Draw(t, "with excess") {
			text += ":" + excess.Draw(t, "excess")
		}
		return text
	})
	return rapid.OneOf(parts, parts, parts, rapid.StringMatching(`[0-9:%=,. a-cmx()]{0,12}`), rapid.String())
}

// amountLike draws texts close to an amount of a resource.
func amountLike() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		name := rapid.OneOf(rapid.SampledFrom([]string{"cpu", "memory", "nvidia.com/gpu", "a", ""}), rapid.StringMatching(`[a-zA-Z./_-]{1,5}`)).Draw(t, "name")
		value := rapid.OneOf(rapid.StringMatching(`[0-9]{1,3}(%|m|k|M|Gi|Ei|E|e3)?`), rapid.StringMatching(`[0-9]{1,31}(\.[0-9]{1,4})?(m|K|M|Ti|E|Ei)?`)).Draw(t, "value")
		return name + "=" + value
	})
}

// excessLike draws texts close to an excess.
func excessLike(number, amount *rapid.Generator[string]) *rapid.Generator[string] {
	list := func(of *rapid.Generator[string]) *rapid.Generator[string] {
		return rapid.Map(rapid.SliceOfN(of, 1, 3), func(terms []string) string { return strings.Join(terms, ",") })
	}
	percent := rapid.StringMatching(`[0-9]{1,4}%`)
	most := rapid.Map(list(rapid.OneOf(number, percent, amount)), func(terms string) string { return "max(" + terms + ")" })
	return rapid.OneOf(number, percent, list(amount), most, rapid.StringMatching(`(max\()?[0-9]%?(,[0-9]%?){0,2}\)?`))
}
