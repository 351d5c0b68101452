// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/rest"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// registering is a Node as a kubelet creates it.
func registering(ctx context.Context, name, group string, taints ...corev1.Taint) (keys []string) {
	GinkgoHelper()
	config := rest.CopyConfig(cluster.Config())
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + name, Groups: []string{group, "system:authenticated"}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Taints: taints}}
	node, err := kubernetes.NewForConfigOrDie(config).CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	Expect(err).NotTo(HaveOccurred())
	for _, taint := range node.Spec.Taints {
		Expect(taint.Effect).To(Equal(corev1.TaintEffectNoSchedule))
		keys = append(keys, taint.Key)
	}
	return keys
}

// withPolicies applies the optional policies until a spec ends.
func withPolicies(ctx context.Context) {
	GinkgoHelper()
	Expect(cluster.Apply(ctx, "kubernetes/optional-policies")).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		out, err := kubectl("", "delete", "mutatingadmissionpolicies,mutatingadmissionpolicybindings", "--all")
		Expect(err).NotTo(HaveOccurred(), out)
		Eventually(func() []corev1.Toleration { return created(ctx) }, 30*time.Second, 50*time.Millisecond).Should(BeEmpty())
	})
}

var _ = Describe("The policy for the registration of Nodes", func() {
	It("adds its taint to each Node that a kubelet creates, once", func(ctx context.Context) {
		withPolicies(ctx)
		Eventually(func() []string { return registering(ctx, "n", "system:nodes") }, 30*time.Second, 50*time.Millisecond).Should(ContainElement(api.RegistrationTaintKey))
		other := corev1.Taint{Key: "other", Effect: corev1.TaintEffectNoSchedule}
		own := corev1.Taint{Key: api.RegistrationTaintKey, Effect: corev1.TaintEffectNoSchedule}
		Expect(registering(ctx, "n", "system:nodes")).To(ConsistOf(corev1.TaintNodeNotReady, api.RegistrationTaintKey))
		Expect(registering(ctx, "n", "system:nodes", other)).To(ConsistOf(corev1.TaintNodeNotReady, "other", api.RegistrationTaintKey))
		Expect(registering(ctx, "n", "system:nodes", own, other)).To(ConsistOf(corev1.TaintNodeNotReady, "other", api.RegistrationTaintKey))
		Expect(registering(ctx, "n", "system:masters")).To(ConsistOf(corev1.TaintNodeNotReady))
	})
})

// agent is a DaemonSet for no Node, whose pods have these tolerations.
func agent(given ...corev1.Toleration) *appsv1.DaemonSet {
	name := map[string]string{"app": "agent"}
	d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent"}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: name}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: name}},
	}}
	d.Spec.Template.Spec = corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: "agent"}}, Tolerations: given, NodeSelector: map[string]string{"none": "none"}}
	return d
}

var dryRun = []string{metav1.DryRunAll}

func daemons() appsclient.DaemonSetInterface {
	return kubernetes.NewForConfigOrDie(cluster.Config()).AppsV1().DaemonSets("default")
}

// created are the tolerations that a DaemonSet would have after it is created with these.
func created(ctx context.Context, given ...corev1.Toleration) []corev1.Toleration {
	GinkgoHelper()
	return tolerationsOf(daemons().Create(ctx, agent(given...), metav1.CreateOptions{DryRun: dryRun}))
}

func tolerationsOf(d *appsv1.DaemonSet, err error) []corev1.Toleration {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	return d.Spec.Template.Spec.Tolerations
}

var _ = Describe("The policy for DaemonSets", func() {
	own := corev1.Toleration{Key: api.ReserveTaintKey, Operator: corev1.TolerationOpExists}
	other := corev1.Toleration{Key: "other", Operator: corev1.TolerationOpExists}
	valued := corev1.Toleration{Key: api.ReserveTaintKey, Operator: corev1.TolerationOpEqual, Value: "x"}
	evicted := corev1.Toleration{Key: api.ReserveTaintKey, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	scheduled := corev1.Toleration{Key: api.ReserveTaintKey, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	all := corev1.Toleration{Operator: corev1.TolerationOpExists}

	It("lets their pods tolerate the reserve taint, once", func(ctx context.Context) {
		withPolicies(ctx)
		Eventually(func() []corev1.Toleration { return created(ctx) }, 30*time.Second, 50*time.Millisecond).Should(ConsistOf(own))
		for _, change := range []struct{ given, want []corev1.Toleration }{
			{[]corev1.Toleration{other}, []corev1.Toleration{other, own}},
			{[]corev1.Toleration{valued, evicted}, []corev1.Toleration{valued, evicted, own}},
			{[]corev1.Toleration{own}, []corev1.Toleration{own}},
			{[]corev1.Toleration{other, scheduled}, []corev1.Toleration{other, scheduled}},
			{[]corev1.Toleration{all}, []corev1.Toleration{all}},
		} {
			Expect(created(ctx, change.given...)).To(Equal(change.want))
		}
	})

	It("also when they are written again", func(ctx context.Context) {
		Expect(tolerationsOf(daemons().Create(ctx, agent(), metav1.CreateOptions{}))).To(BeEmpty())
		withPolicies(ctx)
		DeferCleanup(func(ctx context.Context) {
			Expect(daemons().Delete(ctx, "agent", metav1.DeleteOptions{})).To(Succeed())
		})
		Eventually(func() []corev1.Toleration {
			return tolerationsOf(daemons().Update(ctx, agent(), metav1.UpdateOptions{DryRun: dryRun}))
		}, 30*time.Second, 50*time.Millisecond).Should(ConsistOf(own))
	})
})
