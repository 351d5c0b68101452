// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// childEnv makes the test binary be a program that starts the cluster named there and waits to be killed.
const childEnv = "LOCALCLUSTER_TEST_CHILD"

func TestMain(m *testing.M) {
	if name := os.Getenv(childEnv); name != "" {
		beChild(name)
	}
	os.Exit(m.Run())
}

func TestLocalCluster(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "local cluster")
}

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) {
	Expect(Build(ctx, "", GinkgoWriter)).To(Succeed())
}, func() {})

// long is how long a component may take for what it does at once on an idle machine.
const long = 60 * time.Second

func uniqueName() string { return fmt.Sprintf("test-%08x", rand.Uint32()) }

// startCluster starts an attached cluster for tests, unless the options say otherwise, and sees to its end.
func startCluster(ctx context.Context, o Options) *Cluster {
	GinkgoHelper()
	if o.Name == "" {
		o.Name = uniqueName()
	}
	o.UnsafeNoFsync, o.Out = true, GinkgoWriter
	c, err := Start(ctx, o)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(c.Reset()).To(Succeed()) })
	return c
}

func clientOf(c *Cluster) kubernetes.Interface {
	GinkgoHelper()
	client, err := kubernetes.NewForConfig(c.Config())
	Expect(err).NotTo(HaveOccurred())
	return client
}

func clientAs(c *Cluster, user string, groups ...string) kubernetes.Interface {
	GinkgoHelper()
	path, err := c.KubeconfigFor(user, groups...)
	Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.BuildConfigFromFlags("", path)
	Expect(err).NotTo(HaveOccurred())
	client, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return client
}

// processesOf finds what runs with a command line that has the cluster's folder in it, whoever its parent is.
func processesOf(dir string) []string {
	GinkgoHelper()
	entries, err := os.ReadDir("/proc")
	Expect(err).NotTo(HaveOccurred())
	var found []string
	for _, entry := range entries {
		line, err := os.ReadFile("/proc/" + entry.Name() + "/cmdline")
		if err == nil && strings.Contains(string(line), dir+"/") {
			found = append(found, entry.Name()+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}
