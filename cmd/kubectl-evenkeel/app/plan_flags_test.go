// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var _ = Describe("The flags of plan", func() {
	const split = "annotation applied-replicas none -> 3"

	DescribeTable("are the manager's for zones", func(contains, lacks string, args ...string) {
		s := newScene(everything)
		s.pool("pool")
		s.pool("other")
		out, err := s.answer(strings.Replace(more, "replicas: 2", "replicas: 3", 1), append([]string{"plan", "-f", "-"}, args...)...)
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring(contains))
		Expect(out).NotTo(ContainSubstring(lacks))
	},
		Entry("growth stays where it is requested", "moving", split),
		Entry("--balance-mode splits it", split, "Nothing changes", "--balance-mode=ScaleUp"),
		Entry("--balance-similar-node-groups=false prevents that", "moving", split, "--balance-mode=ScaleUp", "--balance-similar-node-groups=false"),
		Entry("--nodes bounds it", "annotation bounds none -> 1:1:0", split, "--nodes=1:1:default.pool"),
	)

	It("are the manager's for waiting pods", func() {
		s := newScene(everything)
		s.pool("pool")
		core := kubernetes.NewForConfigOrDie(s.ConfigFor("writer")).CoreV1()
		for _, name := range []string{"a", "b"} { // there is room for one of them on the machine that serves
			world.CreateWithStatus(core.Pods(fixture.Namespace), fixture.Pod(name, func(p *corev1.Pod) {
				p.Spec.SchedulerName = corev1.DefaultSchedulerName
				p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
			}))
		}
		bounded := strings.Replace(more, "metadata: {name: pool}, spec: {replicas: 2}", `metadata: {name: pool, annotations: {"evenkeel.machine.sapcloud.io/bounds": "1:5:1"}}`, 1)
		Expect(s.answer(bounded, "plan", "-f", "-")).To(ContainSubstring("2 of 2 machines serve"))
		Expect(s.answer(bounded, "plan", "-f", "-", "--instant-release=false")).NotTo(ContainSubstring("2 of 2 machines serve"))
	})
})

var _ = Describe("The flags of status", func() {
	It("show pools by --pool-label, and all namespaces", func() {
		s := newScene(everything)
		s.pool("a")
		s.pool("b")
		for _, name := range []string{"a", "b"} {
			world.Patch(versioned.NewForConfigOrDie(s.ConfigFor("writer")).MachineV1alpha1().MachineDeployments(fixture.Namespace), name, `{"metadata":{"labels":{"team":%q}}}`, name)
		}
		Expect(s.answer("", "status")).To(ContainSubstring(" 1 pool "))
		Expect(s.answer("", "status", "--pool-label=team")).To(ContainSubstring(" 2 pools "))
		Expect(s.answer("", "status", "-n", "elsewhere")).NotTo(ContainSubstring(" 1 pool "))
		Expect(s.answer("", "status", "-n", "elsewhere", "--all-namespaces")).To(ContainSubstring(" 1 pool "))
	})
})
