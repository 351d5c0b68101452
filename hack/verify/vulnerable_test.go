// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The look for known vulnerabilities", func() {
	It("is not made without its database, and says so", func() {
		server := httptest.NewServer(http.NotFoundHandler())
		defer server.Close()
		GinkgoT().Setenv("GOVULNDB", server.URL)
		_, err := vulnerable()
		Expect(err).To(BeAssignableToTypeOf(notMade("")))
		Expect(err).To(MatchError(ContainSubstring("404")))
		server.Close()
		_, err = vulnerable()
		Expect(err).To(BeAssignableToTypeOf(notMade("")))
		Expect(err).To(MatchError(ContainSubstring("cannot be reached")))
	})
})
