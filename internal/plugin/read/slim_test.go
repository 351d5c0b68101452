// SPDX-License-Identifier: Apache-2.0

package read_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/internal/plugin/read"
	"github.com/evenkeel/evenkeel/pkg/controller/preparation/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/similar"
	"github.com/evenkeel/evenkeel/test/fixture"
)

var _ = Describe("What is kept of a pod", func() {
	It("includes of the largest that run what the controllers read", func() {
		p := fixture.Pod("p", func(p *corev1.Pod) {
			p.Spec.NodeName = "n"
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			p.Spec.NodeSelector = map[string]string{"a": "b"}
			p.Annotations = map[string]string{similar.DaemonSetPod: "true", pool.SafeToEvict: "true"}
			for i := range 100 {
				p.Annotations[fmt.Sprint("note-", i)] = strings.Repeat("x", 200)
			}
		})
		slim := Pod(p)
		Expect(slim.Size()).To(BeNumerically("<", fit.MaxBytes))
		Expect(pool.ToleratesReserve(slim, []corev1.TaintEffect{corev1.TaintEffectNoSchedule})).To(BeTrue())
		Expect(slim.Spec.NodeSelector).To(HaveKey("a"), "it decides where the pod can move")
		Expect(slim.Annotations).To(Equal(map[string]string{similar.DaemonSetPod: "true", pool.SafeToEvict: "true"}))
	})

	It("includes the Node that it is about to get, so that it does not seem to wait in vain", func() {
		p := fixture.Pod("p", func(p *corev1.Pod) { p.Status.NominatedNodeName = "n" })
		Expect(Pod(p).Status.NominatedNodeName).To(Equal("n"))
	})

	It("includes which containers run beside others, whose requests add up", func() {
		p := fixture.Pod("p", func(p *corev1.Pod) {
			sidecar := p.Spec.Containers[0].DeepCopy()
			sidecar.Name, sidecar.RestartPolicy = "sidecar", ptr.To(corev1.ContainerRestartPolicyAlways)
			p.Spec.InitContainers = []corev1.Container{*sidecar}
		})
		whole := fit.Requests(p.DeepCopy())
		Expect(fit.Requests(Pod(p))).To(Equal(whole))
	})

	It("includes how far it is if it pulls images for a machine in reserve", func() {
		p := fixture.Pod("p", func(p *corev1.Pod) {
			p.Spec.NodeName, p.Labels = "n", map[string]string{plan.Label: "key"}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "wait", ImageID: "long", State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: strings.Repeat("é", 1000)},
			}}}
		})
		other := p.DeepCopy()
		other.Labels = nil
		_, _, failure := plan.Judge(Pod(p))
		Expect(failure.Reason).To(Equal(plan.PullFailed))
		Expect(p.Status.ContainerStatuses[0].State.Waiting.Message).To(And(HavePrefix("é"), HaveLen(1024)))
		Expect(Pod(other).Status.ContainerStatuses).To(BeEmpty())
	})

	It("includes what it has until it is resized, which counts for what else fits beside it", func() {
		amount := func(cpu string) *corev1.ResourceRequirements {
			return &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
		}
		for _, resized := range []func(*corev1.Pod){
			func(p *corev1.Pod) {
				p.Spec.Containers = []corev1.Container{{Name: "work", Resources: *amount("1")}}
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "work", AllocatedResources: amount("3").Requests, Resources: amount("3"), ImageID: "long"}}
			},
			func(p *corev1.Pod) {
				p.Spec.Resources = amount("1")
				p.Status.AllocatedResources, p.Status.Resources = amount("3").Requests, amount("3")
			},
		} {
			p := fixture.Pod("p", resized)
			Expect(Pod(p.DeepCopy()).Status).To(Equal(corev1.PodStatus{}), "it has no Node")
			p.Spec.NodeName = "n"
			slim := Pod(p)
			Expect(fit.Slim(slim).Spec.Containers[0].Resources.Requests.Cpu().Value()).To(BeEquivalentTo(3))
			for _, c := range slim.Status.ContainerStatuses {
				Expect(c.ImageID).To(BeEmpty())
			}
		}
	})
})
