// SPDX-License-Identifier: Apache-2.0

package accepted_test

import (
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/v1alpha1"
	"github.com/evenkeel/evenkeel/gardener/pkg/accepted"
)

func TestAccepted(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Accepted state")
}

var _ = Describe("The state of an Extension", func() {
	It("is none before a configuration was accepted", func() {
		Expect(accepted.Read(&extensionsv1alpha1.Extension{})).To(BeNil())
	})

	DescribeTable("is read as it was written", func(drained bool) {
		config, err := v1alpha1.Decode([]byte(`{"apiVersion":"evenkeel.extensions.gardener.cloud/v1alpha1","kind":"EvenkeelConfig","pools":[{"name":"shop","excess":"10%"}]}`))
		Expect(err).NotTo(HaveOccurred())
		ex, state := &extensionsv1alpha1.Extension{}, &accepted.State{Config: config, Drained: drained}
		Expect(state.Write(ex)).To(Succeed())
		Expect(accepted.Read(ex)).To(Equal(state))
	},
		Entry("at work", false),
		Entry("drained", true),
	)

	It("stays as it is if it is the same in another order", func() {
		raw := `{"drained":false,"config":{"kind":"EvenkeelConfig","apiVersion":"evenkeel.extensions.gardener.cloud/v1alpha1","autoscaler":"fork","accounting":"Inclusive"}}`
		ex := &extensionsv1alpha1.Extension{Status: extensionsv1alpha1.ExtensionStatus{DefaultStatus: extensionsv1alpha1.DefaultStatus{State: &runtime.RawExtension{Raw: []byte(raw)}}}}
		state, err := accepted.Read(ex)
		Expect(err).NotTo(HaveOccurred())
		Expect(state.Write(ex)).To(Succeed())
		Expect(string(ex.Status.State.Raw)).To(Equal(raw))
		state.Drained = true
		Expect(state.Write(ex)).To(Succeed())
		Expect(string(ex.Status.State.Raw)).To(ContainSubstring(`"drained":true`))
	})

	DescribeTable("is read as far as this version knows it where", func(raw string) {
		ex := &extensionsv1alpha1.Extension{Status: extensionsv1alpha1.ExtensionStatus{DefaultStatus: extensionsv1alpha1.DefaultStatus{State: &runtime.RawExtension{Raw: []byte(raw)}}}}
		state, err := accepted.Read(ex)
		Expect(err).NotTo(HaveOccurred())
		Expect(state.Config.Pools).To(ConsistOf(HaveField("Name", "shop")))
		Expect(state.Config.Accounting).To(BeEquivalentTo("Inclusive"))
		Expect(state.Write(ex)).To(Succeed())
		Expect(string(ex.Status.State.Raw)).To(Equal(raw), "it stays for the version that has written it")
	},
		Entry("an earlier one has written it", `{"config":{"apiVersion":"evenkeel.extensions.gardener.cloud/v1alpha1","kind":"EvenkeelConfig","pools":[{"name":"shop","excess":2}]}}`),
		Entry("a later one has written it",
			`{"config":{"apiVersion":"evenkeel.extensions.gardener.cloud/v1alpha1","kind":"EvenkeelConfig","pools":[{"name":"shop","excess":2,"hue":"red"}],"shade":true},"era":3}`),
		Entry("a later one has written it, with an accounting of its own",
			`{"config":{"apiVersion":"evenkeel.extensions.gardener.cloud/v1alpha1","kind":"EvenkeelConfig","pools":[{"name":"shop","excess":2}],"accounting":"Exclusive"}}`),
	)

	DescribeTable("wants an unmodified cluster-autoscaler", func(wants bool, change func(*accepted.State, *extensionsv1alpha1.Extension)) {
		config, err := v1alpha1.Decode(nil)
		Expect(err).NotTo(HaveOccurred())
		config.Autoscaler = v1alpha1.AutoscalerUpstream
		ex, state := &extensionsv1alpha1.Extension{}, &accepted.State{Config: config}
		change(state, ex)
		Expect(state.WantsUpstream(ex)).To(Equal(wants))
	},
		Entry("where its owner does", true, func(*accepted.State, *extensionsv1alpha1.Extension) {}),
		Entry("also while it is reconciled", true, func(_ *accepted.State, ex *extensionsv1alpha1.Extension) {
			ex.Status.LastOperation = &gardencorev1beta1.LastOperation{Type: gardencorev1beta1.LastOperationTypeRestore}
		}),
		Entry("not with the fork", false, func(s *accepted.State, _ *extensionsv1alpha1.Extension) {
			s.Config.Autoscaler = v1alpha1.AutoscalerFork
		}),
		Entry("not when it was drained", false, func(s *accepted.State, _ *extensionsv1alpha1.Extension) { s.Drained = true }),
		Entry("not while it is deleted", false, func(_ *accepted.State, ex *extensionsv1alpha1.Extension) { ex.DeletionTimestamp = &metav1.Time{} }),
		Entry("not while it leaves the seed", false, func(_ *accepted.State, ex *extensionsv1alpha1.Extension) {
			ex.Status.LastOperation = &gardencorev1beta1.LastOperation{Type: gardencorev1beta1.LastOperationTypeMigrate}
		}),
	)

	It("wants none before a configuration was accepted", func() {
		var none *accepted.State
		Expect(none.WantsUpstream(nil)).To(BeFalse())
	})

	DescribeTable("is an error if it is", func(raw string) {
		_, err := accepted.Read(&extensionsv1alpha1.Extension{Status: extensionsv1alpha1.ExtensionStatus{DefaultStatus: extensionsv1alpha1.DefaultStatus{State: &runtime.RawExtension{Raw: []byte(raw)}}}})
		Expect(err).To(MatchError(ContainSubstring("status.state")))
	},
		Entry("no JSON", `{`),
		Entry("of another version", `{"config":{"apiVersion":"evenkeel.extensions.gardener.cloud/v9","kind":"EvenkeelConfig"}}`),
	)
})
