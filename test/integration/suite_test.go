// SPDX-License-Identifier: Apache-2.0

// Package integration holds our API against a real API server: what it stores, refuses, explains and prints.
package integration

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/localcluster"
)

func TestIntegration(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Integration")
}

var cluster *localcluster.Cluster

var _ = BeforeSuite(func(ctx context.Context) {
	var err error
	cluster, err = localcluster.Start(ctx, localcluster.Options{
		Name: "integration", Components: localcluster.APIServerOnly, Out: GinkgoWriter, UnsafeNoFsync: true, Fresh: true,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cluster.Reset()).To(Succeed()) })
	Expect(cluster.Apply(ctx, "kubernetes/crds", "kubernetes/policies")).To(Succeed())
	expectPolicies(ctx)
})

// expectPolicies waits until the API server enforces the policies. It looks for changes of them once a second.
func expectPolicies(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() error { return dryCreate(ctx, "1:") }, 30*time.Second, 50*time.Millisecond).ShouldNot(Succeed())
}

// kubectl runs it on the cluster, with text as its standard input, and returns what a person would see.
func kubectl(text string, args ...string) (string, error) {
	cmd := exec.Command(cluster.Kubectl(), append([]string{"--kubeconfig", cluster.Kubeconfig()}, args...)...)
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
