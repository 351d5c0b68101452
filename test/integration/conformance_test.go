// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"io"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/test/sim/conformance"
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
			jail(config)
		}
		return config
	})
})

// jail has API priority and fairness refuse all requests of a user: they get one place, and a request that does not end has that until
// the spec has ended.
func jail(config *rest.Config) {
	GinkgoHelper()
	ctx, user, all := context.Background(), config.Impersonate.UserName, []string{"*"}
	core := kubernetes.NewForConfigOrDie(cluster.Config())
	level := &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: user}}
	level.Spec.Type = flowcontrolv1.PriorityLevelEnablementLimited
	level.Spec.Limited = &flowcontrolv1.LimitedPriorityLevelConfiguration{
		NominalConcurrencyShares: ptr.To[int32](0), BorrowingLimitPercent: ptr.To[int32](0), LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
	}
	_, err := core.FlowcontrolV1().PriorityLevelConfigurations().Create(ctx, level, metav1.CreateOptions{})
	Expect(err).To(Or(Succeed(), Satisfy(apierrors.IsAlreadyExists)))
	schema := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: user}}
	schema.Spec.PriorityLevelConfiguration.Name = user
	schema.Spec.MatchingPrecedence = 2
	schema.Spec.Rules = []flowcontrolv1.PolicyRulesWithSubjects{{
		Subjects:      []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: user}}},
		ResourceRules: []flowcontrolv1.ResourcePolicyRule{{Verbs: all, APIGroups: all, Resources: all, Namespaces: all, ClusterScope: true}},
	}}
	_, err = core.FlowcontrolV1().FlowSchemas().Create(ctx, schema, metav1.CreateOptions{})
	Expect(err).To(Or(Succeed(), Satisfy(apierrors.IsAlreadyExists)))
	rights := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	_, err = core.RbacV1().ClusterRoleBindings().Create(ctx, rights, metav1.CreateOptions{})
	Expect(err).To(Or(Succeed(), Satisfy(apierrors.IsAlreadyExists)))
	occupy(config, user)
}

// occupy takes the place of a level with a request whose body never comes, once the level applies to the user.
func occupy(config *rest.Config, level string) {
	GinkgoHelper()
	configured, err := kubernetes.NewForConfigOrDie(cluster.Config()).FlowcontrolV1().PriorityLevelConfigurations().Get(context.Background(), level, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	client, err := rest.HTTPClientFor(config)
	Expect(err).NotTo(HaveOccurred())
	url := config.Host + "/api/v1/namespaces/default/configmaps"
	Eventually(func(g Gomega) {
		response, err := client.Get(url)
		g.Expect(err).NotTo(HaveOccurred())
		defer response.Body.Close()
		g.Expect(response.Header.Get("X-Kubernetes-Pf-Prioritylevel-Uid")).To(Equal(string(configured.UID)))
	}, 30*time.Second, 50*time.Millisecond).Should(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil { // the place may be taken by the request of the spec before
			endless(ctx, client, url)
		}
	}()
	DeferCleanup(func() {
		cancel()
		<-ended
	})
}

// endless creates an object whose body never comes. It returns when that is refused, or the context ends.
func endless(ctx context.Context, client *http.Client, url string) {
	body, never := io.Pipe()
	defer never.Close()
	request, _ := http.NewRequestWithContext(ctx, http.MethodPost, url, body) // the URL is well-formed
	request.Header.Set("Content-Type", "application/json")
	if response, err := client.Do(request); err == nil {
		response.Body.Close()
	}
}
