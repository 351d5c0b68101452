// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"net/http"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/localcluster"
	"github.com/evenkeel/evenkeel/internal/sim/conformance"
)

// What the simulated API server is held to, the real one does: the same specs run on both.
var _ = Describe("The real API server", func() { conformance.Specs(func() *rest.Config { return cluster.Config() }) })

var _ = Describe("A real API server that does not look at the object", func() {
	conformance.Answers(func(code int) *rest.Config {
		config := cluster.Config()
		switch code {
		case http.StatusUnauthorized:
			config = rest.AnonymousClientConfig(config)
			config.BearerToken = "of nobody"
		case http.StatusForbidden:
			config.Impersonate.UserName = "stranger"
		default:
			config.Impersonate.UserName = "jailed"
			jail(config.Impersonate.UserName)
		}
		return config
	})
})

// jail has API priority and fairness refuse all requests of a user.
func jail(user string) {
	GinkgoHelper()
	ctx, flows := context.Background(), kubernetes.NewForConfigOrDie(cluster.Config()).FlowcontrolV1()
	level := &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: user}}
	level.Spec.Type = flowcontrolv1.PriorityLevelEnablementLimited
	level.Spec.Limited = &flowcontrolv1.LimitedPriorityLevelConfiguration{
		NominalConcurrencyShares: ptr.To[int32](0), BorrowingLimitPercent: ptr.To[int32](0), LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
	}
	_, err := flows.PriorityLevelConfigurations().Create(ctx, level, metav1.CreateOptions{})
	Expect(err).To(Or(Succeed(), Satisfy(apierrors.IsAlreadyExists)))
	all := []string{"*"}
	schema := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: user}}
	schema.Spec.PriorityLevelConfiguration.Name = user
	schema.Spec.MatchingPrecedence = 2
	schema.Spec.Rules = []flowcontrolv1.PolicyRulesWithSubjects{{
		Subjects:      []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: user}}},
		ResourceRules: []flowcontrolv1.ResourcePolicyRule{{Verbs: all, APIGroups: all, Resources: all, Namespaces: all, ClusterScope: true}},
	}}
	_, err = flows.FlowSchemas().Create(ctx, schema, metav1.CreateOptions{})
	Expect(err).To(Or(Succeed(), Satisfy(apierrors.IsAlreadyExists)))
}

var _ = Describe("A real API server that is looked after", Ordered, func() {
	var aged *localcluster.Cluster

	BeforeAll(func(ctx context.Context) {
		var err error
		aged, err = localcluster.Start(ctx, localcluster.Options{
			Name: "aged", Components: localcluster.APIServerOnly, Out: GinkgoWriter, UnsafeNoFsync: true, Fresh: true,
			ExtraArgs: map[string][]string{localcluster.APIServer: {"--etcd-compaction-interval=1s"}},
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(aged.Reset()).To(Succeed()) })
		Expect(aged.Apply(ctx, "kubernetes/crds")).To(Succeed())
	})

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
