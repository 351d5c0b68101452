// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"
	"net/http/httptest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The guard", func() {
	answer := func(method, host string, header map[string]string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "/", nil)
		r.Host = host
		for name, value := range header {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		guarded(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })).ServeHTTP(w, r)
		return w
	}
	const here = "127.0.0.1:8001"

	DescribeTable("lets in",
		func(host string, header map[string]string) {
			Expect(answer(http.MethodGet, host, header).Code).To(Equal(http.StatusTeapot))
		},
		Entry("this machine by its address", here, nil),
		Entry("this machine by its name", "localhost:8001", nil),
		Entry("this machine on the usual port", "localhost", nil),
		Entry("this machine in the other protocol", "[::1]:8001", nil),
		Entry("this page", here, map[string]string{"Origin": "http://127.0.0.1:8001", "Sec-Fetch-Site": "same-origin"}),
		Entry("who typed the address", here, map[string]string{"Sec-Fetch-Site": "none"}),
		Entry("who followed a link", here, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}),
	)

	DescribeTable("keeps out",
		func(host string, header map[string]string) {
			Expect(answer(http.MethodGet, host, header).Code).To(Equal(http.StatusForbidden))
		},
		Entry("a name that was pointed here", "attacker.example:8001", nil),
		Entry("a name that begins like this machine's", "localhost.attacker.example", nil),
		Entry("no name", "", nil),
		Entry("another machine's address", "10.0.0.1:8001", nil),
		Entry("another origin", here, map[string]string{"Origin": "https://attacker.example"}),
		Entry("another port of this machine", here, map[string]string{"Origin": "http://127.0.0.1:3000"}),
		Entry("an origin that hides", here, map[string]string{"Origin": "null"}),
		Entry("a script or picture in another page", here, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}),
		Entry("a frame in another page", here, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}),
		Entry("a page of another port", here, map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}),
	)

	It("answers nothing but GET", func() {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodHead, http.MethodConnect} {
			w := answer(method, here, nil)
			Expect(w.Code).To(Equal(http.StatusMethodNotAllowed), method)
			Expect(w.Header().Get("Allow")).To(Equal("GET"))
		}
	})

	It("sends a policy that allows nothing but this server, also to those it keeps out", func() {
		for _, host := range []string{here, "attacker.example"} {
			header := answer(http.MethodGet, host, nil).Header()
			Expect(header.Get("Content-Security-Policy")).To(And(HavePrefix("default-src 'none'; "), Not(ContainSubstring("unsafe")), Not(ContainSubstring("http"))))
			Expect(header.Get("Cross-Origin-Resource-Policy")).To(Equal("same-origin"))
			Expect(header.Get("X-Content-Type-Options")).To(Equal("nosniff"))
			Expect(header.Get("Cache-Control")).To(Equal("no-store"))
		}
	})
})
