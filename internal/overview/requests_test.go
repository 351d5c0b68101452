// SPDX-License-Identifier: Apache-2.0

package overview_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/evenkeel/evenkeel/internal/overview"
	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
)

func (w *world) request(name string, c ...metav1.Condition) *provisioningv1.ProvisioningRequest {
	r := &provisioningv1.ProvisioningRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: ago(3600e9)}}
	r.Spec.ProvisioningClassName = provisioningv1.ClassReserved
	r.Spec.PodSets = []provisioningv1.PodSet{{Count: 2}, {Count: 3}}
	r.Status.Conditions = c
	w.Requests = append(w.Requests, r)
	return r
}

var _ = Describe("ProvisioningRequests", func() {
	accepted := says(provisioningv1.ConditionAccepted, metav1.ConditionTrue, "Accepted", "yes")
	provisioned := says(provisioningv1.ConditionProvisioned, metav1.ConditionTrue, "CapacityIsProvisioned", "booked")

	It("are those of Evenkeel's class, by name, with their state", func() {
		w := newWorld()
		w.request("b", accepted, provisioned).Status.ProvisioningClassDetails = map[string]provisioningv1.Detail{provisioningv1.BookedDetail: "pool-a=2", provisioningv1.LeftDetail: "pool-a=1"}
		w.request("other").Spec.ProvisioningClassName = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
		w.request("a", accepted, says(provisioningv1.ConditionProvisioned, metav1.ConditionFalse, "CapacityIsNotFound", "too few"))
		w.request("c", accepted, provisioned, says(provisioningv1.ConditionBookingExpired, metav1.ConditionTrue, "BookingExpired", "for 10m"))
		w.request("d", accepted, says(provisioningv1.ConditionFailed, metav1.ConditionTrue, "CapacityIsNotFound", "in vain"))
		v := New(w.Objects)
		Expect(v.Requests).To(Equal([]Request{
			{Namespace: "shop", Name: "a", Pods: 5, Ready: Condition{Status: "False", Reason: "Waiting", Message: "too few"}},
			{Namespace: "shop", Name: "b", Pods: 5, Booked: "pool-a=2", Left: "pool-a=1", Ready: Condition{Status: "True", Reason: "Provisioned", Message: "booked"}},
			{Namespace: "shop", Name: "c", Pods: 5, Ready: Condition{Status: "False", Reason: "Expired", Message: "for 10m"}},
			{Namespace: "shop", Name: "d", Pods: 5, Ready: Condition{Status: "False", Reason: "Failed", Message: "in vain"}},
		}))
		Expect(v.Troubles).To(BeEmpty(), "what a queue decides about is no problem")
	})

	It("are a problem where no controller looks at them, unless they are new", func() {
		w := newWorld()
		w.request("a")
		w.request("new").CreationTimestamp = ago(1e9)
		Expect(New(w.Objects).Troubles).To(HaveExactElements(And(HaveField("Object", "provisioningrequest/shop/a"), HaveField("What", "no controller has reported on it"))))
	})
})
