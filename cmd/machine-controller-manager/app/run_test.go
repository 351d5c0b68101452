// SPDX-License-Identifier: Apache-2.0

//go:build !race

package app

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/running"
	"github.com/evenkeel/evenkeel/test/sim"
)

// binary is Run under way.
type binary struct{ *running.Process }

func start(server *sim.Server, arguments ...string) *binary {
	port := running.FreePort()
	o := parsed(append([]string{fmt.Sprint("--port=", port), "--kube-api-qps=1000", "--kube-api-burst=1000"}, arguments...)...)
	Expect(o.Validate()).To(Succeed())
	return &binary{running.Start(server, port, func(ctx context.Context) error { return Run(ctx, o) })}
}

func (r *binary) holder() string { return r.HolderOf(name)() }

func (r *binary) machines() int {
	return len(r.Server.Objects(machinev1alpha1.SchemeGroupVersion.WithResource("machines")))
}

func (r *binary) create(d *machinev1alpha1.MachineDeployment) {
	_, err := versioned.NewForConfigOrDie(r.Server.ConfigFor("user")).MachineV1alpha1().MachineDeployments(fixture.Namespace).Create(context.Background(), d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("The binary", Serial, func() {
	It("takes the stock lease, works, tells its health, and stops in time with the lease released", func() {
		server := sim.New(sim.Options{})
		kubeconfig := running.Kubeconfig(server, "mcm")
		r := start(server, "--control-kubeconfig="+kubeconfig, "--target-kubeconfig="+kubeconfig)
		Eventually(r.Status("/readyz"), eventually).Should(Equal(http.StatusOK))
		Expect(r.Status("/healthz")()).To(Equal(http.StatusOK))
		Eventually(r.holder, eventually).ShouldNot(BeEmpty())

		r.create(fixture.MachineDeployment("pool", 5))
		Eventually(r.machines, eventually).Should(Equal(5))
		_, metrics := r.Get("/metrics")
		for _, name := range []string{"evenkeel_lens_write_wait_seconds", "mcm_machine_deployment_info_spec_replicas", "go_goroutines"} {
			Expect(strings.Contains(metrics, name)).To(BeTrue(), name)
		}

		begun := time.Now()
		r.Stop()
		Eventually(r.Ended, 5*time.Second).Should(Receive(BeNil()))
		Expect(time.Since(begun)).To(BeNumerically("<", 5*time.Second))
		Expect(r.holder()).To(BeEmpty())

		r.create(fixture.MachineDeployment("late", 5))
		since := len(server.Writes())
		Consistently(func() []sim.Write { return server.Writes()[since:] }, time.Second).Should(BeEmpty())
	})

	It("waits for its turn, ready and without metrics of ours, and takes it when it comes", func() {
		server := sim.New(sim.Options{})
		kubeconfig := running.Kubeconfig(server, "mcm")
		first := start(server, "--control-kubeconfig="+kubeconfig, "--target-kubeconfig=none")
		Eventually(first.holder, eventually).ShouldNot(BeEmpty())
		holder := first.holder()
		second := start(server, "--control-kubeconfig="+kubeconfig, "--target-kubeconfig=none", "--leader-elect-retry-period=200ms")
		Eventually(second.Status("/readyz"), eventually).Should(Equal(http.StatusOK))
		code, metrics := second.Get("/metrics")
		Expect(code).To(Equal(http.StatusOK))
		Expect(metrics).NotTo(ContainSubstring("evenkeel_"), "an alert would take these for what the leader says")
		Expect(first.holder()).To(Equal(holder))
		first.Stop()
		Eventually(first.Ended, 5*time.Second).Should(Receive(BeNil()))
		Eventually(second.holder, eventually).ShouldNot(BeElementOf("", holder))
		second.create(fixture.MachineDeployment("pool", 2))
		Eventually(second.machines, eventually).Should(Equal(2))
		second.Stop()
		Eventually(second.Ended, 5*time.Second).Should(Receive(BeNil()))
	})

	It("ends by itself when a backup of the storage was restored, says so, and works when it is started again", func() {
		server := sim.New(sim.Options{})
		flags := []string{"--control-kubeconfig=" + running.Kubeconfig(server, "mcm"), "--target-kubeconfig=none"}
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
		Consistently(first.Ended, reachability.ProbeInterval+time.Second).ShouldNot(Receive())

		server.Restore(backup)
		Eventually(first.Ended, eventually).Should(Receive(MatchError(reachability.ErrRestored)))
		Expect(first.holder()).To(BeEmpty(), "the lease is free for who starts next")
		Expect(server.Objects(corev1.SchemeGroupVersion.WithResource("events"))).To(ContainElement(
			WithTransform(func(e *unstructured.Unstructured) any { return e.Object["reason"] }, Equal("StorageRestored"))))

		second := start(server, flags...)
		second.create(fixture.MachineDeployment("new", 3))
		Eventually(second.machines, eventually).Should(Equal(5))
		second.Stop()
		Eventually(second.Ended, 5*time.Second).Should(Receive(BeNil()))
	})

	It("is not ready, but patient, before the machine API is served", func() {
		server := sim.New(sim.Options{Resources: sim.Core})
		kubeconfig := running.Kubeconfig(server, "mcm")
		r := start(server, "--control-kubeconfig="+kubeconfig, "--target-kubeconfig=none", "--leader-elect=false")
		Eventually(r.Status("/healthz"), eventually).Should(Equal(http.StatusOK))
		Consistently(r.Status("/readyz"), time.Second).Should(Equal(http.StatusInternalServerError))
		r.Stop()
		Eventually(r.Ended, 5*time.Second).Should(Receive(BeNil()))
	})

	It("is ready without machine-controller-manager's own controllers, though there may be nothing to do for the others", func() {
		server := sim.New(sim.Options{})
		kubeconfig := running.Kubeconfig(server, "mcm")
		r := start(server, "--control-kubeconfig="+kubeconfig, "--target-kubeconfig="+kubeconfig, "--controllers=nodegroup,release,balance,reserves")
		Eventually(r.Status("/readyz"), eventually).Should(Equal(http.StatusOK))
		Eventually(r.HolderOf(machinesLease), eventually).ShouldNot(BeEmpty())
		Consistently(r.Status("/readyz"), time.Second).Should(Equal(http.StatusOK))
		r.Stop()
		Eventually(r.Ended, 5*time.Second).Should(Receive(BeNil()))
	})

	It("says what is wrong with a kubeconfig", func() {
		err := Run(context.Background(), parsed("--target-kubeconfig=/nowhere"))
		Expect(err).To(MatchError(ContainSubstring("target cluster")))
		Expect(strings.ToLower(err.Error())).To(ContainSubstring("/nowhere"))
	})
})
