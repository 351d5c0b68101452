// SPDX-License-Identifier: Apache-2.0

// Package upgrade kills one version of the manager at the worst moments of a rollout with growth, and goes on with another one.
package upgrade

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/chart"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

const (
	namespace = "default"
	manager   = "machine-controller-manager"
	atMost    = 3 * time.Minute
	// chartControllers are those of the chart.
	chartControllers = "mcm,nodegroup,release,balance,reserves,capacitybuffer"
)

var (
	// from names the other version, as git does.
	from = flag.String("upgrade.from", "", "the version to upgrade from, as git names it")
	// controllers are those of the other version.
	controllers = flag.String("upgrade.controllers", chartControllers, "the controllers of the version to upgrade from")
	// moments is how many moments each direction has.
	moments = flag.Int("upgrade.moments", 20, "the number of moments in each direction")

	cluster *localcluster.Cluster
	kube    kubernetes.Interface
	ours    versioned.Interface
	gate    *writes
	// earlier and present are the two versions.
	earlier, present localcluster.Program
)

func TestUpgrade(t *testing.T) {
	SetDefaultEventuallyPollingInterval(250 * time.Millisecond)
	SetDefaultConsistentlyPollingInterval(250 * time.Millisecond)
	SetDefaultEventuallyTimeout(atMost)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RegisterFailHandler(Fail)
	RunSpecs(t, "Upgrade")
}

// failed is set by the first spec that fails: its cluster's logs are kept.
var failed bool

var _ = AfterEach(func() { failed = failed || CurrentSpecReport().Failed() })

var _ = BeforeSuite(func(ctx context.Context) {
	own := fmt.Sprintf("upgrade-%d", GinkgoParallelProcess()) // each process has a cluster, and files
	source, err := sourceOf(ctx, own, *from)
	Expect(err).NotTo(HaveOccurred())
	cluster, err = localcluster.Start(ctx, localcluster.Options{Name: own, Out: GinkgoWriter, UnsafeNoFsync: true, Fresh: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		if failed {
			fmt.Fprintln(GinkgoWriter, "logs are in", cluster.Dir())
			Expect(cluster.Stop()).To(Succeed())
			return
		}
		Expect(cluster.Reset()).To(Succeed())
	})
	kube, ours = kubernetes.NewForConfigOrDie(cluster.Config()), versioned.NewForConfigOrDie(cluster.Config())
	Expect(cluster.Apply(ctx, "kubernetes/crds", "kubernetes/policies", "kubernetes/deploy/manager/access.yaml", "kubernetes/deploy/target/access.yaml")).To(Succeed())
	_, err = cluster.RunProgram(ctx, localcluster.Program{Name: "machine-controller", Binary: own + "-machine-controller"})
	Expect(err).NotTo(HaveOccurred())
	account, err := cluster.AccountKubeconfig(ctx, chart.Namespace, manager)
	Expect(err).NotTo(HaveOccurred())
	gate, err = newWrites(cluster.Config())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(gate.close)
	with := func(controllers string) []string {
		return []string{"--v=3", "--leader-elect=false", "--controllers=" + controllers}
	}
	present = localcluster.Program{Name: manager, Kubeconfig: gate.kubeconfig(account), Flags: with(chartControllers), Binary: own + "-present"}
	earlier = localcluster.Program{Name: manager, Kubeconfig: present.Kubeconfig, Flags: with(*controllers), Package: "./cmd/" + manager, Source: source, Binary: own + "-earlier"}
})

// sourceOf extracts a version of the repository.
func sourceOf(ctx context.Context, own, version string) (string, error) {
	if version == "" {
		return "", errors.New("which version to upgrade from? make e2e-upgrade FROM=v0.1.0")
	}
	root, err := localcluster.FindRoot()
	if err != nil {
		return "", err
	}
	name, err := exec.CommandContext(ctx, "git", "-C", root, "rev-parse", "--verify", version+"^{commit}").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("no version %q: %s", version, name)
	}
	folder := filepath.Join(root, ".local", "versions", own, strings.TrimSpace(string(name)))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	archive := exec.CommandContext(ctx, "sh", "-c", `git -C "$0" archive "$1" | tar -x -C "$2"`, root, version, folder)
	if output, err := archive.CombinedOutput(); err != nil {
		return "", fmt.Errorf("extract %s: %w\n%s", version, err, output)
	}
	return folder, nil
}
