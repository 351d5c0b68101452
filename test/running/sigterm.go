// SPDX-License-Identifier: Apache-2.0

package running

import (
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/front"
)

// asProcess has a test's binary run main with its arguments: a process of its own, with real signals.
const asProcess = "EVENKEEL_TEST_PROCESS"

// IsProcess reports whether the test's binary is to run main instead of its specs. TestMain asks it.
func IsProcess() bool { return os.Getenv(asProcess) != "" }

// Daemon is a way to start the main function of a test's binary.
type Daemon struct {
	Name string
	// Flags of the process, given the kubeconfigs of two API servers that serve these kinds.
	Flags  func(control, target string) []string
	Served []sim.Resource
}

// EndsInTime are the specs of a process that gets SIGTERM while its API servers do not answer.
func (d Daemon) EndsInTime() bool {
	return ginkgo.Describe("SIGTERM ends the process in time of the "+d.Name, ginkgo.Serial, func() {
		ginkgo.It("while all API servers take requests and answer none, from the beginning", func() {
			p := d.startHung(front.Silent, nil)
			gomega.Eventually(p.status("/healthz"), time.Minute).ShouldNot(gomega.BeZero())
			p.endsInTime()
		})

		ginkgo.It("while all API servers stop answering, once it is at work", func() {
			p := d.startHung(front.Works, nil)
			gomega.Eventually(p.status("/readyz"), time.Minute).Should(gomega.Equal(http.StatusOK), "%s", p.Err.Contents())
			p.hang(front.Silent, nil)
			p.endsInTime()
		})

		ginkgo.It("while all API servers have too many requests to fill its caches", func() {
			p := d.startHung(front.Overloaded, discovery)
			gomega.Eventually(p.status("/healthz"), time.Minute).ShouldNot(gomega.BeZero())
			asked := p.control.Refused
			gomega.Eventually(asked, time.Minute).Should(gomega.BeNumerically(">", 3), "it asks for lists")
			gomega.Consistently(p.Exited, 5*time.Second).ShouldNot(gomega.BeClosed()) // waits grow from try to try
			p.endsInTime()
		})
	})
}

// endsWithin is what a process may take that gets SIGTERM: a pod of a Gardener has five seconds.
const endsWithin = 3 * time.Second

// hung is a process of its own, with API servers that do not answer.
type hung struct {
	*gexec.Session
	url     string
	control *front.Front
	target  *front.Front
}

func serveFor(user string, served []sim.Resource) *front.Front {
	ginkgo.GinkgoHelper()
	server := sim.New(sim.Options{Resources: served})
	ginkgo.DeferCleanup(server.Close)
	f, err := front.Serve(server, user, ginkgo.GinkgoT().TempDir())
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.DeferCleanup(f.Close)
	return f
}

// startHung starts a process whose API servers behave in a manner, but for the paths that are spared.
func (d Daemon) startHung(manner front.Manner, spared func(string) bool) *hung {
	ginkgo.GinkgoHelper()
	port := FreePort()
	p := &hung{url: "http://127.0.0.1:" + strconv.Itoa(port), control: serveFor("control", d.Served), target: serveFor("target", d.Served)}
	p.hang(manner, spared)
	command := exec.Command(os.Args[0], append(d.Flags(p.control.Kubeconfig(), p.target.Kubeconfig()), "--namespace=default", "--port="+strconv.Itoa(port))...)
	command.Env = append(os.Environ(), asProcess+"=1")
	var err error
	p.Session, err = gexec.Start(command, nil, nil)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.DeferCleanup(func() { p.Kill().Wait(time.Minute) })
	return p
}

func (p *hung) hang(manner front.Manner, spared func(string) bool) {
	p.control.Hang(manner, spared)
	p.target.Hang(manner, spared)
}

func (p *hung) status(path string) func() int {
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
func (p *hung) endsInTime() {
	ginkgo.GinkgoHelper()
	gomega.Expect(p.ExitCode()).To(gomega.Equal(-1), "it runs: %s", p.Err.Contents())
	begun := time.Now()
	p.Signal(syscall.SIGTERM)
	gomega.Eventually(p.Exited, 2*time.Minute).Should(gomega.BeClosed())
	gomega.Expect(time.Since(begun)).To(gomega.BeNumerically("<", endsWithin))
}

// discovery and leases are answered where lists and watches are not.
func discovery(path string) bool {
	return strings.Contains(path, "/leases") || strings.Count(strings.TrimPrefix(path, "/apis"), "/") <= 2
}
