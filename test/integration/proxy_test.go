// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// fault is what a proxy answers in place of the API server: after it has passed the request on, or instead of doing so.
type fault struct {
	code  int // 0 cuts the connection
	after bool
	// status words the answer as an API server would; else it is a page.
	status     bool
	retryAfter bool
}

func (f fault) String() string {
	when, how := "before", "a page"
	if f.after {
		when = "after"
	}
	if f.status {
		how = "a Status"
	}
	if f.code == 0 {
		return "connection cut " + when + " the effect"
	}
	if f.retryAfter {
		how += " with Retry-After"
	}
	return fmt.Sprintf("%d %s the effect, %s", f.code, when, how)
}

func (f fault) answer(w http.ResponseWriter) {
	if f.code == 0 {
		panic(http.ErrAbortHandler)
	}
	kind, body := "text/html", "<html>"+http.StatusText(f.code)+"</html>"
	if f.status {
		kind = "application/json"
		body = fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"proxy","reason":%q,"code":%d}`, reasons[f.code], f.code)
	}
	if f.retryAfter {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(f.code)
	_, _ = io.WriteString(w, body)
}

var reasons = map[int]string{
	401: "Unauthorized", 403: "Forbidden", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout",
}

// faultyProxy stands in front of the cluster's API server, and asks of each request if it gets a fault. It returns a
// kubeconfig.
func faultyProxy(pick func(*http.Request) *fault) string {
	GinkgoHelper()
	config := cluster.Config()
	transport, err := rest.TransportFor(config)
	Expect(err).NotTo(HaveOccurred())
	behind, err := url.Parse(config.Host)
	Expect(err).NotTo(HaveOccurred())
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(behind) },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		f := pick(request)
		switch {
		case f == nil:
			proxy.ServeHTTP(w, request)
			return
		case f.after:
			proxy.ServeHTTP(httptest.NewRecorder(), request)
		}
		f.answer(w)
	}))
	DeferCleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	written := clientcmdapi.NewConfig()
	written.Clusters["proxy"] = &clientcmdapi.Cluster{Server: server.URL}
	written.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	written.CurrentContext = "proxy"
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*written, path)).To(Succeed())
	return path
}
