// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gardener/gardener/pkg/client/kubernetes"

	"github.com/evenkeel/evenkeel/test/localcluster"
)

const (
	interval = 250 * time.Millisecond
	// soon is for what takes machine-controller-manager some hops of five seconds.
	soon = 2 * time.Minute
)

var (
	// The two control planes, and administrators' clients without a cache.
	seedCluster, targetCluster *localcluster.Cluster
	seed, target               client.Client
)

func TestGardener(t *testing.T) {
	SetDefaultEventuallyPollingInterval(interval)
	SetDefaultEventuallyTimeout(soon)
	SetDefaultConsistentlyPollingInterval(interval)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RegisterFailHandler(Fail)
	log.SetLogger(GinkgoLogr)
	RunSpecs(t, "Gardener")
}

// Each process has clusters of its own, and stories in them.
var _ = SynchronizedBeforeSuite(func(ctx context.Context) {
	Expect(upstreamBinary).NotTo(BeEmpty(), "set CLUSTER_AUTOSCALER to the path of an unmodified cluster-autoscaler that was built with -tags=externalgrpc, or to none to leave out its story")
	build(ctx)
}, func(ctx context.Context) {
	seedCluster = startCluster(ctx, localcluster.Options{Name: "gardener-seed", Components: localcluster.APIServerOnly, Audit: true})
	targetCluster = startCluster(ctx, localcluster.Options{Name: "gardener-shoot", Audit: true})
	seed, target = newClient(seedCluster, kubernetes.SeedScheme), newClient(targetCluster, kubernetes.ShootScheme)
	deployCRDs(ctx)
})

func startCluster(ctx context.Context, o localcluster.Options) *localcluster.Cluster {
	GinkgoHelper()
	o.Name, o.Out, o.UnsafeNoFsync = fmt.Sprintf("%s-%d", o.Name, GinkgoParallelProcess()), GinkgoWriter, true
	// A run that failed left its data behind.
	Expect(os.RemoveAll(filepath.Join(must(localcluster.FindRoot()), ".local", "clusters", o.Name))).To(Succeed())
	c, err := localcluster.Start(ctx, o)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		if CurrentSpecReport().Failed() || os.Getenv("EVENKEEL_E2E_KEEP") != "" {
			fmt.Fprintln(GinkgoWriter, "logs are in", c.Dir())
			Expect(c.Stop()).To(Succeed())
			return
		}
		Expect(c.Reset()).To(Succeed())
	})
	return c
}

func newClient(c *localcluster.Cluster, scheme *runtime.Scheme) client.Client {
	GinkgoHelper()
	made, err := client.New(c.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return made
}

// programs are what is built, by the name of the binary.
var programs = map[string]string{
	"machine-controller-manager":       "./cmd/machine-controller-manager",
	"machine-controller":               "./cmd/machine-controller",
	"stock-machine-controller-manager": "github.com/gardener/machine-controller-manager/cmd/machine-controller-manager",
}

// build makes the programs, in the main module.
func build(ctx context.Context) {
	GinkgoHelper()
	root := must(localcluster.FindRoot())
	for name, pkg := range programs {
		command := exec.CommandContext(ctx, "go", "build", "-o", binary(name), pkg)
		command.Dir, command.Stdout, command.Stderr = root, GinkgoWriter, GinkgoWriter
		Expect(command.Run()).To(Succeed(), name)
	}
}

// binary is the path of a program.
func binary(name string) string {
	GinkgoHelper()
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(must(localcluster.FindRoot()), ".local", "bin", name)
}
