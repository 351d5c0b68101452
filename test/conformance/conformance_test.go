// SPDX-License-Identifier: Apache-2.0

// Package conformance checks that a real API server treats forgotten history and restored backups
// as the simulated one does. Each spec compacts its storage and restarts it.
package conformance

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/test/localcluster"
	"github.com/evenkeel/evenkeel/test/sim/conformance"
)

func TestConformance(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Conformance")
}

var aged *localcluster.Cluster

var _ = BeforeSuite(func(ctx context.Context) {
	var err error
	aged, err = localcluster.Start(ctx, localcluster.Options{
		Name: "aged", Components: localcluster.APIServerOnly, Out: GinkgoWriter, UnsafeNoFsync: true, Fresh: true,
		ExtraArgs: map[string][]string{localcluster.APIServer: {"--etcd-compaction-interval=1s"}},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(aged.Reset()).To(Succeed()) })
	Expect(aged.Apply(ctx, "kubernetes/crds")).To(Succeed())
})

var _ = Describe("A real API server that is looked after", func() {
	conformance.Ages(func() conformance.Keeper {
		return conformance.Keeper{
			Config: aged.Config(),
			Forget: func() {
				GinkgoHelper()
				forgotten(aged.Config())
				server := aged.Process(localcluster.APIServer)
				Expect(server.Restart()).To(Succeed())
				Expect(server.WaitReady(context.Background())).To(Succeed())
			},
			Backup: func() func() {
				GinkgoHelper()
				folder := filepath.Join(GinkgoT().TempDir(), "backup")
				Expect(aged.Backup(context.Background(), folder)).To(Succeed())
				return func() { Expect(aged.Restore(context.Background(), folder)).To(Succeed()) }
			},
		}
	})
})

// forgotten waits until the history until now is compacted. The API server's cache still has it then, for watches.
func forgotten(config *rest.Config) {
	GinkgoHelper()
	ctx := context.Background()
	maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
	now, err := maps.List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	exactly := metav1.ListOptions{ResourceVersion: now.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	Eventually(func() error {
		_, err := maps.List(ctx, exactly)
		return err
	}, time.Minute, 200*time.Millisecond).Should(Satisfy(apierrors.IsResourceExpired))
}
