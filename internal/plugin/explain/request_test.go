// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/internal/overview"
	. "github.com/evenkeel/evenkeel/internal/plugin/explain"
	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
)

var _ = Describe("A ProvisioningRequest is explained", func() {
	const name = "shop/nightly"
	explained := func(name string, change ...func(*provisioningv1.ProvisioningRequest)) (Account, error) {
		var all []*provisioningv1.ProvisioningRequest
		for _, namespace := range []string{"shop", "ci"} {
			r := &provisioningv1.ProvisioningRequest{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "nightly", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
			r.Spec = provisioningv1.ProvisioningRequestSpec{ProvisioningClassName: provisioningv1.ClassReserved, PodSets: []provisioningv1.PodSet{{Count: 3}}}
			for _, f := range change {
				f(r)
			}
			all = append(all, r)
		}
		return Request(overview.Objects{At: now, Requests: all}, name)
	}
	is := func(kind string, status metav1.ConditionStatus, reason string) func(*provisioningv1.ProvisioningRequest) {
		return func(r *provisioningv1.ProvisioningRequest) {
			r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "text", LastTransitionTime: metav1.NewTime(now.Add(-4 * time.Minute))})
		}
	}
	details := func(booked, left provisioningv1.Detail) func(*provisioningv1.ProvisioningRequest) {
		return func(r *provisioningv1.ProvisioningRequest) {
			r.Status.ProvisioningClassDetails = map[string]provisioningv1.Detail{provisioningv1.BookedDetail: booked, provisioningv1.LeftDetail: left}
		}
	}

	It("by its machines, and how long they are booked", func() {
		a, err := explained(name, is(provisioningv1.ConditionProvisioned, metav1.ConditionTrue, "CapacityIsProvisioned"), details("pool-a=2", "pool-a=1"))
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Title).To(Equal("ProvisioningRequest shop/nightly: Provisioned"))
		Expect(a.Facts).To(HaveExactElements(Fact{"Pods", "3"}, Fact{"Booked", "pool-a=2"}, Fact{"Not used yet", "pool-a=1"}, Fact{"Provisioned", "True, CapacityIsProvisioned: text"}))
		Expect(a.Why).To(ContainElement(HavePrefix("Only pods of namespace shop with the annotation autoscaling.x-k8s.io/consume-provisioning-request: nightly")))
		Expect(a.Next).To(HaveExactElements(HaveSuffix("ends in 6m.")))
	})

	It("by nothing that happens next, once its pods use all machines", func() {
		a, err := explained(name, is(provisioningv1.ConditionProvisioned, metav1.ConditionTrue, "CapacityIsProvisioned"), details("pool-a=2", ""))
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Facts).To(ContainElement(Fact{"Not used yet", "none"}))
		Expect(a.Next).To(BeEmpty())
	})

	It("by what it waits for, and when it fails", func() {
		a, err := explained(name, is(provisioningv1.ConditionProvisioned, metav1.ConditionFalse, "CapacityIsNotFound"), func(r *provisioningv1.ProvisioningRequest) {
			r.Spec.Parameters = map[string]provisioningv1.Parameter{provisioningv1.ValidUntilParameter: "5400"}
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Title).To(HaveSuffix(": Waiting"))
		Expect(a.Next).To(HaveExactElements(HavePrefix("It fails in 30m"), HavePrefix("It is served once")))
	})

	It("by its end", func() {
		a, err := explained(name, is(provisioningv1.ConditionFailed, metav1.ConditionTrue, "CapacityIsNotFound"))
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Next).To(HaveExactElements(HavePrefix("It has ended")))
	})

	It("by whose it is, if it has another class", func() {
		a, err := explained(name, func(r *provisioningv1.ProvisioningRequest) {
			r.Spec.ProvisioningClassName = "check-capacity.autoscaling.x-k8s.io"
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Why).To(HaveExactElements(ContainSubstring("check-capacity.autoscaling.x-k8s.io")))
	})

	It("only if its name is enough", func() {
		_, err := explained("nightly")
		Expect(err).To(MatchError(ContainSubstring("by NAMESPACE/nightly")))
	})
})
