// SPDX-License-Identifier: Apache-2.0

//go:build !race

package app

import (
	"context"
	"net/http"
	"os"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/internal/gen"
	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
)

var _ = Describe("The federated autoscaler's controller alone", Serial, func() {
	It("finds clusters by Secrets, and works with its own lease", func() {
		hub := sim.New(sim.Options{Resources: slices.Concat(sim.Core, []sim.Resource{{
			Group: v1alpha1.GroupName, Version: "v1alpha1", Name: "federatedhorizontalpodautoscalers", Kind: "FederatedHorizontalPodAutoscaler", Namespaced: true, Status: true, Generation: true,
		}})})
		member := sim.New(sim.Options{Resources: slices.Concat(sim.Core, sim.Workloads)})
		text, err := os.ReadFile(onSocket(member, "hub"))
		Expect(err).NotTo(HaveOccurred())
		ctx, user := context.Background(), hub.ConfigFor("user")
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "munich", Namespace: gen.Namespace, Labels: map[string]string{federatedhpa.SecretLabel: "true"}}}
		secret.Data = map[string][]byte{"kubeconfig": text}
		_, err = kubernetes.NewForConfigOrDie(user).CoreV1().Secrets(gen.Namespace).Create(ctx, secret, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())

		r := start(hub, "--control-kubeconfig="+onSocket(hub, "federatedhpa"), "--target-kubeconfig=none", "--controllers=federatedhpa")
		Eventually(r.status("/readyz"), eventually).Should(Equal(http.StatusOK))
		leases := coordinationv1.SchemeGroupVersion.WithResource("leases")
		Eventually(func() any { return hub.Get(leases, gen.Namespace, "federatedhpa") }, eventually).ShouldNot(BeNil())
		Expect(hub.Get(leases, gen.Namespace, name)).To(BeNil())

		o := &v1alpha1.FederatedHorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: gen.Namespace}}
		o.Spec.ScaleTargetRef, o.Spec.MaxReplicas = v1alpha1.ScaleTargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "shop"}, 7
		_, err = versioned.NewForConfigOrDie(user).AutoscalingV1alpha1().FederatedHorizontalPodAutoscalers(gen.Namespace).Create(ctx, o, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() int64 {
			hpa := member.Get(autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers"), gen.Namespace, "shop")
			if hpa == nil {
				return 0
			}
			n, _, _ := unstructured.NestedInt64(hpa.Object, "spec", "maxReplicas")
			return n
		}, eventually).Should(BeEquivalentTo(7))
	})
})

var _ = DescribeTable("Flags of the federated autoscaler's controller are refused",
	func(flags, says string) {
		o := NewOptions()
		Expect(o.Flags().Parse(strings.Fields(flags))).To(Succeed())
		Expect(o.Validate()).To(MatchError(ContainSubstring(says)))
	},
	Entry("no syncs", "--federation-concurrent-syncs=0", "below 1"),
	Entry("no such registry", "--federation-registry=karmada", "neither secrets nor clusterprofiles"),
	Entry("programs for what is no profile", "--clusterprofile-provider-file=/dev/null", "needs --federation-registry=clusterprofiles"),
	Entry("no file of programs", "--federation-registry=clusterprofiles --clusterprofile-provider-file=/nowhere", "no such file"),
	Entry("a file of something else", "--federation-registry=clusterprofiles --clusterprofile-provider-file=federatedhpa.go", "read providers"),
	Entry("no time to answer", "--federation-request-timeout=0s", "below 100ms"),
)
