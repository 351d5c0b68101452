// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
)

// fast is a client of the hostile user whose requests only the API server limits.
func fast() kubernetes.Interface {
	config := cluster.Config()
	config.QPS = -1
	config.Impersonate = rest.ImpersonationConfig{UserName: stranger, Groups: []string{"system:authenticated"}}
	return kubernetes.NewForConfigOrDie(config)
}

// regroup creates PodGroups, and as many pods, each with a claim to a device. The pods are in pairs that start together, so that half
// of the groups have none.
func regroup(ctx context.Context, groups int) {
	GinkgoHelper()
	client := fast()
	class := &resourceapi.DeviceClass{ObjectMeta: named("any"), Spec: resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: "device.driver != 'none'"}}}}}
	_, err := kube.ResourceV1().DeviceClasses().Create(ctx, class, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	failed := make(chan error, groups)
	workqueue.ParallelizeUntil(ctx, 16, groups, func(i int) {
		g := &schedulingv1alpha2.PodGroup{ObjectMeta: named(groupedName(i))}
		g.Spec.SchedulingPolicy.Gang = &schedulingv1alpha2.GangSchedulingPolicy{MinCount: 2}
		if _, err := client.SchedulingV1alpha2().PodGroups(hostile).Create(ctx, g, metav1.CreateOptions{}); err != nil {
			failed <- err
			return
		}
		c := &resourceapi.ResourceClaim{ObjectMeta: named(groupedName(i)), Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
			Name: "device", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "any", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1},
		}}}}}
		if _, err := client.ResourceV1().ResourceClaims(hostile).Create(ctx, c, metav1.CreateOptions{}); err != nil {
			failed <- err
			return
		}
		p := workload(groupedName(i), huge(i))
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(groupedName(i / 2))}
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimName: ptr.To(groupedName(i))}}
		if _, err := client.CoreV1().Pods(hostile).Create(ctx, p, metav1.CreateOptions{}); err != nil {
			failed <- err
		}
	})
	Expect(failed).NotTo(Receive())
}

// disband deletes what regroup has created, by name: the API server deletes the objects of a collection one after the other, and
// gives up after a minute.
func disband(ctx context.Context, groups int) {
	GinkgoHelper()
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	failed := make(chan error, 3*groups)
	workqueue.ParallelizeUntil(ctx, 16, groups, func(i int) {
		name := groupedName(i)
		for _, err := range []error{
			kube.CoreV1().Pods(hostile).Delete(ctx, name, now),
			kube.ResourceV1().ResourceClaims(hostile).Delete(ctx, name, now),
			kube.SchedulingV1alpha2().PodGroups(hostile).Delete(ctx, name, now),
		} {
			if err != nil {
				failed <- err
			}
		}
	})
	Expect(failed).NotTo(Receive())
}

func groupedName(i int) string { return fmt.Sprint("grouped-", i) }
