// SPDX-License-Identifier: Apache-2.0

package daemon

import (
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
