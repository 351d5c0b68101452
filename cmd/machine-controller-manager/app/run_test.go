// SPDX-License-Identifier: Apache-2.0

//go:build !race

package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/internal/reachability"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/running"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/front"
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
	return len(r.Server.Objects(mcm.SchemeGroupVersion.WithResource("machines")))
}

func (r *binary) create(d *mcm.MachineDeployment) {
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
		for _, name := range []string{"mcm_machine_deployment_info_spec_replicas", "go_goroutines"} {
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

	It("takes its turn in the target cluster if there is no other", func() {
		server := sim.New(sim.Options{})
		r := start(server, "--target-kubeconfig="+running.Kubeconfig(server, "mcm"))
		Eventually(r.holder, eventually).ShouldNot(BeEmpty())
		r.create(fixture.MachineDeployment("pool", 2))
		Eventually(r.machines, eventually).Should(Equal(2))
		r.Stop()
		Eventually(r.Ended, 5*time.Second).Should(Receive(BeNil()))
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

var _ = Describe("Secure metrics", Serial, func() {
	It("are served apart from the health of the process, and not without a token", func() {
		server := sim.New(sim.Options{})
		kubeconfig := running.Kubeconfig(server, "mcm")
		address := running.FreeAddress()
		r := start(server, "--control-kubeconfig="+kubeconfig, "--target-kubeconfig=none", "--secure-metrics-address="+address)
		Eventually(r.Status("/healthz"), eventually).Should(Equal(http.StatusOK))
		Expect(r.Status("/metrics")()).To(Equal(http.StatusNotFound))
		stranger := http.Client{Timeout: client.Timeout, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		Eventually(func() (int, error) {
			response, err := stranger.Get("https://" + address + "/metrics")
			if err != nil {
				return 0, err
			}
			return response.StatusCode, response.Body.Close()
		}, eventually).Should(Equal(http.StatusUnauthorized))
		r.Stop()
		Eventually(r.Ended, eventually).Should(Receive(BeNil()))
	})

	It("are served beside the health of the process where nothing else is asked for, as the stock binary does", func() {
		server := sim.New(sim.Options{})
		r := start(server, "--control-kubeconfig="+running.Kubeconfig(server, "mcm"), "--target-kubeconfig=none")
		Eventually(r.Status("/metrics"), eventually).Should(Equal(http.StatusOK))
		r.Stop()
		Eventually(r.Ended, eventually).Should(Receive(BeNil()))
	})

	DescribeTable("refuse flags that make no sense",
		func(mention string, arguments ...string) {
			Expect(parsed(arguments...).Validate()).To(MatchError(ContainSubstring(mention)))
		},
		Entry("no port", "--secure-metrics-address", "--secure-metrics-address=127.0.0.1"),
		Entry("half a certificate", "belong together", "--secure-metrics-address=127.0.0.1:1", "--secure-metrics-key-file=a"),
		Entry("a certificate for nothing", "needs --secure-metrics-address", "--secure-metrics-cert-file=a", "--secure-metrics-key-file=a"),
	)
})

// endsWithin is what a process may take that is told to stop: a pod of a Gardener has five seconds.
const endsWithin = 3 * time.Second

// twoClusters are simulated clusters behind fronts, and the flags to connect to them.
func twoClusters() (control *sim.Server, fronts [2]*front.Front, flags []string) {
	control, target := sim.New(sim.Options{}), sim.New(sim.Options{})
	fronts = [2]*front.Front{running.InFront(control, "control"), running.InFront(target, "target")}
	return control, fronts, []string{"--control-kubeconfig=" + fronts[0].Kubeconfig(), "--target-kubeconfig=" + fronts[1].Kubeconfig()}
}

// leases and served are requests that are answered where others hang.
func leases(path string) bool { return strings.Contains(path, "/leases") }
func served(path string) bool { return path == "/apis/"+mcm.SchemeGroupVersion.String() }

func hang(fronts [2]*front.Front, manner front.Manner, spared func(string) bool) {
	for _, f := range fronts {
		f.Hang(manner, spared)
	}
}

func (r *binary) endsInTime() {
	GinkgoHelper()
	begun := time.Now()
	r.Stop()
	Eventually(r.Ended, time.Minute).Should(Receive())
	Expect(time.Since(begun)).To(BeNumerically("<", endsWithin))
}

var _ = Describe("While both API servers hang, the binary ends in time", Serial, func() {
	for _, manner := range []front.Manner{front.Silent, front.Halfway} {
		Describe("where each "+string(manner), func() {
			It("as a leader in the middle of its writes", func() {
				control, fronts, flags := twoClusters()
				r := start(control, append(flags, "--controllers=*")...)
				Eventually(r.Status("/readyz"), eventually).Should(Equal(200))
				r.create(fixture.MachineDeployment("pool", 50))
				Eventually(r.machines, eventually).ShouldNot(BeZero())
				hang(fronts, manner, nil)
				r.endsInTime()
			})

			It("as a leader that is answering cluster-autoscaler", func() {
				control, fronts, flags := twoClusters()
				address := running.FreeAddress()
				r := start(control, append(flags, "--controllers=*", "--autoscaler-listen-address="+address)...)
				r.create(fixture.MachineDeployment("pool", 1, func(d *mcm.MachineDeployment) {
					d.Annotations = map[string]string{api.BoundsAnnotation: "1:50"}
				}))
				client := called(address)
				Eventually(func() error {
					_, err := client.NodeGroupTargetSize(context.Background(), &pb.NodeGroupTargetSizeRequest{Id: "pool"})
					return err
				}, eventually).Should(Succeed())
				hang(fronts, manner, nil)
				answered := make(chan error, 1)
				go func() {
					_, err := client.NodeGroupIncreaseSize(context.Background(), &pb.NodeGroupIncreaseSizeRequest{Id: "pool", Delta: 2})
					answered <- err
				}()
				Consistently(answered, time.Second).ShouldNot(Receive())
				r.endsInTime()
				Eventually(answered, eventually).Should(Receive(HaveOccurred()), "what happened is unknown to the caller")
			})

			It("as a leader that has yet to fill its caches", func() {
				control, fronts, flags := twoClusters()
				hang(fronts, manner, leases)
				r := start(control, append(flags, "--controllers=*")...)
				Eventually(r.holder, eventually).ShouldNot(BeEmpty())
				Eventually(r.Status("/readyz"), eventually).Should(Equal(500), "it leads, and its caches are not filled")
				hang(fronts, manner, nil)
				r.endsInTime()
			})

			It("as a leader that lists and watches for the first time", func() {
				control, fronts, flags := twoClusters()
				hang(fronts, manner, served)
				r := start(control, append(flags, "--controllers=*", "--leader-elect=false")...)
				Consistently(r.Status("/readyz"), time.Second).ShouldNot(Equal(200))
				hang(fronts, manner, nil)
				r.endsInTime()
			})

			It("as a standby", func() {
				control, fronts, flags := twoClusters()
				first := start(control, flags...)
				Eventually(first.holder, eventually).ShouldNot(BeEmpty())
				second := start(control, append(flags, "--leader-elect-retry-period=200ms")...)
				Eventually(second.Status("/readyz"), eventually).Should(Equal(200))
				hang(fronts, manner, nil)
				Consistently(second.Ended, time.Second).ShouldNot(Receive())
				second.endsInTime()
				first.endsInTime()
			})
		})
	}
})
