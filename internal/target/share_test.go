// SPDX-License-Identifier: Apache-2.0

package target_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// ownedBy makes a pod one of those of an owner.
func ownedBy(owner types.UID) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": "web"}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: owner, Controller: ptr.To(true)}}
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	}
}

var _ = Describe("Pods of one owner", func() {
	var transform func(any) (any, error)
	var remembered func() int
	BeforeEach(func() { transform, remembered = target.Sharing() })

	keep := func(name string, change ...func(*corev1.Pod)) *corev1.Pod {
		GinkgoHelper()
		pod := fixture.Pod(name, change...)
		kept, err := transform(pod)
		Expect(err).NotTo(HaveOccurred())
		Expect(kept).To(Equal(target.StripPod(pod)), "a pod is the same whether or not it shares anything")
		return kept.(*corev1.Pod)
	}
	share := func(a, b *corev1.Pod) bool { return &a.Spec.Containers[0] == &b.Spec.Containers[0] }

	It("share what they have in common, and keep their names, Nodes and states", func() {
		a, b := keep("a", ownedBy("web")), keep("b", ownedBy("web"))
		Expect(share(a, b)).To(BeTrue())
		Expect(&a.OwnerReferences[0]).To(BeIdenticalTo(&b.OwnerReferences[0]))
		on := func(node string, phase corev1.PodPhase) func(*corev1.Pod) {
			return func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = node, phase }
		}
		c, d := keep("c", ownedBy("web"), on("n", corev1.PodRunning)), keep("d", ownedBy("web"), on("m", corev1.PodPending))
		Expect(share(c, d)).To(BeTrue())
		Expect(share(a, keep("e", ownedBy("web")))).To(BeTrue(), "those that wait still do")
	})

	DescribeTable("share all but what differs", func(change func(*corev1.Pod), differs func(p *corev1.Pod) any) {
		first := keep("a", ownedBy("web"))
		other := keep("b", ownedBy("web"), change)
		Expect(differs(other)).NotTo(Equal(differs(first)))
		Expect(differs(keep("c", ownedBy("web"), change))).To(BeIdenticalTo(differs(other)), "those of the last one are shared")
		Expect(&other.OwnerReferences[0]).To(BeIdenticalTo(&first.OwnerReferences[0]))
	},
		Entry("its requests", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
		}, func(p *corev1.Pod) any { return &p.Spec.Containers[0] }),
		Entry("its priority", func(p *corev1.Pod) { p.Spec.Priority = ptr.To[int32](7) }, func(p *corev1.Pod) any { return p.Spec.Priority }),
		Entry("its preemption policy", func(p *corev1.Pod) { p.Spec.PreemptionPolicy = ptr.To(corev1.PreemptNever) }, func(p *corev1.Pod) any { return p.Spec.PreemptionPolicy }),
		Entry("its affinity", func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone"}}}}
		}, func(p *corev1.Pod) any { return p.Spec.Affinity }),
	)

	It("share their requests where each has labels and volumes of its own, as those of a StatefulSet have", func() {
		ordinal := func(name string) func(*corev1.Pod) {
			return func(p *corev1.Pod) {
				p.Labels = map[string]string{"statefulset.kubernetes.io/pod-name": name}
				p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
			}
		}
		Expect(share(keep("a", ownedBy("db"), ordinal("a")), keep("b", ownedBy("db"), ordinal("b")))).To(BeTrue())
	})

	It("share nothing with pods of another owner", func() {
		Expect(share(keep("a", ownedBy("web")), keep("b", ownedBy("shop")))).To(BeFalse())
	})

	It("share without an owner, too", func() {
		none := func(p *corev1.Pod) { ownedBy("web")(p); p.OwnerReferences = nil }
		Expect(share(keep("a", none), keep("b", none))).To(BeTrue())
	})

	It("are returned as they are when a streamed list passes them again", func() {
		once := keep("a", ownedBy("web"))
		again, err := transform(once)
		Expect(err).NotTo(HaveOccurred())
		Expect(again).To(BeIdenticalTo(once))
	})

	It("are not remembered beyond a bound", func() {
		for i := range 3 * target.MaxShapes {
			keep(fmt.Sprint("pod-", i), ownedBy(types.UID(fmt.Sprint(i))))
			Expect(remembered()).To(BeNumerically("<=", target.MaxShapes))
		}
	})
})
