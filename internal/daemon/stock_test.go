// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"github.com/gardener/machine-controller-manager/pkg/handlers"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Readiness", func() {
	It("is given with full caches, or while another one leads", func() {
		var r Readiness
		Expect(r.Check()).NotTo(Succeed())
		r.Wait()
		Expect(r.Check()).To(Succeed())
		r.Lead()
		Expect(r.Check()).NotTo(Succeed())
		r.Filled()
		Expect(r.Check()).To(Succeed())
	})
})

var _ = Describe("The stock health", func() {
	It("is what machine-controller-manager says of itself", func() {
		handlers.UpdateHealth(true)
		Expect(StockHealth()).To(Succeed())
		handlers.UpdateHealth(false)
		Expect(StockHealth()).NotTo(Succeed())
	})
})

var _ = Describe("The endpoint", func() {
	It("is loopback outside of pods unless a flag is set", func() {
		GinkgoT().Setenv("KUBERNETES_SERVICE_HOST", "")
		Expect(Endpoint("", "0.0.0.0", false, 1)).To(Equal("127.0.0.1:1"))
		Expect(Endpoint("", "0.0.0.0", true, 1)).To(Equal("0.0.0.0:1"))
		Expect(Endpoint("10.0.0.1", "0.0.0.0", true, 1)).To(Equal("10.0.0.1:1"))
		GinkgoT().Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
		Expect(Endpoint("", "127.0.0.1", false, 1)).To(Equal("0.0.0.0:1"))
	})
})
