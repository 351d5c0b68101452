// SPDX-License-Identifier: Apache-2.0

package read_test

import (
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// slow is a connection that takes a while for each request.
type slow struct{ http.RoundTripper }

func (s slow) RoundTrip(request *http.Request) (*http.Response, error) {
	time.Sleep(5 * time.Second)
	return s.RoundTripper.RoundTrip(request)
}

var _ = Describe("A look at a slow cluster", func() {
	It("misses no object if a list expires between two of its pages", func() {
		play(everything(), func(s scene) {
			for i := range 600 {
				s.pod(fmt.Sprint("p", i))
			}
			target := s.ConfigFor("reader")
			expiring := &expiry{RoundTripper: target.Transport, offers: true}
			target.Transport = expiring
			o := once(s, s.clusters(target))
			Expect(expiring.done).To(BeTrue())
			Expect(o.Missing).To(BeEmpty())
			Expect(o.Pods).To(HaveLen(600))
		})
	})

	It("reports a list that expires for good", func() {
		play(everything(), func(s scene) {
			for i := range 600 {
				s.pod(fmt.Sprint("p", i))
			}
			target := s.ConfigFor("reader")
			target.Transport = &expiry{RoundTripper: target.Transport}
			o := once(s, s.clusters(target))
			Expect(o.Missing).To(ConsistOf(HavePrefix("pods: ")))
			Expect(o.PodsUnknown).To(BeTrue())
		})
	})

	It("reads all pages over a slow connection, however long that takes", func() {
		play(everything(), func(s scene) {
			for i := range 2001 {
				s.pod(fmt.Sprint("p", i))
			}
			target := s.ConfigFor("reader")
			target.Transport = slow{target.Transport}
			o := once(s, s.clusters(target))
			Expect(o.Missing).To(BeEmpty())
			Expect(o.Pods).To(HaveLen(2001))
		})
	})
})
