// SPDX-License-Identifier: Apache-2.0

// Package hostile proves that a user with the admin role in one namespace of the target cluster
// cannot harm others through our processes. The user creates the largest legal objects of every
// kind that the processes watch. The specs judge the memory of each process, and the time until
// pods of others are bound.
package hostile

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	balancers "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
	"github.com/evenkeel/evenkeel/test/chart"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

// duration is how long the hostile user continues.
var duration = flag.Duration("hostile.duration", 20*time.Second, "how long the hostile user keeps creating objects")

const (
	manager  = "machine-controller-manager"
	balancer = "balancer"
	driver   = "machine-controller"
	// hub is the process of federated autoscalers. The cluster is its own only member.
	hub = "federatedhpa"
	// clusters is the namespace with the Secrets that name members.
	clusters = "evenkeel-clusters"
	// stranger is the hostile user, and hostile the namespace.
	stranger, hostile = "stranger", "hostile"
	// namespace is that of the neighbour, and of the machines.
	namespace = "default"
	soon      = 2 * time.Minute
	// patience is for pods beside an attack: the API server and the scheduler may take minutes then, whatever removes the taint.
	patience = 10 * time.Minute
)

var (
	cluster *localcluster.Cluster
	kube    kubernetes.Interface
	ours    versioned.Interface
	// user is the hostile one's client, and federating that for objects of ours.
	user       kubernetes.Interface
	federating versioned.Interface
)

func TestHostile(t *testing.T) {
	SetDefaultEventuallyPollingInterval(250 * time.Millisecond)
	SetDefaultEventuallyTimeout(soon)
	RegisterFailHandler(Fail)
	RunSpecs(t, "Hostile user")
}

// failed is set by the first spec that fails: its cluster's logs are kept.
var failed bool

var _ = AfterEach(func() { failed = failed || CurrentSpecReport().Failed() })

var _ = BeforeSuite(func(ctx context.Context) {
	var err error
	cluster, err = localcluster.Start(ctx, localcluster.Options{Name: "hostile", Out: GinkgoWriter, UnsafeNoFsync: true, Fresh: true,
		// The objects fill the 2 GiB that etcd has by default, and it would refuse everybody's.
		ExtraArgs: map[string][]string{localcluster.Etcd: {"--quota-backend-bytes=8589934592"}}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		if failed || os.Getenv("EVENKEEL_E2E_KEEP") != "" {
			fmt.Fprintln(GinkgoWriter, "logs are in", cluster.Dir())
			Expect(cluster.Stop()).To(Succeed())
			return
		}
		Expect(cluster.Reset()).To(Succeed())
	})
	Expect(cluster.Apply(ctx, "kubernetes/crds", "kubernetes/optional-crds", "kubernetes/policies", "kubernetes/deploy/preparation/access.yaml", "kubernetes/deploy/manager/access.yaml",
		"kubernetes/deploy/target/access.yaml", "kubernetes/deploy/balancer/access.yaml", "kubernetes/deploy/federation-hub/access.yaml",
		"kubernetes/deploy/federation-hub/policy.yaml", "kubernetes/deploy/federation-member/access.yaml")).To(Succeed())
	connect(ctx)
	for _, p := range programs(ctx) {
		_, err := cluster.RunProgram(ctx, p)
		Expect(err).NotTo(HaveOccurred())
	}
})

// programs are ours, each as the account that the chart gives it.
func programs(ctx context.Context) []localcluster.Program {
	GinkgoHelper()
	account := func(name string) string {
		path, err := cluster.AccountKubeconfig(ctx, chart.Namespace, name)
		Expect(err).NotTo(HaveOccurred())
		return path
	}
	// Without leader election: there is one of each, and an API server that is too busy to renew a lease would end it.
	rates := []string{"--kube-api-qps=150", "--kube-api-burst=200", "--v=2", "--leader-elect=false"}
	return []localcluster.Program{
		{Name: driver, Flags: rates},
		{Name: manager, Kubeconfig: account(manager), Flags: append(rates, "--concurrent-syncs=30", "--controllers=mcm,nodegroup,release,balance,reserves,capacitybuffer,preparation", "--preparation-bytes=0")},
		{Name: balancer, Package: "./cmd/" + localcluster.Workloads, Kubeconfig: account("evenkeel-balancer"),
			Flags: append(rates, "--controllers=balancer", "--namespace=kube-system")},
		{Name: hub, Package: "./cmd/" + localcluster.Workloads, Kubeconfig: account("evenkeel-federatedhpa"),
			Flags: append(rates, "--controllers=federatedhpa", "--namespace=kube-system", "--federation-clusters-namespace="+clusters)},
	}
}

// connect makes the clients, and gives the hostile user the admin role in a namespace.
func connect(ctx context.Context) {
	GinkgoHelper()
	config := cluster.Config()
	config.QPS = -1
	kube, ours = kubernetes.NewForConfigOrDie(config), versioned.NewForConfigOrDie(config)
	_, err := kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hostile}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = kube.RbacV1().RoleBindings(hostile).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "admin"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: stranger}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	join(ctx)
	mayCreate(ctx)
	config.Impersonate = rest.ImpersonationConfig{UserName: stranger, Groups: []string{"system:authenticated"}}
	federating = versioned.NewForConfigOrDie(config)
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 30, 30
	user = kubernetes.NewForConfigOrDie(config)
}

// join makes the cluster a member of its own hub, and lets the hostile user federate and balance in a namespace.
func join(ctx context.Context) {
	GinkgoHelper()
	path, err := cluster.AccountKubeconfig(ctx, chart.Namespace, "evenkeel-federation")
	Expect(err).NotTo(HaveOccurred())
	text, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "itself", Labels: map[string]string{federatedhpa.SecretLabel: "true"}}, Data: map[string][]byte{"kubeconfig": text}}
	_, err = kube.CoreV1().Secrets(clusters).Create(ctx, secret, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = kube.RbacV1().Roles(hostile).Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "federate"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{autoscaling.GroupName}, Resources: []string{"federatedhorizontalpodautoscalers"}, Verbs: []string{"create"},
	}, {
		APIGroups: []string{balancers.GroupName}, Resources: []string{"balancers"}, Verbs: []string{"create"},
	}}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = kube.RbacV1().RoleBindings(hostile).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "federate"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "federate"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: stranger}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}
