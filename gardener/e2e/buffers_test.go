// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/gardener/pkg/additions"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	bufferv1beta1 "github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	evenkeelclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/audit"
)

const roomForBuffers = `{"apiVersion":"evenkeel.extensions.gardener.cloud/v1alpha1","kind":"EvenkeelConfig","pools":[{"name":"pool","excess":0}],"capacityBuffers":true}`

// createBuffer asks for room for one pod in the Shoot.
func createBuffer(ctx context.Context) {
	GinkgoHelper()
	core, ours := must(kubernetes.NewForConfig(targetCluster.Config())), must(evenkeelclient.NewForConfig(targetCluster.Config()))
	template := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: "room"}, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "room", Image: "room", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}},
	}}}}}
	must(core.CoreV1().PodTemplates(metav1.NamespaceDefault).Create(ctx, template, metav1.CreateOptions{}))
	DeferCleanup(func(ctx context.Context) error {
		return core.CoreV1().PodTemplates(metav1.NamespaceDefault).Delete(ctx, template.Name, metav1.DeleteOptions{})
	})
	strategy, chunks := bufferv1beta1.StrategyReserved, int32(1)
	buffer := &bufferv1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Name: "room"}, Spec: bufferv1beta1.CapacityBufferSpec{
		ProvisioningStrategy: &strategy, PodTemplateRef: &bufferv1beta1.LocalObjectRef{Name: template.Name}, Replicas: &chunks,
	}}
	buffers := ours.CapacityBufferV1beta1().CapacityBuffers(metav1.NamespaceDefault)
	Eventually(func() error { // the API server has just learned the kind
		_, err := buffers.Create(ctx, buffer, metav1.CreateOptions{})
		return err
	}).WithContext(ctx).Should(Succeed())
	DeferCleanup(func(ctx context.Context) error { return buffers.Delete(ctx, buffer.Name, metav1.DeleteOptions{}) })
}

// bufferCondition is a condition of the buffer.
func bufferCondition(ctx context.Context, kind string) metav1.Condition {
	GinkgoHelper()
	b := must(must(evenkeelclient.NewForConfig(targetCluster.Config())).CapacityBufferV1beta1().CapacityBuffers(metav1.NamespaceDefault).Get(ctx, "room", metav1.GetOptions{}))
	return ptr.Deref(meta.FindStatusCondition(b.Status.Conditions, kind), metav1.Condition{})
}

// reserveReady is the condition Ready of the Reserve for the buffer.
func (s *shoot) reserveReady(ctx context.Context) metav1.Condition {
	GinkgoHelper()
	all := s.buffersReserves(ctx)
	Expect(all).To(HaveLen(1))
	return ptr.Deref(meta.FindStatusCondition(all[0].Status.Conditions, "Ready"), metav1.Condition{})
}

// buffersReserves are the Reserves on the seed that the manager has created for buffers.
func (s *shoot) buffersReserves(ctx context.Context) []autoscaling.Reserve {
	GinkgoHelper()
	list := must(must(evenkeelclient.NewForConfig(seedCluster.Config())).AutoscalingV1alpha1().Reserves(s.namespace).List(ctx, metav1.ListOptions{LabelSelector: bufferv1beta1.ReserveLabel}))
	return list.Items
}

// setChunks changes how many pods the buffer keeps room for. A machine has room for 40.
func setChunks(ctx context.Context, n int32) {
	GinkgoHelper()
	buffers := must(evenkeelclient.NewForConfig(targetCluster.Config())).CapacityBufferV1beta1().CapacityBuffers(metav1.NamespaceDefault)
	must(buffers.Patch(ctx, "room", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n), metav1.PatchOptions{}))
}

// keepsRoom plays a Shoot whose users keep room by CapacityBuffers, until its owner does not want that any more.
func keepsRoom(ctx context.Context) {
	installExtension(ctx)
	s := newShoot(ctx, "buffers", stock, newPool("pool", 2, 6, "a"))
	Expect(s.reconciled(ctx)).To(Succeed())
	s.withWorkers(ctx)
	s.enable(ctx, roomForBuffers)
	applyManagedResource(ctx, s.namespace, additions.Name)
	applyManagedResource(ctx, s.namespace, additions.BuffersName)
	s.gardenletReconciles(ctx)
	s.settles(ctx, 2)
	before := s.names(ctx)
	log := must(audit.Open(targetCluster.AuditLog()))
	defer log.Close()
	s.refused(log)
	holds := func(machines int) {
		GinkgoHelper()
		s.settles(ctx, 2+machines)
		Expect(s.reserve(ctx)).To(Equal(machines))
		Expect(s.gone(ctx, before)).To(Succeed())
	}

	By("a user creates a buffer")
	createBuffer(ctx)
	holds(1)
	Eventually(s.reserveReady).WithContext(ctx).Should(HaveField("Status", metav1.ConditionTrue))
	Eventually(bufferCondition).WithArguments(ctx, "Ready").Should(HaveField("Status", metav1.ConditionTrue))
	Expect(bufferCondition(ctx, "Provisioning").Reason).To(Equal("FitsExistingCapacity"))

	By("the user wants more room, then none, then some again")
	setChunks(ctx, 60)
	holds(2)
	Eventually(s.reserveReady).WithContext(ctx).Should(HaveField("Status", metav1.ConditionTrue))
	setChunks(ctx, 0)
	holds(0)
	Eventually(s.buffersReserves).WithContext(ctx).Should(BeEmpty())
	setChunks(ctx, 1)
	holds(1)
	Expect(s.refused(log)).To(BeEmpty(), "no right is missing in the Shoot")
	Expect(s.managerProblems(ctx)).To(BeEmpty())

	By("the owner wants none any more")
	s.enable(ctx, config(`[{"name":"pool","excess":0}]`))
	Expect(s.buffersReserves(ctx)).To(BeEmpty())
	applyManagedResource(ctx, s.namespace, additions.Name)
	s.gardenletReconciles(ctx)
	holds(0)
	Expect(s.buffersReserves(ctx)).To(BeEmpty())
	Expect(bufferCondition(ctx, "Provisioning").Reason).NotTo(BeEmpty(), "it is still there")
	Expect(s.deployments(ctx)).To(HaveEach(HaveField("Annotations", Not(HaveKey(machine.RequestedExcessAnnotation)))))
}
