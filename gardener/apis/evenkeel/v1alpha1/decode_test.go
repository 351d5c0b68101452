// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/v1alpha1"
)

func TestConfig(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "EvenkeelConfig")
}

const header = `"apiVersion":"evenkeel.extensions.gardener.cloud/v1alpha1","kind":"EvenkeelConfig"`

var _ = Describe("A configuration", func() {
	It("is read with all fields", func() {
		c, err := v1alpha1.Decode([]byte(`{` + header + `,"pools":[{"name":"a","excess":2,"balance":"ScaleUp"},{"name":"b","excess":"10%"},{"name":"c","bounds":"1:9:2"}],"capacityBuffers":true,"accounting":"Additive","autoscaler":"fork"}`))
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Pools).To(Equal([]v1alpha1.Pool{
			{Name: "a", Excess: ptr.To(intstr.FromInt32(2)), Balance: machine.BalanceScaleUp},
			{Name: "b", Excess: ptr.To(intstr.FromString("10%"))},
			{Name: "c", Bounds: "1:9:2"},
		}))
		Expect(c.CapacityBuffers).To(BeTrue())
		Expect(c.Accounting).To(Equal(machine.AccountingAdditive))
		Expect(c.Autoscaler).To(Equal(v1alpha1.AutoscalerFork))
	})

	DescribeTable("has defaults where there is", func(raw string) {
		c, err := v1alpha1.Decode([]byte(raw))
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Pools).To(BeEmpty())
		Expect(c.CapacityBuffers).To(BeFalse())
		Expect(c.Accounting).To(Equal(machine.AccountingInclusive))
		Expect(c.Autoscaler).To(Equal(v1alpha1.AutoscalerFork))
	},
		Entry("no providerConfig", ""),
		Entry("null", "null"),
		Entry("nothing but its kind", `{`+header+`}`),
	)

	It("is the same after it was written and read again", func() {
		c, err := v1alpha1.Decode([]byte(`{` + header + `,"pools":[{"name":"a","excess":"max(1,5%)"},{"name":"b","excess":3}],"capacityBuffers":true}`))
		Expect(err).NotTo(HaveOccurred())
		raw, err := v1alpha1.Encode(c)
		Expect(err).NotTo(HaveOccurred())
		Expect(v1alpha1.Decode(raw)).To(Equal(c))
	})

	DescribeTable("is refused, with what to write, where there is", func(raw, message string) {
		c, err := v1alpha1.Decode([]byte(raw))
		Expect(err).To(MatchError(ContainSubstring(message)))
		Expect(c).To(BeNil())
	},
		Entry("an unknown field", `{`+header+`,"pool":[]}`, `unknown field "pool"; write each field once; the fields are pools`),
		Entry("an unknown field of a pool", `{`+header+`,"pools":[{"name":"a","exces":2}]}`, `unknown field "pools[0].exces"`),
		Entry("a field in another case", `{`+header+`,"Pools":[]}`, `unknown field "Pools"`),
		Entry("a field that occurs twice", `{`+header+`,"pools":[],"pools":[]}`, `duplicate field "pools"`),
		Entry("no apiVersion", `{"kind":"EvenkeelConfig"}`, "write apiVersion: evenkeel.extensions.gardener.cloud/v1alpha1"),
		Entry("another version", `{"apiVersion":"evenkeel.extensions.gardener.cloud/v1","kind":"EvenkeelConfig"}`, "write apiVersion: evenkeel.extensions.gardener.cloud/v1alpha1"),
		Entry("another kind", `{"apiVersion":"evenkeel.extensions.gardener.cloud/v1alpha1","kind":"Config"}`, "and kind: EvenkeelConfig"),
		Entry("a list", `[]`, "write an object"),
		Entry("a text", `"excess"`, "write an object"),
		Entry("a single pool", `{`+header+`,"pools":{"name":"a"}}`, "pools (each with name"),
		Entry("an excess that is no whole number", `{`+header+`,"pools":[{"name":"a","excess":1.5}]}`, "write an object"),
		Entry("an excess that is true", `{`+header+`,"pools":[{"name":"a","excess":true}]}`, "write an object"),
		Entry("an excess beyond all numbers", `{`+header+`,"pools":[{"name":"a","excess":99999999999}]}`, "write an object"),
		Entry("bounds that are a number", `{`+header+`,"pools":[{"name":"a","bounds":3}]}`, "write an object"),
		Entry("capacity buffers that are a text", `{`+header+`,"capacityBuffers":"true"}`, "write an object"),
		Entry("no JSON", `{`, "write an object"),
	)
})
