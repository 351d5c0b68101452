// SPDX-License-Identifier: Apache-2.0

// Package e2e checks what users see on a real control plane: etcd, API server, controller-manager,
// scheduler, kwok, the machine controller with virtual machines, and machine-controller-manager.
// That is ours, or the stock one if EVENKEEL_E2E_MCM=stock: the end states are the same.
//
// Specs run in several processes on one cluster. Each has a pool, a class, a zone and faults of its
// own. Specs that kill processes are Serial, and run on the first process, which started them.
package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

const (
	namespace = "default"
	// interval between looks at the cluster.
	interval = 250 * time.Millisecond
	// soon is for what takes MCM some hops of five seconds; a deletion takes five of them.
	soon = 2 * time.Minute
	// atMost limits everything else on a busy machine, so that a failing spec ends with its own message.
	atMost = 5 * time.Minute

	machineController = "machine-controller"
	mcm               = "machine-controller-manager"
	stockMCM          = "github.com/gardener/machine-controller-manager/cmd/machine-controller-manager"
)

var (
	// cluster is nil but in the first process.
	cluster  *localcluster.Cluster
	kube     kubernetes.Interface
	machines versioned.Interface
	apis     dynamic.Interface
	// control is for what lies beside the machines: Secrets, ConfigMaps, events. It is kube where there is one cluster.
	control kubernetes.Interface
	// config, kubeconfigPath and kubectlPath are for clients of other kinds.
	config         *rest.Config
	kubeconfigPath string
	kubectlPath    string
)

func TestEndToEnd(t *testing.T) {
	SetDefaultEventuallyPollingInterval(interval)
	SetDefaultEventuallyTimeout(atMost)
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultConsistentlyPollingInterval(interval)
	RegisterFailHandler(Fail)
	RunSpecs(t, "End to end")
}

var _ = SynchronizedBeforeSuite(startCluster, connect)

func startCluster(ctx context.Context) []byte {
	var err error
	cluster, err = localcluster.Start(ctx, localcluster.Options{Name: "e2e", Out: GinkgoWriter, UnsafeNoFsync: true, Fresh: true, Audit: os.Getenv(auditEnv) != ""})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		if folder := os.Getenv(auditEnv); folder != "" {
			Expect(cluster.KeepAudit(folder)).To(Succeed())
		}
		if CurrentSpecReport().Failed() || os.Getenv("EVENKEEL_E2E_KEEP") != "" {
			fmt.Fprintln(GinkgoWriter, "logs are in", cluster.Dir())
			Expect(cluster.Stop()).To(Succeed())
			return
		}
		Expect(cluster.Reset()).To(Succeed())
	})
	Expect(cluster.Apply(ctx, "kubernetes/crds", "kubernetes/optional-crds", "kubernetes/policies")).To(Succeed())
	Expect(cluster.Apply(ctx, allAccess...)).To(Succeed())
	if os.Getenv(auditEnv) != "" {
		// Informers as they are with API servers that cannot send what is there when a watch begins: they list.
		GinkgoT().Setenv("KUBE_FEATURE_WatchListClient", "false")
	}
	for _, program := range programs(ctx) {
		_, err := cluster.RunProgram(ctx, program)
		Expect(err).NotTo(HaveOccurred())
	}
	return []byte(cluster.Kubeconfig() + "\n" + cluster.Kubectl())
}

// programs are what is under test, each as the account that the chart gives it, with timeouts fit for a test and Gardener's
// request rates. The stock binary and the machine controller are no part of the chart, and run as administrator.
func programs(ctx context.Context) []localcluster.Program {
	GinkgoHelper()
	flags := slices.Concat(rates, []string{"--v=3", "--concurrent-syncs=30"})
	driver := localcluster.Program{Name: machineController, Flags: slices.Concat(rates, []string{"--v=3", "--resource-exhausted-retry=5s", "--machine-safety-orphan-vms-period=10s"})}
	if os.Getenv("EVENKEEL_E2E_MCM") == "stock" {
		return []localcluster.Program{driver, {Name: mcm, Package: stockMCM, Binary: "stock-" + mcm, Flags: flags}}
	}
	own := append(flags, managerControllers, "--capacity-buffer-fill-once")
	return []localcluster.Program{
		driver,
		{Name: mcm, Kubeconfig: accountOf(ctx, cluster, mcm), Flags: own},
		{Name: "balancer", Package: "./cmd/" + localcluster.Workloads, Kubeconfig: accountOf(ctx, cluster, "evenkeel-balancer"),
			Flags: slices.Concat(rates, []string{"--v=3", "--controllers=balancer", "--namespace=kube-system"})},
	}
}

func connect(paths []byte) {
	var err error
	kubeconfigPath, kubectlPath, _ = strings.Cut(string(paths), "\n")
	config, err = clientcmd.BuildConfigFromFlags("", kubeconfigPath)
	Expect(err).NotTo(HaveOccurred())
	config.QPS, config.Burst = 100, 200
	connectTo(config)
}

func connectTo(config *rest.Config) {
	kube, machines, apis = kubernetes.NewForConfigOrDie(config), versioned.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)
	control = kube
}
