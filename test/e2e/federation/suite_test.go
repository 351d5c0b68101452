// SPDX-License-Identifier: Apache-2.0

// Package federation checks what the owner of a fleet sees: a hub and three members, each a real
// control plane with autoscalers of its own, which read a metric that the specs set per cluster.
package federation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

const (
	namespace = "default"
	// clusters is the hub's namespace with the Secrets that name members.
	clusters = "evenkeel-clusters"
	// controller is the process under test, which runs in the hub's care.
	controller = "federatedhpa"
	// hpaPeriod is that of the members' own autoscalers.
	hpaPeriod = 3 * time.Second
	// cooldown is that of the objects, in seconds.
	cooldown = 10
	// slow is what a busy machine may add to whatever takes seconds.
	slow = 30 * time.Second
)

var (
	hub     *localcluster.Cluster
	hubCore kubernetes.Interface
	hubOurs versioned.Interface
	members []*member
)

// member is a cluster with load.
type member struct {
	*localcluster.Cluster
	name    string
	core    kubernetes.Interface
	dynamic dynamic.Interface
	metrics *metrics
	link    *localcluster.Link
	paused  bool
}

func TestFederation(t *testing.T) {
	SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	SetDefaultEventuallyTimeout(2 * time.Minute)
	SetDefaultConsistentlyPollingInterval(200 * time.Millisecond)
	RegisterFailHandler(Fail)
	RunSpecs(t, "Federation")
}

var _ = BeforeSuite(func(ctx context.Context) {
	var starting sync.WaitGroup
	var failures [4]error
	members = make([]*member, 3)
	starting.Go(func() { failures[3] = startHub(ctx) })
	for i := range members {
		starting.Go(func() { members[i], failures[i] = startMember(ctx, fmt.Sprint("c", i+1)) })
	}
	starting.Wait()
	DeferCleanup(func() {
		if hub != nil {
			Expect(end(hub)).To(Succeed())
		}
		for _, m := range members {
			if m != nil {
				Expect(end(m.Cluster)).To(Succeed())
			}
		}
	})
	Expect(errors.Join(failures[:]...)).To(Succeed())
	for _, m := range members {
		m.metrics = m.serveMetrics(ctx)
		register(ctx, m)
	}
	Expect(runController(ctx)).To(Succeed())
})

// auditEnv names a folder for the audit logs of all clusters.
const auditEnv = "EVENKEEL_E2E_AUDIT"

func end(c *localcluster.Cluster) error {
	if folder := os.Getenv(auditEnv); folder != "" {
		if err := c.KeepAudit(folder); err != nil {
			return err
		}
	}
	if os.Getenv("EVENKEEL_E2E_KEEP") != "" {
		fmt.Fprintln(GinkgoWriter, "logs are in", c.Dir())
		return c.Stop()
	}
	return c.Reset()
}

func startHub(ctx context.Context) error {
	var err error
	hub, err = localcluster.Start(ctx, localcluster.Options{Name: "federation-hub", Components: localcluster.APIServerOnly, Out: GinkgoWriter, UnsafeNoFsync: true, Fresh: true, Audit: os.Getenv(auditEnv) != ""})
	if err != nil {
		return err
	}
	config := hub.Config()
	hubCore, hubOurs = kubernetes.NewForConfigOrDie(config), versioned.NewForConfigOrDie(config)
	return hub.Apply(ctx, "kubernetes/crds/autoscaling.evenkeel.dev_federatedhorizontalpodautoscalers.yaml", "kubernetes/deploy/federation-hub/access.yaml", "kubernetes/deploy/federation-hub/policy.yaml")
}

func startMember(ctx context.Context, name string) (*member, error) {
	c, err := localcluster.Start(ctx, localcluster.Options{
		Name: "federation-" + name, Out: GinkgoWriter, UnsafeNoFsync: true, Fresh: true, Audit: os.Getenv(auditEnv) != "",
		ExtraArgs: map[string][]string{localcluster.ControllerManager: {
			"--horizontal-pod-autoscaler-sync-period=" + hpaPeriod.String(), "--horizontal-pod-autoscaler-downscale-stabilization=1s",
			"--horizontal-pod-autoscaler-initial-readiness-delay=1s",
		}},
	})
	if err != nil {
		return nil, err
	}
	m := &member{Cluster: c, name: name}
	config := c.Config()
	m.core, m.dynamic = kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)
	for i := range 2 {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node-", i), Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}}}
		node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("500")}
		node.Status.Capacity = node.Status.Allocatable
		if _, err := m.core.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return m, err
		}
	}
	return m, c.Apply(ctx, "kubernetes/deploy/federation-member/access.yaml", "kubernetes/deploy/federation-placement/access.yaml")
}

// register gives the hub a kubeconfig of the account that the manifests make.
func register(ctx context.Context, m *member, labels ...string) {
	GinkgoHelper()
	path, err := m.AccountKubeconfig(ctx, "kube-system", "evenkeel-federation")
	Expect(err).NotTo(HaveOccurred())
	m.link, err = localcluster.NewLink(m.Config().Host)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(m.link.Close)
	text, err := m.link.Kubeconfig(path)
	Expect(err).NotTo(HaveOccurred())
	registerText(ctx, m.name, text, labels...)
}

func registerFile(ctx context.Context, name, path string) {
	GinkgoHelper()
	text, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	registerText(ctx, name, text)
}

func registerText(ctx context.Context, name string, text []byte, labels ...string) {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: clusters, Labels: map[string]string{federatedhpa.SecretLabel: "true", "name": name}}}
	for _, label := range labels {
		secret.Labels[label] = "true"
	}
	secret.Data = map[string][]byte{"kubeconfig": text}
	_, err := hubCore.CoreV1().Secrets(clusters).Create(ctx, secret, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func runController(ctx context.Context) error {
	if os.Getenv(auditEnv) != "" {
		// Informers as they are with API servers that cannot send what is there when a watch begins: they list.
		if err := os.Setenv("KUBE_FEATURE_WatchListClient", "false"); err != nil {
			return err
		}
	}
	kubeconfig, err := hub.AccountKubeconfig(ctx, "kube-system", "evenkeel-federatedhpa")
	if err != nil {
		return err
	}
	_, err = hub.RunProgram(ctx, localcluster.Program{
		Name: controller, Package: "./cmd/" + localcluster.Workloads, Kubeconfig: kubeconfig,
		Flags: []string{
			"--controllers=federatedhpa", "--namespace=kube-system", "--federation-clusters-namespace=" + clusters, "--v=4",
			"--federation-probe-period=2s", "--federation-request-timeout=3s",
			"--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=1s",
			"--kube-api-qps=150", "--kube-api-burst=200",
		},
	})
	return err
}
