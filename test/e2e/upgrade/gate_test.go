// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"
)

// writes is a server before the API server that counts what the manager writes, and kills it at one of its writes.
type writes struct {
	server *httptest.Server
	behind http.Handler

	mu    sync.Mutex
	count int
	// moment is the write at which kill is called; 0 for none. The API server gets that write if done is true, and the manager no answer.
	moment int
	done   bool
	kill   func()
	struck chan struct{}
}

func newWrites(config *rest.Config) (*writes, error) {
	transport, err := rest.TransportFor(&rest.Config{Host: config.Host, TLSClientConfig: rest.TLSClientConfig{CAFile: config.CAFile, CAData: config.CAData}})
	if err != nil {
		return nil, err
	}
	to, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	w := &writes{behind: &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}}
	w.server = httptest.NewUnstartedServer(w)
	w.server.EnableHTTP2 = true
	w.server.StartTLS()
	return w, nil
}

func (w *writes) close() {
	w.server.CloseClientConnections()
	w.server.Close()
}

// kubeconfig is a copy of one that comes here.
func (w *writes) kubeconfig(path string) string {
	GinkgoHelper()
	config, err := clientcmd.LoadFromFile(path)
	Expect(err).NotTo(HaveOccurred())
	encoded, err := certutil.EncodeCertificates(w.server.Certificate())
	Expect(err).NotTo(HaveOccurred())
	for _, c := range config.Clusters {
		c.Server, c.CertificateAuthorityData = w.server.URL, encoded
	}
	copied := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*config, copied)).To(Succeed())
	return copied
}

// arm calls kill at a write from now on.
func (w *writes) arm(moment int, done bool, kill func()) (struck <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count, w.moment, w.done, w.kill, w.struck = 0, moment, done, kill, make(chan struct{})
	return w.struck
}

// counted is how many writes there were since it was armed.
func (w *writes) counted() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

// ServeHTTP implements [http.Handler].
func (w *writes) ServeHTTP(answer http.ResponseWriter, r *http.Request) {
	if !isWrite(r) || !w.strikes() {
		w.behind.ServeHTTP(answer, r)
		return
	}
	if w.done {
		w.behind.ServeHTTP(httptest.NewRecorder(), r)
	}
	w.kill()
	close(w.struck)
	panic(http.ErrAbortHandler)
}

// isWrite leaves out events, which decide nothing.
func isWrite(r *http.Request) bool {
	return r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/events")
}

// strikes counts a write, and reports whether it is the one.
func (w *writes) strikes() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	return w.count == w.moment
}
