// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/preparation/plan"
)

// prepare has images on the pool's machines in reserve.
func (p pool) prepare(ctx context.Context, text string) {
	GinkgoHelper()
	p.patch(ctx, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, machine.PrepareAnnotation, text))
}

// pulled are the images that pods pull on the pool's Nodes, as "node image", sorted.
func (p pool) pulled(ctx context.Context) ([]string, error) {
	nodes, err := p.nodes(ctx)
	if err != nil {
		return nil, err
	}
	pods, err := kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: plan.Label})
	if err != nil {
		return nil, err
	}
	all := []string{}
	for _, pod := range pods.Items {
		if slices.ContainsFunc(nodes, func(n corev1.Node) bool { return n.Name == pod.Spec.NodeName }) {
			for _, v := range pod.Spec.Volumes {
				all = append(all, pod.Spec.NodeName+" "+v.Image.Reference)
			}
		}
	}
	slices.Sort(all)
	return all, nil
}

// prepared waits until all machines in reserve have this image, and no other Node of the pool pulls anything.
func (p pool) prepared(ctx context.Context, image string) {
	GinkgoHelper()
	Eventually(func() error {
		_, reserve, err := p.split(ctx)
		if err != nil {
			return err
		}
		all := []string{}
		for _, name := range reserve {
			all = append(all, name+" "+image)
		}
		slices.Sort(all)
		pulled, err := p.pulled(ctx)
		if err == nil && !slices.Equal(pulled, all) {
			err = fmt.Errorf("pulled: %s; reserve: %s", strings.Join(pulled, ", "), strings.Join(reserve, ", "))
		}
		return err
	}).WithContext(ctx).Should(Succeed())
}

// newImage updates the work of the pool.
func (p pool) newImage(ctx context.Context, image string) {
	GinkgoHelper()
	_, err := kube.AppsV1().Deployments(namespace).Patch(ctx, "work-"+p.name, types.StrategicMergePatchType,
		fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":%q}]}}}}`, image), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("A reserve that is prepared", Label("ours", "images"), func() {
	It("has the images of a CapacityBuffer's workload as they change, also on the machines that come", func(ctx context.Context) {
		p := newPool(ctx, "prepared", 2, withBounds("1:8"))
		p.work(ctx, 2)
		p.buffer(ctx, 100, func(b *v1beta1.CapacityBuffer) {
			b.Annotations = map[string]string{v1beta1.PrepareAnnotation: "true"}
		})
		p.rests(ctx, 2, 2, "Complete")
		p.prepared(ctx, "none")
		p.newImage(ctx, "none:2")
		p.prepared(ctx, "none:2")
		kubectl(ctx, "rollout", "status", "deployment", "work-"+p.name, "--timeout=2m") // else its last old pod needs a machine, too
		p.moreWork(ctx, 3)
		p.rests(ctx, 3, 3, "Complete")
		p.prepared(ctx, "none:2")
		_, err := machines.CapacityBufferV1beta1().CapacityBuffers(namespace).Patch(ctx, p.name, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, v1beta1.PrepareAnnotation), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(p.pulled).WithContext(ctx).Should(BeEmpty())
	})
})

var _ = Describe("In the long run, a reserve that is prepared", Label("ours", "long"), func() {
	It("is prepared anew in a rollout, and holds no drain", func(ctx context.Context) {
		p := newPool(ctx, "prepared-rollout", 2, excess(1))
		p.rests(ctx, 2, 1, "Complete")
		p.work(ctx, 2)
		p.prepare(ctx, "[{namespace: default, images: [web]}]")
		p.prepared(ctx, "web")
		p.newTemplate(ctx)
		p.rollsOut(ctx, 2, 1)
		p.prepared(ctx, "web")
	})

	It("leaves nothing when it goes, and is prepared when it comes again", func(ctx context.Context) {
		p := newPool(ctx, "prepared-asleep", 1, withBounds("0:4:2"))
		p.rests(ctx, 1, 2, "Complete")
		p.prepare(ctx, "[{namespace: default, images: [web]}]")
		p.prepared(ctx, "web")
		p.patch(ctx, fmt.Sprintf(`{"metadata":{"annotations":{%q:"0:0:0"}},"spec":{"replicas":0}}`, machine.BoundsAnnotation))
		Eventually(p.nodes).WithContext(ctx).Should(BeEmpty())
		Eventually(func() ([]corev1.Pod, error) {
			list, err := kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: plan.Label})
			return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !strings.HasPrefix(pod.Spec.NodeName, p.name) }), err
		}).WithContext(ctx).Should(BeEmpty())
		p.patch(ctx, fmt.Sprintf(`{"metadata":{"annotations":{%q:"0:4:2"}},"spec":{"replicas":1}}`, machine.BoundsAnnotation))
		p.rests(ctx, 1, 2, "Complete")
		p.prepared(ctx, "web")
	})
})
