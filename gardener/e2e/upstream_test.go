// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"regexp"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/evenkeel/evenkeel/gardener/pkg/additions"
	"github.com/evenkeel/evenkeel/gardener/pkg/mutation"
	"github.com/evenkeel/evenkeel/gardener/pkg/nodegroups"
	"github.com/evenkeel/evenkeel/test/audit"
)

// newUpstreamShoot has two machines for workload, two in reserve, and the fork.
func newUpstreamShoot(ctx context.Context, name string) *shoot {
	GinkgoHelper()
	s := newShoot(ctx, name, stock, newPool("pool", 2, 6, "a"))
	Expect(s.reconciled(ctx)).To(Succeed())
	s.withWorkers(ctx)
	s.enable(ctx, reserveOfTwo)
	applyManagedResource(ctx, s.namespace, additions.Name)
	s.gardenletReconciles(ctx)
	s.deployAutoscaler(ctx)
	applyManagedResource(ctx, s.namespace, "shoot-core-cluster-autoscaler")
	s.settles(ctx, 4)
	return s
}

// playUpstream has no cluster-autoscaler run, and looks at what would.
func playUpstream(ctx context.Context, process restartable) {
	s := newUpstreamShoot(ctx, "upstream")
	manager, fork := s.manager(ctx).Spec, s.autoscaler(ctx).Spec
	group := s.deployments(ctx)[0].Name + " 2:6"

	By("the owner wants the unmodified cluster-autoscaler")
	s.enable(ctx, withUpstream)
	Expect(s.manager(ctx).Spec).To(Equal(manager), "until gardenlet writes")
	s.gardenletReconciles(ctx)
	s.becomesUpstream(ctx)
	s.settles(ctx, 4)
	Eventually(func() ([]string, error) { return s.caller(ctx).groups(ctx, s) }).WithContext(ctx).WithTimeout(soon).Should(ConsistOf(group))

	By("gardenlet writes again, and nothing changes")
	was, beside := s.autoscaler(ctx).Spec, s.manager(ctx).Spec
	s.enable(ctx, withUpstream)
	s.gardenletReconciles(ctx)
	s.deployAutoscaler(ctx)
	Expect(s.autoscaler(ctx).Spec).To(Equal(was))
	Expect(s.manager(ctx).Spec).To(Equal(beside))

	By("a user changes the Service")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: nodegroups.ServiceName}}
	Expect(seed.Patch(ctx, service, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"selector":{"role":"other"}}}`)))).To(Succeed())

	By("the Shoot prepares a rotation of its authorities: who was told later is still served")
	before := s.caller(ctx)
	s.rotates(ctx, gardencorev1beta1.RotationPreparing)
	s.enable(ctx, withUpstream)
	Expect(seed.Get(ctx, client.ObjectKeyFromObject(service), service)).To(Succeed())
	Expect(service.Spec.Selector).To(HaveKeyWithValue("role", "machine-controller-manager"))
	s.gardenletReconciles(ctx)
	both := s.caller(ctx)
	for _, c := range []certified{before, both} {
		Eventually(func() ([]string, error) { return c.groups(ctx, s) }).WithContext(ctx).WithTimeout(soon).Should(ConsistOf(group))
	}
	s.deployAutoscaler(ctx)
	Expect(s.autoscaler(ctx).Spec.Template.Annotations).NotTo(Equal(was.Template.Annotations), "it starts anew")

	By("and completes it")
	s.rotates(ctx, gardencorev1beta1.RotationCompleting)
	s.enable(ctx, withUpstream)
	s.gardenletReconciles(ctx)
	s.deployAutoscaler(ctx)
	for _, c := range []certified{both, s.caller(ctx)} {
		Eventually(func() ([]string, error) { return c.groups(ctx, s) }).WithContext(ctx).WithTimeout(soon).Should(ConsistOf(group))
	}
	Expect(before.groups(ctx, s)).Error().To(HaveOccurred())

	By("gardenlet writes the manager while the webhook is down, and nothing more: the server comes back")
	Expect(process.Stop()).To(Succeed())
	s.deploy(ctx, 1)
	Expect(imageOf(s.manager(ctx))).To(Equal(stock))
	Expect(imageOf(s.autoscaler(ctx))).To(Equal(upstreamImage))
	Expect(process.Start()).To(Succeed())
	awaitReady(ctx, extensionProgram)
	Eventually(func() bool { return mutation.IsServing(s.manager(ctx)) }).WithContext(ctx).WithTimeout(soon).Should(BeTrue())
	s.becomesUpstream(ctx)

	By("the webhook stays unreachable: the fork comes back")
	over := misdirected(ctx)
	s.deploy(ctx, 1)
	Eventually(func() string { return imageOf(s.autoscaler(ctx)) }).WithContext(ctx).WithTimeout(soon).Should(Equal(forksImage))
	Expect(imageOf(s.manager(ctx))).To(Equal(stock))
	Expect(s.autoscaler(ctx).Spec).To(Equal(fork))
	over()
	Eventually(func() string { // the API server has just learned the address
		s.gardenletWrites(ctx)
		return imageOf(s.manager(ctx))
	}).WithContext(ctx).WithTimeout(soon).Should(Equal(ours))
	s.becomesUpstream(ctx)

	By("gardenlet writes the autoscaler while the webhook is down: it is changed again")
	Expect(process.Stop()).To(Succeed())
	s.deployAutoscaler(ctx)
	Expect(s.autoscaler(ctx).Spec).To(Equal(fork))
	Expect(process.Start()).To(Succeed())
	awaitReady(ctx, extensionProgram)
	s.becomesUpstream(ctx)

	By("gardenlet writes the Worker while the webhook is down: nothing would scale its pools, so the fork comes back")
	Expect(process.Stop()).To(Succeed())
	s.writeWorker(ctx)
	Expect(process.Start()).To(Succeed())
	awaitReady(ctx, extensionProgram)
	Eventually(func() string { return imageOf(s.autoscaler(ctx)) }).WithContext(ctx).WithTimeout(soon).Should(Equal(forksImage))
	s.gardenletReconciles(ctx)
	s.deployAutoscaler(ctx)
	s.becomesUpstream(ctx)

	By("the owner wants the fork: it is there before the server goes")
	s.enable(ctx, reserveOfTwo)
	Expect(s.autoscaler(ctx).Spec).To(Equal(fork))
	Expect(s.manager(ctx).Spec).To(Equal(manager))
	Expect(s.everything(ctx)).NotTo(HaveKey(ContainSubstring("nodegroups")))
	s.gardenletReconciles(ctx)
	s.deployAutoscaler(ctx)
	Expect(s.autoscaler(ctx).Spec).To(Equal(fork))

	By("the owner wants the other again, and then removes the extension")
	s.enable(ctx, withUpstream)
	s.gardenletReconciles(ctx)
	s.becomesUpstream(ctx)
	s.disable(ctx, 1)
	Expect(imageOf(s.manager(ctx))).To(Equal(stock))
	Expect(s.autoscaler(ctx).Spec).To(Equal(fork))
	Expect(s.everything(ctx)).NotTo(HaveKey(ContainSubstring("evenkeel")))
	s.gardenletReconciles(ctx)
}

// restartable is the process of the extension.
type restartable interface {
	Start() error
	Stop() error
}

// playAutoscaler has the unmodified cluster-autoscaler run, with the command line of its Deployment and the rights of its account.
func playAutoscaler(ctx context.Context) {
	s := newUpstreamShoot(ctx, "scaled")
	s.enable(ctx, withUpstream)
	applyManagedResource(ctx, s.namespace, additions.Name)
	s.gardenletReconciles(ctx)
	s.becomesUpstream(ctx)
	s.newNetwork(ctx)
	log := must(audit.Open(targetCluster.AuditLog()))
	defer log.Close()
	s.refused(log)
	autoscaler := startKubeletFor(ctx, s.namespace, mutation.AutoscalerName, nil)
	Eventually(autoscaler.running).WithContext(ctx).WithTimeout(soon).Should(HaveLen(1))

	By("three pods have room for two, and the reserve takes the third")
	before := s.names(ctx)
	createPods(ctx, 3, "3")
	Eventually(func() error { return unbound(ctx) }).WithContext(ctx).WithTimeout(soon).Should(Succeed())
	Expect(s.gone(ctx, before)).To(Succeed())
	Expect(namesOf(s.serving(ctx))).To(HaveEach(BeElementOf(before)), "the reserve helps first")
	s.shrinksTo(ctx, 5) // cluster-autoscaler may have asked for the same pod at the same moment
	Expect(s.reserve(ctx)).To(Equal(2))

	By("the pods go, and the machine that they needed")
	s.podsGo(ctx)
	s.shrinksTo(ctx, 4)
	Expect(s.reserve(ctx)).To(Equal(2))
	Expect(s.calls(ctx, "NodeGroupDeleteNodes")).NotTo(BeZero())

	By("without a reserve, nobody but cluster-autoscaler helps the pods")
	s.enable(ctx, withoutReserve)
	s.gardenletReconciles(ctx)
	s.shrinksTo(ctx, 2)
	Expect(s.calls(ctx, "NodeGroupIncreaseSize")).To(BeZero())
	createPods(ctx, 4, "3")
	Eventually(func() error { return unbound(ctx) }).WithContext(ctx).WithTimeout(soon).Should(Succeed())
	s.settles(ctx, 4)
	Expect(s.calls(ctx, "NodeGroupIncreaseSize")).NotTo(BeZero())
	s.podsGo(ctx)
	s.shrinksTo(ctx, 2)
	Expect(s.refused(log)).To(BeEmpty(), "no right is missing in the Shoot")

	By("the owner wants the fork, and then the other again")
	machines := s.names(ctx)
	s.enable(ctx, reserveOfTwo)
	Eventually(autoscaler.running).WithContext(ctx).WithTimeout(soon).Should(BeEmpty())
	s.gardenletReconciles(ctx)
	s.deployAutoscaler(ctx)
	Expect(imageOf(s.autoscaler(ctx))).To(Equal(forksImage))
	s.settles(ctx, 4)
	s.enable(ctx, withUpstream)
	s.gardenletReconciles(ctx)
	s.becomesUpstream(ctx)
	Eventually(autoscaler.running).WithContext(ctx).WithTimeout(soon).Should(HaveLen(1))
	Expect(s.gone(ctx, machines)).To(Succeed())
	createPods(ctx, 3, "3")
	Eventually(func() error { return unbound(ctx) }).WithContext(ctx).WithTimeout(soon).Should(Succeed())
	s.shrinksTo(ctx, 5)
	s.podsGo(ctx)
	s.shrinksTo(ctx, 4)
	Expect(s.refused(log)).To(BeEmpty(), "no right is missing in the Shoot")
}

func (s *shoot) podsGo(ctx context.Context) {
	GinkgoHelper()
	Expect(target.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(metav1.NamespaceDefault), client.GracePeriodSeconds(0))).To(Succeed())
}

// shrinksTo waits until so many machines are left, and looks whether they stay.
func (s *shoot) shrinksTo(ctx context.Context, n int) {
	GinkgoHelper()
	Eventually(func() error { return s.settled(ctx, n) }).WithContext(ctx).WithTimeout(soon).Should(Succeed())
	s.settles(ctx, n)
}

// calls is how often cluster-autoscaler has called the manager that runs, with success.
func (s *shoot) calls(ctx context.Context, method string) int {
	GinkgoHelper()
	pattern := regexp.MustCompile(`evenkeel_nodegroup_calls_total\{code="OK",method="` + method + `"\} ([0-9]+)`)
	found := pattern.FindStringSubmatch(s.kubelet.running()[0].metrics(ctx))
	if found == nil {
		return 0
	}
	return must(strconv.Atoi(found[1]))
}
