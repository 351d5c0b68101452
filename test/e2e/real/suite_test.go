// SPDX-License-Identifier: Apache-2.0

// Package real tests machines that run real kubelets and containers: what nodes that are played do not show. It needs
// Linux, and root.
package real

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/test/localcluster"
	"github.com/evenkeel/evenkeel/test/machines"
)

const (
	namespace = "default"
	soon      = 2 * time.Minute
	// grace is how long a kubelet may be silent until its Node is not ready.
	grace = 20 * time.Second
	// patience is how long a preparation may take.
	patience = 30 * time.Second
)

var (
	cluster *localcluster.Cluster
	kube    kubernetes.Interface
)

func TestReal(t *testing.T) {
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	SetDefaultEventuallyTimeout(soon)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RegisterFailHandler(Fail)
	if *bench {
		benchmark()
	}
	RunSpecs(t, "Real machines")
}

// failed is set by the first spec that fails: its cluster's logs are kept.
var failed bool

var _ = AfterEach(func() { failed = failed || CurrentSpecReport().Failed() })

// Each process has a cluster of its own. The first one starts first, as it builds what the others use.
var _ = SynchronizedBeforeSuite(func(ctx context.Context) {
	Expect(machines.Check()).To(Succeed())
	startOwn(ctx)
}, func(ctx context.Context) {
	if cluster == nil {
		startOwn(ctx)
	}
})

func startOwn(ctx context.Context) {
	GinkgoHelper()
	cluster = start(ctx, "real-e2e", "mcm,release,preparation")
	kube = kubernetes.NewForConfigOrDie(cluster.Config())
}

// start starts a cluster with real machines, and these controllers, which is deleted at the end.
func start(ctx context.Context, name, controllers string) *localcluster.Cluster {
	GinkgoHelper()
	name = fmt.Sprintf("%s-%d", name, GinkgoParallelProcess())
	c, err := localcluster.Start(ctx, localcluster.Options{Name: name, Out: GinkgoWriter, UnsafeNoFsync: true, Fresh: true, RealNodes: true,
		ExtraArgs: map[string][]string{localcluster.ControllerManager: {"--node-monitor-grace-period=" + grace.String(), "--node-monitor-period=1s"}}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		if failed || os.Getenv("EVENKEEL_E2E_KEEP") != "" {
			fmt.Fprintln(GinkgoWriter, "logs are in", c.Dir())
			Expect(c.Stop()).To(Succeed())
			return
		}
		Expect(c.Reset()).To(Succeed())
	})
	Expect(c.Apply(ctx, "kubernetes/crds", "kubernetes/policies", "kubernetes/optional-policies/node-registration.yaml")).To(Succeed())
	for _, p := range []localcluster.Program{{Name: "machine-controller"}, {Name: "machine-controller-manager", Flags: []string{"--controllers=" + controllers, "--preparation-image=" + tiny, "--preparation-patience=" + patience.String()}}} {
		_, err := c.RunProgram(ctx, p)
		Expect(err).NotTo(HaveOccurred())
	}
	_, err = c.RunMachines(ctx)
	Expect(err).NotTo(HaveOccurred())
	return c
}
