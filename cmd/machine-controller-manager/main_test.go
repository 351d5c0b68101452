// SPDX-License-Identifier: Apache-2.0

//go:build !race

package main

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	balancer "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/front"
)

// asProcess has the test's binary run main with its arguments: a process of its own, with real signals.
const asProcess = "EVENKEEL_TEST_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestMachineControllerManager(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "machine-controller-manager's process")
}

// endsWithin is what a process may take that gets SIGTERM: a pod of a Gardener has five seconds.
const endsWithin = 3 * time.Second

// served are the kinds that any of the processes reads.
var served = slices.Concat(sim.Core, sim.Machine, sim.Workloads, []sim.Resource{
	{Group: balancer.GroupName, Version: "v1alpha1", Name: "balancers", Kind: "Balancer", Namespaced: true, Status: true},
	{Group: autoscaling.GroupName, Version: "v1alpha1", Name: "federatedhorizontalpodautoscalers", Kind: "FederatedHorizontalPodAutoscaler", Namespaced: true, Status: true},
})

// process is one under test, with the API servers that it connects to.
type process struct {
	*gexec.Session
	url     string
	control *front.Front
	target  *front.Front
}

func serveFor(user string) *front.Front {
	GinkgoHelper()
	server := sim.New(sim.Options{Resources: served})
	DeferCleanup(server.Close)
	f, err := front.Serve(server, user, GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(f.Close)
	return f
}

// startProcess starts a process whose API servers behave in a manner, but for the paths that are spared.
func startProcess(manner front.Manner, spared func(string) bool, arguments ...string) *process {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	port := listener.Addr().(*net.TCPAddr).Port
	Expect(listener.Close()).To(Succeed())
	p := &process{url: "http://127.0.0.1:" + strconv.Itoa(port), control: serveFor("control"), target: serveFor("target")}
	p.hang(manner, spared)
	command := exec.Command(os.Args[0], slices.Concat([]string{
		"--port=" + strconv.Itoa(port), "--namespace=default", "--control-kubeconfig=" + p.control.Kubeconfig(), "--target-kubeconfig=" + p.target.Kubeconfig(),
	}, arguments)...)
	command.Env = append(os.Environ(), asProcess+"=1")
	p.Session, err = gexec.Start(command, nil, nil)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { p.Kill().Wait(time.Minute) })
	return p
}

func (p *process) hang(manner front.Manner, spared func(string) bool) {
	p.control.Hang(manner, spared)
	p.target.Hang(manner, spared)
}

func (p *process) status(path string) func() int {
	return func() int {
		response, err := http.Get(p.url + path)
		if err != nil {
			return 0
		}
		defer response.Body.Close()
		return response.StatusCode
	}
}

// endsInTime sends SIGTERM.
func (p *process) endsInTime() {
	GinkgoHelper()
	Expect(p.ExitCode()).To(Equal(-1), "it runs: %s", p.Err.Contents())
	begun := time.Now()
	p.Signal(syscall.SIGTERM)
	Eventually(p.Exited, 2*time.Minute).Should(BeClosed())
	Expect(time.Since(begun)).To(BeNumerically("<", endsWithin))
}

// discovery and leases are answered where lists and watches are not.
func discovery(path string) bool {
	return strings.Contains(path, "/leases") || strings.Count(strings.TrimPrefix(path, "/apis"), "/") <= 2
}

var _ = Describe("SIGTERM ends the process in time", Serial, func() {
	for _, d := range []struct {
		name  string
		flags []string
	}{
		{"manager", []string{"--controllers=mcm,machinetaint,nodegroup,release,balance"}},
		{"balancer", []string{"--controllers=balancer", "--target-kubeconfig=none"}},
		{"federation", []string{"--controllers=federatedhpa", "--target-kubeconfig=none"}},
	} {
		Describe("of the "+d.name, func() {
			It("while both API servers take requests and answer none, from the beginning", func() {
				p := startProcess(front.Silent, nil, d.flags...)
				Eventually(p.status("/healthz"), time.Minute).ShouldNot(BeZero())
				p.endsInTime()
			})

			It("while both API servers stop answering, once it is at work", func() {
				p := startProcess(front.Works, nil, d.flags...)
				Eventually(p.status("/readyz"), time.Minute).Should(Equal(http.StatusOK), "%s", p.Err.Contents())
				p.hang(front.Silent, nil)
				p.endsInTime()
			})

			It("while both API servers have too many requests to fill its caches", func() {
				p := startProcess(front.Overloaded, discovery, d.flags...)
				Eventually(p.status("/healthz"), time.Minute).ShouldNot(BeZero())
				asked := p.control.Refused
				Eventually(asked, time.Minute).Should(BeNumerically(">", 3), "it asks for lists")
				Consistently(p.Exited, 5*time.Second).ShouldNot(BeClosed()) // waits grow from try to try
				p.endsInTime()
			})
		})
	}
})
