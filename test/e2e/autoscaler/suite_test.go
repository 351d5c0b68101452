// SPDX-License-Identifier: Apache-2.0

// Package autoscaler runs our machine-controller-manager with its server of node groups, virtual
// machines, the real scheduler, and an unmodified cluster-autoscaler. CLUSTER_AUTOSCALER names its
// binary; without it, the suite fails, unless only specs were chosen that speak the protocol
// themselves.
package autoscaler

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	bufferclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/capacitybuffer/v1beta1"
	machineclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

const (
	namespace = "default"
	soon      = 2 * time.Minute

	manager    = "machine-controller-manager"
	autoscaler = "cluster-autoscaler"

	// needsBinary is the label of specs with an unmodified cluster-autoscaler, records of those that write testdata.
	needsBinary, records = "autoscaler", "record"
)

// binary is cluster-autoscaler, as its makers release it, built for external gRPC providers.
var binary = os.Getenv("CLUSTER_AUTOSCALER")

var (
	cluster *localcluster.Cluster
	kube    kubernetes.Interface
	ours    machineclient.MachineV1alpha1Interface
	buffers bufferclient.CapacityBufferInterface
	// allBuffers are those of all namespaces.
	allBuffers bufferclient.CapacityBufferV1beta1Interface
	groups     pb.CloudProviderClient
	address    string
)

func TestAutoscaler(t *testing.T) {
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	SetDefaultEventuallyTimeout(soon)
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultConsistentlyPollingInterval(100 * time.Millisecond)
	RegisterFailHandler(Fail)
	RunSpecs(t, "cluster-autoscaler")
}

// Each process has a cluster of its own, since cluster-autoscaler looks at all there is in one. The first builds what the others run.
var _ = SynchronizedBeforeSuite(startCluster, func(ctx context.Context) {
	if cluster == nil {
		startCluster(ctx)
	}
	connect()
})

// missing returns why the specs of a filter cannot run, empty if they can.
func missing(binary, filter string) string {
	if !Label(needsBinary).MatchesLabelFilter(filter) && !Label(needsBinary, records).MatchesLabelFilter(filter) {
		return ""
	}
	const remedy = "Set CLUSTER_AUTOSCALER to the path of an unmodified cluster-autoscaler that was built with -tags=externalgrpc. " +
		"make e2e-nodegroup runs the specs that need none."
	if binary == "" {
		return "no cluster-autoscaler was given. " + remedy
	}
	if _, err := exec.LookPath(binary); err != nil {
		return fmt.Sprintf("CLUSTER_AUTOSCALER: %v. %s", err, remedy)
	}
	return ""
}

func startCluster(ctx context.Context) {
	if problem := missing(binary, GinkgoLabelFilter()); problem != "" {
		Fail(problem)
	}
	name := fmt.Sprintf("autoscaler-%d", GinkgoParallelProcess())
	var err error
	cluster, err = localcluster.Start(ctx, localcluster.Options{Name: name, Out: GinkgoWriter, UnsafeNoFsync: true, Fresh: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		if os.Getenv("EVENKEEL_E2E_KEEP") != "" {
			Expect(cluster.Stop()).To(Succeed())
			return
		}
		Expect(cluster.Reset()).To(Succeed())
	})
	Expect(cluster.Apply(ctx, "kubernetes/crds", "kubernetes/optional-crds", "kubernetes/policies")).To(Succeed())
	port, err := cluster.Port("node-groups")
	Expect(err).NotTo(HaveOccurred())
	address = "127.0.0.1:" + strconv.Itoa(port)
	rates := []string{"--kube-api-qps=150", "--kube-api-burst=200", "--v=3"}
	for _, program := range []localcluster.Program{
		{Name: "machine-controller", Flags: append(rates, "--resource-exhausted-retry=5s", "--machine-safety-orphan-vms-period=10s")},
		{Name: manager, Flags: append(rates, "--concurrent-syncs=30", "--autoscaler-listen-address="+address)},
	} {
		_, err := cluster.RunProgram(ctx, program)
		Expect(err).NotTo(HaveOccurred())
	}
}

func connect() {
	config := rest.CopyConfig(cluster.Config())
	config.QPS, config.Burst = 100, 200
	clients := versioned.NewForConfigOrDie(config)
	kube, ours, allBuffers = kubernetes.NewForConfigOrDie(config), clients.MachineV1alpha1(), clients.CapacityBufferV1beta1()
	buffers = allBuffers.CapacityBuffers(namespace)
	connection, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(connection.Close)
	groups = pb.NewCloudProviderClient(connection)
}

// autoscale runs cluster-autoscaler until the spec ends, with the flags that users are told to set, hurried by others, and with those of the spec.
func autoscale(flags ...string) *localcluster.Process {
	GinkgoHelper()
	By("cluster-autoscaler begins")
	config := filepath.Join(GinkgoT().TempDir(), "cloud-config.yaml")
	Expect(os.WriteFile(config, fmt.Appendf(nil, "address: %q\ngrpc_timeout: 20s\n", address), 0o600)).To(Succeed())
	port, err := cluster.Port(autoscaler)
	Expect(err).NotTo(HaveOccurred())
	process, err := cluster.Run(autoscaler, binary, slices.Concat(advised(), []string{
		"--cloud-config=" + config, "--kubeconfig=" + cluster.Kubeconfig(),
		"--leader-elect=false", "--address=127.0.0.1:" + strconv.Itoa(port), "--v=4", "--scan-interval=1s",
		"--scale-down-unneeded-time=5s", "--scale-down-delay-after-add=5s", "--scale-down-delay-after-failure=5s",
		"--unremovable-node-recheck-timeout=5s", "--node-delete-delay-after-taint=1s",
	}, flags)...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(process.Stop()).To(Succeed()) })
	return process
}

// advised are the flags that a user is told to set, as the example has them.
func advised() []string {
	GinkgoHelper()
	text, err := os.ReadFile("../../../examples/autoscaler/cluster-autoscaler.yaml")
	Expect(err).NotTo(HaveOccurred())
	var flags []string
	for _, found := range regexp.MustCompile(`(?m)^ +- (--\S+)$`).FindAllStringSubmatch(string(text), -1) {
		if !strings.HasPrefix(found[1], "--cloud-config=") {
			flags = append(flags, found[1])
		}
	}
	Expect(flags).To(ContainElement("--cloud-provider=externalgrpc"))
	return flags
}

// fetch is what a URL answers.
func fetch(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}
