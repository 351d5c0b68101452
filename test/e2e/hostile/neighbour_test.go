// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/provider/virtual"
)

const (
	pool, floor = "neighbour", "floor"
	// spares is how many machines the pool has in reserve.
	spares = 2
	cpus   = 4
)

// createPool makes a pool with one machine that serves, which is full, and a reserve. The pods of the neighbour have a priority:
// kube-scheduler looks at pods of one priority one after the other, and writes to each that it refuses, 50 in a second, so thousands of
// them keep it from all others for minutes, whatever releases machines.
func createPool(ctx context.Context) {
	GinkgoHelper()
	_, err := kube.SchedulingV1().PriorityClasses().Create(ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: pool}, Value: 1}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: pool}, StringData: map[string]string{"userData": "none"}}
	_, err = kube.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = ours.MachineV1alpha1().MachineClasses(namespace).Create(ctx, &machine.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Name: pool}, Provider: "virtual", SecretRef: &corev1.SecretReference{Name: pool, Namespace: namespace},
		ProviderSpec: runtime.RawExtension{Raw: fmt.Appendf(nil,
			`{"zone":%q,"region":"local","instanceType":"virtual.large","capacity":{"cpu":"%d","memory":"16Gi"},"bootDelay":"1s","taintsAtRegistration":true}`, pool, cpus)},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	d := &machine.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: pool, Annotations: map[string]string{machine.BoundsAnnotation: fmt.Sprintf("1:1000:%d", spares)}}}
	labels := map[string]string{"name": pool}
	d.Spec.Replicas, d.Spec.Selector = 1, &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Strategy.Type = "RollingUpdate"
	d.Spec.Strategy.RollingUpdate = &machine.RollingUpdateMachineDeployment{UpdateConfiguration: machine.UpdateConfiguration{
		MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0))}}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Class = machine.ClassSpec{Kind: "MachineClass", Name: pool}
	_, err = ours.MachineV1alpha1().MachineDeployments(namespace).Create(ctx, d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	awaitReserve(ctx)
	bind(ctx, "first", pool, nil)
}

func deployment(ctx context.Context) *machine.MachineDeployment {
	GinkgoHelper()
	d, err := ours.MachineV1alpha1().MachineDeployments(namespace).Get(ctx, pool, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return d
}

func awaitReserve(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() int32 { return deployment(ctx).Status.ReadyExcessReplicas }).WithContext(ctx).WithTimeout(5 * time.Minute).Should(BeEquivalentTo(spares))
}

// createFloorNode creates a Node without a Machine, with the taint of the reserve.
func createFloorNode(ctx context.Context, name string) {
	GinkgoHelper()
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(fmt.Sprint(cpus)), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110")}
	_, err := kube.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{corev1.LabelTopologyZone: floor, corev1.LabelHostname: name},
			Annotations: map[string]string{virtual.KwokAnnotation: virtual.KwokFake},
		},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: machine.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
		}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// open takes the taint off a Node by hand.
func open(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := kube.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{})
		return err
	}
}

// bind creates a pod that fills a machine of a zone and returns how long it took until it was bound. When it is found unschedulable,
// something may be done about it.
func bind(ctx context.Context, name, zone string, refused func(context.Context) error) time.Duration {
	GinkgoHelper()
	pods := kube.CoreV1().Pods(namespace)
	pod, err := pods.Create(ctx, workload(name, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(fmt.Sprint(cpus))}, func(p *corev1.Pod) {
		p.Spec.NodeSelector, p.Spec.PriorityClassName = map[string]string{corev1.LabelTopologyZone: zone}, pool
	}), metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	begun := time.Now()
	events, err := pods.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: pod.ResourceVersion})
	Expect(err).NotTo(HaveOccurred())
	defer events.Stop()
	for deadline := time.After(patience); ; {
		select {
		case e := <-events.ResultChan():
			pod, ok := e.Object.(*corev1.Pod)
			Expect(ok).To(BeTrue(), "%v", e.Object)
			if pod.Spec.NodeName != "" {
				return time.Since(begun)
			}
			if refused != nil && unschedulable(pod) {
				Expect(refused(ctx)).To(Succeed())
				refused = nil
			}
		case <-deadline:
			Fail(name + " was not bound")
		}
	}
}

func unschedulable(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable
	})
}

// workload is a pod that does nothing.
func workload(name string, requests corev1.ResourceList, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}}
	p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
	p.Spec.Containers = []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Requests: requests}}}
	for _, f := range change {
		f(p)
	}
	return p
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}
