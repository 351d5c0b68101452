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

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/front"
)

// onSocket makes a simulated API server answer on a socket, and returns a kubeconfig for it.
func onSocket(server *sim.Server, user string) string { return inFront(server, user).Kubeconfig() }

func inFront(server *sim.Server, user string) *front.Front {
	f, err := front.Serve(server, user, GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		server.Close()
		f.Close()
	})
	return f
}

// freePort returns a port that is not in use.
func freePort() int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// running is the binary's Run under way.
type running struct {
	server *sim.Server
	url    string
	stop   context.CancelFunc
	ended  chan error
}

func start(server *sim.Server, arguments ...string) *running {
	port := strconv.Itoa(freePort())
	o := parsed(append([]string{"--port=" + port, "--kube-api-qps=1000", "--kube-api-burst=1000"}, arguments...)...)
	Expect(o.Validate()).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{server: server, url: "http://127.0.0.1:" + port, stop: cancel, ended: make(chan error, 1)}
	DeferCleanup(cancel)
	go func() { r.ended <- Run(ctx, o) }()
	return r
}

func (r *running) get(path string) (int, string) {
	response, err := client.Get(r.url + path)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(body)
}

func (r *running) status(path string) func() int {
	return func() int {
		code, _ := r.get(path)
		return code
	}
}

func (r *running) holder() string { return r.holderOf(name)() }

func (r *running) holderOf(lease string) func() string {
	return func() string {
		lease := r.server.Get(coordinationv1.SchemeGroupVersion.WithResource("leases"), fixture.Namespace, lease)
		if lease == nil {
			return ""
		}
		holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
		return holder
	}
}

func (r *running) machines() int {
	return len(r.server.Objects(machinev1alpha1.SchemeGroupVersion.WithResource("machines")))
}

func (r *running) create(d *machinev1alpha1.MachineDeployment) {
	_, err := versioned.NewForConfigOrDie(r.server.ConfigFor("user")).MachineV1alpha1().MachineDeployments(fixture.Namespace).Create(context.Background(), d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("The binary", Serial, func() {
	It("takes the stock lease, works, tells its health, and stops in time with the lease released", func() {
		server := sim.New(sim.Options{})
		kubeconfig := onSocket(server, "mcm")
		r := start(server, "--control-kubeconfig="+kubeconfig, "--target-kubeconfig="+kubeconfig)
		Eventually(r.status("/readyz"), eventually).Should(Equal(http.StatusOK))
		Expect(r.status("/healthz")()).To(Equal(http.StatusOK))
		Eventually(r.holder, eventually).ShouldNot(BeEmpty())

		r.create(fixture.MachineDeployment("pool", 5))
		Eventually(r.machines, eventually).Should(Equal(5))
		_, metrics := r.get("/metrics")
		for _, name := range []string{"evenkeel_lens_write_wait_seconds", "mcm_machine_deployment_info_spec_replicas", "go_goroutines"} {
			Expect(strings.Contains(metrics, name)).To(BeTrue(), name)
		}

		begun := time.Now()
		r.stop()
		Eventually(r.ended, 5*time.Second).Should(Receive(BeNil()))
		Expect(time.Since(begun)).To(BeNumerically("<", 5*time.Second))
		Expect(r.holder()).To(BeEmpty())

		r.create(fixture.MachineDeployment("late", 5))
		since := len(server.Writes())
		Consistently(func() []sim.Write { return server.Writes()[since:] }, time.Second).Should(BeEmpty())
	})

	It("waits for its turn, ready and without metrics of ours, and takes it when it comes", func() {
		server := sim.New(sim.Options{})
		kubeconfig := onSocket(server, "mcm")
		first := start(server, "--control-kubeconfig="+kubeconfig, "--target-kubeconfig=none")
		Eventually(first.holder, eventually).ShouldNot(BeEmpty())
		holder := first.holder()
		second := start(server, "--control-kubeconfig="+kubeconfig, "--target-kubeconfig=none", "--leader-elect-retry-period=200ms")
		Eventually(second.status("/readyz"), eventually).Should(Equal(http.StatusOK))
		code, metrics := second.get("/metrics")
		Expect(code).To(Equal(http.StatusOK))
		Expect(metrics).NotTo(ContainSubstring("evenkeel_"), "an alert would take these for what the leader says")
		Expect(first.holder()).To(Equal(holder))
		first.stop()
		Eventually(first.ended, 5*time.Second).Should(Receive(BeNil()))
		Eventually(second.holder, eventually).ShouldNot(BeElementOf("", holder))
		second.create(fixture.MachineDeployment("pool", 2))
		Eventually(second.machines, eventually).Should(Equal(2))
		second.stop()
		Eventually(second.ended, 5*time.Second).Should(Receive(BeNil()))
	})

	It("ends by itself when a backup of the storage was restored, says so, and works when it is started again", func() {
		server := sim.New(sim.Options{})
		flags := []string{"--control-kubeconfig=" + onSocket(server, "mcm"), "--target-kubeconfig=none"}
		first := start(server, flags...)
		first.create(fixture.MachineDeployment("kept", 2))
		Eventually(first.machines, eventually).Should(Equal(2))
		backup := server.Snapshot()
		first.create(fixture.MachineDeployment("lost", 5))
		Eventually(first.machines, eventually).Should(Equal(7))
		others := kubernetes.NewForConfigOrDie(server.ConfigFor("others")).CoreV1().ConfigMaps("default")
		for i := range 500 { // as much as a cluster writes between two backups
			_, err := others.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i)}}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		Consistently(first.ended, reachability.ProbeInterval+time.Second).ShouldNot(Receive())

		server.Restore(backup)
		Eventually(first.ended, eventually).Should(Receive(MatchError(reachability.ErrRestored)))
		Expect(first.holder()).To(BeEmpty(), "the lease is free for who starts next")
		Expect(server.Objects(corev1.SchemeGroupVersion.WithResource("events"))).To(ContainElement(
			WithTransform(func(e *unstructured.Unstructured) any { return e.Object["reason"] }, Equal("StorageRestored"))))

		second := start(server, flags...)
		second.create(fixture.MachineDeployment("new", 3))
		Eventually(second.machines, eventually).Should(Equal(5))
		second.stop()
		Eventually(second.ended, 5*time.Second).Should(Receive(BeNil()))
	})

	It("is not ready, but patient, before the machine API is served", func() {
		server := sim.New(sim.Options{Resources: sim.Core})
		kubeconfig := onSocket(server, "mcm")
		r := start(server, "--control-kubeconfig="+kubeconfig, "--target-kubeconfig=none", "--leader-elect=false")
		Eventually(r.status("/healthz"), eventually).Should(Equal(http.StatusOK))
		Consistently(r.status("/readyz"), time.Second).Should(Equal(http.StatusInternalServerError))
		r.stop()
		Eventually(r.ended, 5*time.Second).Should(Receive(BeNil()))
	})

	It("is ready without machine-controller-manager's own controllers, though there may be nothing to do for the others", func() {
		server := sim.New(sim.Options{})
		kubeconfig := onSocket(server, "mcm")
		r := start(server, "--control-kubeconfig="+kubeconfig, "--target-kubeconfig="+kubeconfig, "--controllers=nodegroup,release,balance,reserves")
		Eventually(r.status("/readyz"), eventually).Should(Equal(http.StatusOK))
		Eventually(r.holderOf(machinesLease), eventually).ShouldNot(BeEmpty())
		Consistently(r.status("/readyz"), time.Second).Should(Equal(http.StatusOK))
		r.stop()
		Eventually(r.ended, 5*time.Second).Should(Receive(BeNil()))
	})

	It("says what is wrong with a kubeconfig", func() {
		err := Run(context.Background(), parsed("--target-kubeconfig=/nowhere"))
		Expect(err).To(MatchError(ContainSubstring("target cluster")))
		Expect(strings.ToLower(err.Error())).To(ContainSubstring("/nowhere"))
	})
})
