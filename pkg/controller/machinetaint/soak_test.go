// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/internal/gen"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
)

var _ = Describe("In the long run", func() {
	It("keeps of Nodes and pods what it reads, and that is bounded", func() {
		onItsOwn(1, 0, machinetaint.Options{}, func(a *alone) {
			large := strings.Repeat("x", 200_000)
			pod := gen.Pod("p", func(p *corev1.Pod) {
				p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: large, "note": large}
				p.Labels, p.Finalizers = map[string]string{"a": large}, []string{large}
				p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "a", Value: large}}
				for i := range 1000 {
					p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: fmt.Sprint("k", i), Operator: corev1.TolerationOpExists})
				}
				p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: api.ReserveTaintKey, Operator: corev1.TolerationOpExists})
			})
			slim, err := a.taint.StripPod(pod)
			Expect(err).NotTo(HaveOccurred())
			Expect(slim.(*corev1.Pod).Size()).To(BeNumerically("<", 1000))
			Expect(slim.(*corev1.Pod).Spec.Tolerations).To(HaveLen(1))
			Expect(slim.(*corev1.Pod).Annotations).To(HaveKey(corev1.MirrorPodAnnotationKey))
			node := gen.Node("n", func(n *corev1.Node) {
				n.Annotations = map[string]string{api.ReserveAnnotation: "now", "note": large}
				n.Labels = map[string]string{"a": large}
				for i := range 1000 {
					n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprint(i)}})
				}
			})
			slim, err = machinetaint.StripNode(node)
			Expect(err).NotTo(HaveOccurred())
			Expect(slim.(*corev1.Node).Size()).To(BeNumerically("<", 1000))
			Expect(slim.(*corev1.Node).Annotations).To(Equal(map[string]string{api.ReserveAnnotation: "now"}))
			Expect(slim.(*corev1.Node).Status.Allocatable).To(Equal(node.Status.Allocatable))
		})
	})
})
