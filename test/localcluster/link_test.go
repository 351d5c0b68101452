// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A link", func() {
	It("carries to its server, keeps back while it is cut, and delivers when it is mended", func() {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") }))
		DeferCleanup(server.Close)
		l, err := NewLink(server.URL)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(l.Close)
		path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(os.WriteFile(path, []byte("server: "+server.URL), 0o600)).To(Succeed())
		text, err := l.Kubeconfig(path)
		Expect(err).NotTo(HaveOccurred())
		address := strings.TrimPrefix(string(text), "server: ")
		Expect(address).NotTo(Equal(server.URL))
		ask := func() <-chan string {
			answer := make(chan string, 1)
			go func() {
				response, err := http.Get(address)
				if err != nil {
					answer <- err.Error()
					return
				}
				defer response.Body.Close()
				text, _ := io.ReadAll(response.Body)
				answer <- string(text)
			}()
			return answer
		}
		Eventually(ask()).Should(Receive(Equal("here")))
		l.Cut()
		l.Cut()
		waits := ask()
		Consistently(waits, 300*time.Millisecond).ShouldNot(Receive())
		l.Mend()
		l.Mend()
		Eventually(waits).Should(Receive(Equal("here")))
	})
})
