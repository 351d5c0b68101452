// SPDX-License-Identifier: Apache-2.0

package dryrun_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/internal/plugin/dryrun"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// uneven has two zones with three machines and one, which are kept even. A small pod runs on each.
func uneven() *Objects {
	GinkgoHelper()
	o := stringAt()
	for name, n := range map[string]int{"z1": 3, "z2": 1} {
		pool(o, name, n, 0, func(d *api.MachineDeployment) {
			d.Labels = map[string]string{"pool": "p"}
			d.Annotations = map[string]string{api.BalanceAnnotation: string(api.BalanceContinuous), api.AppliedReplicasAnnotation: fmt.Sprint(n)}
		})
	}
	for _, p := range o.Pods {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web", Controller: ptr.To(true)}}
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("10m")}
	}
	return o
}

// unread has a kind be one that may not be listed.
func unread(o *Objects, kind string) *Objects {
	o.Unread = map[string]string{kind: "no rights to list them"}
	switch kind {
	case "nodes":
		o.Nodes = nil
	case "pods":
		if o.Pods != nil {
			o.Pods, o.Own = nil, nil
		}
	case "pods of the control cluster":
		o.Own = nil
	case "poddisruptionbudgets":
		o.Budgets = nil
	case "csidrivers":
		o.Drivers = nil
	}
	return o
}

// waitingFor has a pod wait that needs a whole machine, and a volume of a class.
func waitingFor(o *Objects, class string) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "data"}}
	claim.Spec.StorageClassName, claim.Status.Phase = &class, corev1.ClaimPending
	o.Claims = append(o.Claims, claim)
	o.StorageClasses = append(o.StorageClasses, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "csi.example.com", VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
	})
	o.Drivers = append(o.Drivers, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "csi.example.com"}})
	o.Pods = append(o.Pods, fixture.Pod("late", func(p *corev1.Pod) {
		p.Spec.SchedulerName, p.Status.Phase = "default-scheduler", corev1.PodPending
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *o.Nodes[0].Status.Allocatable.Cpu()
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	}))
}

var _ = Describe("A forecast of what may not be read", func() {
	It("moves machines to another zone, but not where Nodes, pods or budgets are not known", func() {
		_, text := told(*uneven(), "")
		Expect(text).To(ContainSubstring("z1: 2 of 2 machines serve"))
		for _, kind := range []string{"nodes", "pods", "poddisruptionbudgets"} {
			f, text := told(*unread(uneven(), kind), "")
			Expect(f.End.Pools).To(HaveEach(HaveField("Same", true)), kind+": "+text)
		}
	})

	It("moves none against a budget, as one that may be read shows", func() {
		o := uneven()
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "web"}}
		budget.Spec.Selector = &metav1.LabelSelector{}
		o.Budgets = append(o.Budgets, budget)
		f, text := told(*o, "")
		Expect(f.End.Pools).To(HaveEach(HaveField("Same", true)), text)
	})

	It("releases no machine for a volume whose driver is not known, nor for a pod where Nodes are not", func() {
		for kind, replicas := range map[string]int{"": 3, "csidrivers": 2, "nodes": 2} {
			o := stringAt()
			pool(o, "p", 2, 1, bounds("1:9:1"))
			waitingFor(o, "fast")
			f, text := told(*unread(o, kind), "")
			Expect(f.End.Pools[0].Replicas).To(Equal(replicas), kind+": "+text)
		}
	})

	DescribeTable("omits Balancers, and reports that", func(kind string, same, omitted bool) {
		o := shop(2, 2)
		o.Balancers[0].Spec.Replicas = ptr.To[int32](9)
		if !same {
			o.Pods = nil
		}
		f, _ := told(*unread(o, kind), "")
		if !omitted {
			Expect(f.End.Balancers).To(HaveLen(1))
			return
		}
		Expect(f.End.Balancers).To(BeEmpty())
		Expect(f.Notes).To(ContainElement("Balancers are omitted: pods or autoscalers of what they scale could not be read"))
	},
		Entry("where pods of both clusters are not known", "pods", true, true),
		Entry("where pods of the control cluster are not known", "pods of the control cluster", false, true),
		Entry("where autoscalers are not known", "horizontalpodautoscalers", true, true),
		Entry("but not where pods of the target cluster are not known", "pods", false, false),
	)

	DescribeTable("leaves the machines of CapacityBuffers as they are", func(kind string, gone func(*Objects)) {
		o := buffered(map[string]int{"z1": 1})
		keepBuffer(o, "web", 2, 1)
		gone(o)
		f, text := told(*unread(o, kind), "")
		Expect(short(f.End.Pools[0])).To(Equal("R1 A1 serve a reserve b leave  new 0+0"), text)
		Expect(f.End.Buffers).To(BeEmpty())
	},
		Entry("where buffers are not known", "capacitybuffers", func(o *Objects) { o.Buffers = nil }),
		Entry("where Reserves are not known", "reserves", func(o *Objects) { o.Reserves = nil }),
		Entry("where Nodes are not known", "nodes", func(*Objects) {}),
		Entry("where pods are not known", "pods", func(*Objects) {}),
	)
})
