// SPDX-License-Identifier: Apache-2.0

//go:build !race

package app

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/front"
)

const (
	// endsWithin is what a process may take that is told to stop: a pod of a Gardener has five seconds.
	endsWithin = 3 * time.Second
	starts     = time.Minute
)

// hung is a run of the binary beside two clusters that can hang.
type hung struct {
	control *sim.Server
	fronts  [2]*front.Front
}

func newHung() hung {
	GinkgoHelper()
	h := hung{control: sim.New(sim.Options{})}
	for i, server := range []*sim.Server{h.control, sim.New(sim.Options{})} {
		f, err := front.Serve(server, strconv.Itoa(i), GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		h.fronts[i] = f
		DeferCleanup(func() {
			server.Close()
			f.Close()
		})
	}
	return h
}

func (h hung) hang(manner front.Manner, spared func(string) bool) {
	for _, f := range h.fronts {
		f.Hang(manner, spared)
	}
}

// endpoint gets what a run serves on a path.
type endpoint func(path string) (code int, body string)

func (e endpoint) ready() int {
	code, _ := e("/readyz")
	return code
}

// start begins a run: get asks its endpoint, and ends stops it and measures how long that takes.
func (h hung) start(arguments ...string) (get endpoint, ends func()) {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	Expect(listener.Close()).To(Succeed())
	options := NewOptions()
	Expect(options.Flags().Parse(append([]string{"--port=" + port, "--namespace=default",
		"--control-kubeconfig=" + h.fronts[0].Kubeconfig(), "--target-kubeconfig=" + h.fronts[1].Kubeconfig()}, arguments...))).To(Succeed())
	ctx, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, options) }()
	get = func(path string) (int, string) {
		response, err := http.Get("http://127.0.0.1:" + port + path)
		if err != nil {
			return 0, ""
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(body)
	}
	return get, func() {
		GinkgoHelper()
		Consistently(ended, time.Second).ShouldNot(Receive())
		begun := time.Now()
		stop()
		Eventually(ended, time.Minute).Should(Receive())
		Expect(time.Since(begun)).To(BeNumerically("<", endsWithin))
	}
}

func (h hung) held() bool {
	lease := h.control.Get(coordinationv1.SchemeGroupVersion.WithResource("leases"), "default", name)
	return lease != nil
}

var _ = It("The binary shows the metrics of the machine controller, and says when it begins to lead and when it ends", Serial, func() {
	h := newHung()
	leads, ends := h.start()
	Eventually(leads.ready, starts).Should(Equal(http.StatusOK))
	Eventually(func() string { _, body := leads("/metrics"); return body }, starts).Should(ContainSubstring("\nmcm_machine_items_total "))
	ends()
	events := func() (messages []string) {
		for _, e := range h.control.Objects(corev1.SchemeGroupVersion.WithResource("events")) {
			message, _, _ := unstructured.NestedString(e.Object, "message")
			messages = append(messages, message)
		}
		return messages
	}
	Eventually(events, starts).Should(ContainElements(HaveSuffix("became leader"), HaveSuffix("stopped leading")))
})

var _ = Describe("While both API servers hang, the binary ends in time", Serial, func() {
	for _, manner := range []front.Manner{front.Silent, front.Halfway} {
		Describe("where each "+string(manner), func() {
			It("as a leader in the middle of its work, and as its standby", func(ctx SpecContext) {
				h := newHung()
				leads, ends := h.start()
				Eventually(h.held, starts).Should(BeTrue())
				Eventually(leads.ready, starts).Should(Equal(http.StatusOK))
				waits, standbyEnds := h.start("--leader-elect-retry-period=200ms")
				Eventually(waits.ready, starts).Should(Equal(http.StatusOK))
				machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: "default"}}
				_, err := versioned.NewForConfigOrDie(h.control.ConfigFor("user")).MachineV1alpha1().Machines("default").Create(ctx, machine, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				h.hang(manner, nil)
				standbyEnds()
				ends()
			})

			It("as a leader that has yet to fill its caches", func() {
				h := newHung()
				h.hang(manner, func(path string) bool { return strings.Contains(path, "/leases") })
				_, ends := h.start()
				Eventually(h.held, starts).Should(BeTrue())
				h.hang(manner, nil)
				ends()
			})

			It("as a leader whose target cluster alone hangs from the beginning", func() {
				h := newHung()
				h.fronts[1].Hang(manner, nil)
				_, ends := h.start("--leader-elect=false")
				ends()
			})
		})
	}
})
