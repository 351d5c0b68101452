// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

const plain = `{"zone":"z1","region":"r","instanceType":"small","capacity":{"cpu":4,"memory":"16Gi"}}`

// with returns the plain providerSpec with one more member, which beats one of the same name.
func with(member string) string {
	name := member[:strings.Index(member, ":")]
	kept := []string{member}
	for _, m := range []string{`"zone":"z1"`, `"region":"r"`, `"instanceType":"small"`, `"capacity":{"cpu":4,"memory":"16Gi"}`} {
		if !strings.HasPrefix(m, name+":") {
			kept = append(kept, m)
		}
	}
	return "{" + strings.Join(kept, ",") + "}"
}

var _ = Describe("providerSpec", func() {
	It("has defaults", func() {
		spec, err := ParseSpec([]byte(plain))
		Expect(err).NotTo(HaveOccurred())
		Expect(spec.Architecture).To(Equal("amd64"))
		Expect(spec.TaintsAtRegistration).To(BeTrue())
		Expect(spec.Quota).To(BeNil())
		Expect(spec.BootDelay).To(Equal(Delay{}))
		Expect(spec.StartupTaint).To(BeNil())
		Expect(spec.Capacity.Cpu().Value()).To(BeEquivalentTo(4))
		Expect(spec.Capacity.Pods().Value()).To(BeEquivalentTo(110))
		Expect(spec.Allocatable).To(Equal(spec.Capacity))
	})

	It("takes all fields", func() {
		spec, err := ParseSpec([]byte(`{"zone":"z1","region":"r","instanceType":"big","architecture":"arm64",
			"capacity":{"cpu":"8","memory":"32Gi","pods":20,"example.com/gpu":"2"},"allocatable":{"cpu":"7500m"},
			"bootDelay":{"from":"2s","to":"4s"},"quota":3,
			"startupTaint":{"key":"example.com/agent","value":"no","effect":"NoExecute"},"taintsAtRegistration":false,"real":true}`))
		Expect(err).NotTo(HaveOccurred())
		Expect(spec.BootDelay).To(Equal(Delay{From: 2 * time.Second, To: 4 * time.Second}))
		Expect(*spec.Quota).To(Equal(3))
		Expect(spec.Capacity.Pods().Value()).To(BeEquivalentTo(20))
		Expect(spec.Allocatable.Cpu().MilliValue()).To(BeEquivalentTo(7500))
		Expect(spec.Allocatable["example.com/gpu"]).To(Equal(resource.MustParse("2")))
		Expect(*spec.StartupTaint).To(Equal(corev1.Taint{Key: "example.com/agent", Value: "no", Effect: "NoExecute"}))
		Expect(spec.TaintsAtRegistration).To(BeFalse())
		Expect(spec.Real).To(BeTrue())
		Expect(spec.Architecture).To(Equal("arm64"))
	})

	It("is refused with the names of all fields that are missing", func() {
		_, err := ParseSpec([]byte(`{"capacity":{"cpu":4}}`))
		Expect(err).To(MatchError(And(ContainSubstring("providerSpec.zone: "), ContainSubstring("providerSpec.region: "),
			ContainSubstring("providerSpec.instanceType: "), ContainSubstring("providerSpec.capacity.memory: "))))
	})

	DescribeTable("is refused with the name of the field", func(raw, field, hint string) {
		_, err := ParseSpec([]byte(raw))
		Expect(err).To(MatchError(And(HavePrefix(field+": "), ContainSubstring(hint))))
	},
		Entry("nothing", ``, "providerSpec", "must be an object"),
		Entry("no object", `[]`, "providerSpec", "must be an object"),
		Entry("twice the same", `{"zone":"a","zone":"b"}`, "providerSpec", "zone"),
		Entry("a typing error", with(`"bootdelay":"2s"`), "providerSpec.bootdelay", "bootDelay"),
		Entry("no zone", with(`"zone":""`), "providerSpec.zone", "required"),
		Entry("no label", with(`"zone":"a b"`), "providerSpec.zone", `"a b"`),
		Entry("a number for a name", with(`"region":7`), "providerSpec.region", "string"),
		Entry("an unknown architecture", with(`"architecture":"vax"`), "providerSpec.architecture", "amd64, arm64"),
		Entry("no memory", with(`"capacity":{"cpu":1}`), "providerSpec.capacity.memory", "more than zero"),
		Entry("no quantity", with(`"capacity":{"cpu":"four","memory":1}`), "providerSpec.capacity.cpu", "quantity"),
		Entry("a negative quantity", with(`"capacity":{"cpu":"-1","memory":1}`), "providerSpec.capacity.cpu", "negative"),
		Entry("more allocatable than there is", with(`"allocatable":{"cpu":5}`), "providerSpec.allocatable.cpu", "capacity, 4"),
		Entry("allocatable that there is none of", with(`"allocatable":{"example.com/gpu":1}`), "providerSpec.allocatable.example.com/gpu", "more than"),
		Entry("a delay without unit", with(`"bootDelay":2`), "providerSpec.bootDelay", `"2s"`),
		Entry("a negative delay", with(`"bootDelay":"-2s"`), "providerSpec.bootDelay", `"2s"`),
		Entry("a range upside down", with(`"bootDelay":{"from":"4s","to":"2s"}`), "providerSpec.bootDelay.to", "from (4s)"),
		Entry("a range with a typing error", with(`"bootDelay":{"form":"4s"}`), "providerSpec.bootDelay.form", "from, to"),
		Entry("a negative quota", with(`"quota":-1`), "providerSpec.quota", "negative"),
		Entry("half a quota", with(`"quota":1.5`), "providerSpec.quota", "1.5"),
		Entry("a taint without key", with(`"startupTaint":{"effect":"NoExecute"}`), "providerSpec.startupTaint.key", ""),
		Entry("an unknown effect", with(`"startupTaint":{"key":"a","effect":"No"}`), "providerSpec.startupTaint.effect", "NoSchedule"),
		Entry("a word for a switch", with(`"taintsAtRegistration":"no"`), "providerSpec.taintsAtRegistration", "bool"),
	)
})

var _ = Describe("Boot delays", func() {
	It("are the same for the same machine, within bounds, whatever they are", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			from := rapid.Int64Range(0, int64(time.Hour)).Draw(t, "from")
			d := Delay{From: time.Duration(from), To: time.Duration(rapid.Int64Range(from, int64(2*time.Hour)).Draw(t, "to"))}
			name := rapid.String().Draw(t, "name")
			if got := d.ForMachine(name); got < d.From || got > d.To || got != d.ForMachine(name) {
				t.Fatalf("%s boots in %s, then in %s; asked for %s to %s", name, got, d.ForMachine(name), d.From, d.To)
			}
		})
	})

	It("differ between machines and use the whole range", func() {
		d, least, most := Delay{From: time.Second, To: 11 * time.Second}, time.Hour, time.Duration(0)
		for i := range 1000 {
			delay := d.ForMachine("pool-z1-" + strconv.Itoa(i))
			least, most = min(least, delay), max(most, delay)
		}
		Expect(least).To(BeNumerically("<", 1100*time.Millisecond))
		Expect(most).To(BeNumerically(">", 10900*time.Millisecond))
	})
})
