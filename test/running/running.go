// SPDX-License-Identifier: Apache-2.0

// Package running runs a daemon's main function in a spec, on a simulated API server.
package running

import (
	"context"
	"flag"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/front"
)

var client = http.Client{Timeout: 2 * time.Second}

// Silence discards what klog says.
func Silence() {
	flags := flag.NewFlagSet("", flag.PanicOnError)
	klog.InitFlags(flags)
	_ = flags.Parse([]string{"-logtostderr=false", "-stderrthreshold=FATAL"})
	klog.SetOutput(io.Discard)
}

// InFront makes a simulated API server answer on a socket.
func InFront(server *sim.Server, user string) *front.Front {
	ginkgo.GinkgoHelper()
	f, err := front.Serve(server, user, ginkgo.GinkgoT().TempDir())
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.DeferCleanup(func() {
		server.Close()
		f.Close()
	})
	return f
}

// Kubeconfig makes a simulated API server answer on a socket, and returns the path of a kubeconfig for it.
func Kubeconfig(server *sim.Server, user string) string {
	ginkgo.GinkgoHelper()
	return InFront(server, user).Kubeconfig()
}

// FreePort returns a port that is not in use.
func FreePort() int {
	ginkgo.GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// FreeAddress returns an address on loopback that is not in use.
func FreeAddress() string {
	ginkgo.GinkgoHelper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(FreePort()))
}

// Process is a daemon's main function under way.
type Process struct {
	// Server has its lease.
	Server *sim.Server
	// URL serves its health.
	URL string
	// Stop ends it, and Ended receives what it returns.
	Stop  context.CancelFunc
	Ended chan error
}

// Start runs a daemon that serves its health on a port until the spec ends.
func Start(server *sim.Server, port int, run func(context.Context) error) *Process {
	ctx, cancel := context.WithCancel(context.Background())
	p := &Process{Server: server, URL: "http://127.0.0.1:" + strconv.Itoa(port), Stop: cancel, Ended: make(chan error, 1)}
	ginkgo.DeferCleanup(cancel)
	go func() { p.Ended <- run(ctx) }()
	return p
}

// Get returns the status and the body of a page; the status is 0 without an answer.
func (p *Process) Get(path string) (status int, body string) {
	response, err := client.Get(p.URL + path)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

// Status returns a function that gets the status of a page.
func (p *Process) Status(path string) func() int {
	return func() int {
		code, _ := p.Get(path)
		return code
	}
}

// HolderOf returns a function that reads who holds a lease.
func (p *Process) HolderOf(lease string) func() string {
	return func() string {
		lease := p.Server.Get(coordinationv1.SchemeGroupVersion.WithResource("leases"), fixture.Namespace, lease)
		if lease == nil {
			return ""
		}
		holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
		return holder
	}
}

// Watches returns a function that counts the watches of each resource from now on.
func Watches(server *sim.Server) func() map[string]int {
	var mu sync.Mutex
	all := map[string]int{}
	server.LatencyOf(func(r sim.Request) (before, after time.Duration) {
		if r.Verb == "watch" {
			mu.Lock()
			defer mu.Unlock()
			all[r.Resource]++
		}
		return 0, 0
	})
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(all)
	}
}
