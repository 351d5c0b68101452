// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/evenkeel/evenkeel/gardener/internal/process/processtest"
)

func TestMain(m *testing.M) { processtest.Main(m, main) }

func TestProcess(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "gardener-extension-evenkeel's process")
}

var _ = Describe("The process", func() {
	It("prints how to use it, with loopback as the default", func() {
		code, out, _ := processtest.Ended(nil, "--help")
		Expect(code).To(BeZero())
		Expect(strings.Join(strings.Fields(out), " ")).To(And(HavePrefix("gardener-extension-evenkeel runs in a seed"),
			ContainSubstring(`(default "127.0.0.1:8080")`), ContainSubstring(`(default "127.0.0.1:8081")`), ContainSubstring(`The webhook server host. (default "127.0.0.1")`)))
	})

	It("prints its version", func() {
		_, out, _ := processtest.Ended(nil, "--version")
		Expect(out).To(HavePrefix("evenkeel gardener-extension-evenkeel "))
	})

	DescribeTable("refuses", func(message string, environment []string, arguments ...string) {
		code, _, printed := processtest.Ended(append([]string{withImage()}, environment...), arguments...)
		Expect(code).To(Equal(1))
		Expect(printed).To(ContainSubstring(message))
	},
		Entry("an unknown flag", "unknown flag: --color (see --help)", nil, "--color"),
		Entry("a heartbeat without an interval", "heartbeat-renew-interval-seconds must be greater than 0", nil, "--heartbeat-renew-interval-seconds=0"),
		Entry("images that cannot be read", "read images of IMAGEVECTOR_OVERWRITE", []string{"IMAGEVECTOR_OVERWRITE=/does/not/exist"}),
		Entry("to set an image without a tag", "this build has no version that could be a tag", []string{"IMAGEVECTOR_OVERWRITE="}),
		Entry("a kubeconfig that does not exist", "/does/not/exist", nil, "--kubeconfig=/does/not/exist"),
	)

	It("ends in time after SIGTERM, also while the API server answers nothing useful", func() {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/api" || r.URL.Path == "/apis" || strings.HasPrefix(r.URL.Path, "/api/") || strings.HasPrefix(r.URL.Path, "/apis/") {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, discovery(r.URL.Path))
				return
			}
			<-r.Context().Done()
		}))
		DeferCleanup(server.CloseClientConnections)
		folder := GinkgoT().TempDir()
		session := processtest.Start([]string{withImage()}, "--kubeconfig="+kubeconfig(folder, server.URL), "--leader-election=false", "--heartbeat-namespace=default", "--webhook-config-mode=url",
			"--webhook-config-url=127.0.0.1:0", "--webhook-config-server-port=0", "--webhook-config-cert-dir="+folder, "--metrics-bind-address=0", "--health-bind-address=0")
		Eventually(session.Err.Contents, time.Minute).Should(ContainSubstring(`"Manager":"r/mcm:v2"`))
		begun := time.Now()
		session.Signal(syscall.SIGTERM)
		Eventually(session.Exited, time.Minute).Should(BeClosed())
		Expect(time.Since(begun)).To(BeNumerically("<", 35*time.Second))
	})
})

// withImage is an environment with an image of machine-controller-manager: a test has no version.
func withImage() string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "images.yaml")
	Expect(os.WriteFile(path, []byte("images: [{name: machine-controller-manager, repository: r/mcm, tag: v2}]"), 0o600)).To(Succeed())
	return "IMAGEVECTOR_OVERWRITE=" + path
}

func kubeconfig(folder, url string) string {
	GinkgoHelper()
	path := filepath.Join(folder, "kubeconfig")
	Expect(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"seed": {Server: url}}, Contexts: map[string]*clientcmdapi.Context{"seed": {Cluster: "seed"}}, CurrentContext: "seed",
	}, path)).To(Succeed())
	return path
}

// discovery is as much as the webhooks' rules need. Lists and watches are not answered.
func discovery(path string) string {
	switch path {
	case "/api":
		return `{"kind":"APIVersions","versions":["v1"]}`
	case "/apis":
		return `{"kind":"APIGroupList","apiVersion":"v1","groups":[
			{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}},
			{"name":"extensions.gardener.cloud","versions":[{"groupVersion":"extensions.gardener.cloud/v1alpha1","version":"v1alpha1"}],"preferredVersion":{"groupVersion":"extensions.gardener.cloud/v1alpha1","version":"v1alpha1"}}]}`
	case "/apis/apps/v1":
		return `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[{"name":"deployments","kind":"Deployment","namespaced":true,"verbs":["get"]}]}`
	case "/apis/extensions.gardener.cloud/v1alpha1":
		return `{"kind":"APIResourceList","groupVersion":"extensions.gardener.cloud/v1alpha1","resources":[
			{"name":"workers","kind":"Worker","namespaced":true,"verbs":["get"]},{"name":"extensions","kind":"Extension","namespaced":true,"verbs":["get"]},
			{"name":"clusters","kind":"Cluster","verbs":["get"]}]}`
	}
	return `{"kind":"Status","apiVersion":"v1","status":"Failure","code":503,"reason":"ServiceUnavailable"}`
}
