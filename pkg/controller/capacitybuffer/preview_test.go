// SPDX-License-Identifier: Apache-2.0

package capacitybuffer_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	. "github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer"
	. "github.com/evenkeel/evenkeel/test/builders/capacitybuffer"
	"github.com/evenkeel/evenkeel/test/sim"
)

// shown are a MachineDeployment of machines of four CPUs, and a buffer.
func shown(b *v1beta1.CapacityBuffer) Objects {
	d := Site("a", "cpu=4", 20).Deployment
	d.Spec.Template.Spec.Class.Name = "large"
	class := &mcm.MachineClass{ObjectMeta: metav1.ObjectMeta{Name: "large", Namespace: Namespace}, NodeTemplate: &mcm.NodeTemplate{Capacity: Amounts("cpu=4,memory=16Gi,pods=110")}}
	return Objects{Buffers: []*v1beta1.CapacityBuffer{b}, Deployments: []*machine.MachineDeployment{d}, Classes: []*mcm.MachineClass{class}}
}

var _ = Describe("A preview", func() {
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: Shop, Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](10), Template: corev1.PodTemplateSpec{Spec: PodSpec("cpu=2")},
	}}
	refers := References{Objects: map[string][]any{"Deployment": {web}}}

	It("decides as the controller does, and carries the plan out on copies", func() {
		p, err := NewPreview(Namespace, refers)
		Expect(err).NotTo(HaveOccurred())
		b := NewBuffer("b", "{"+ByWorkload+", percentage: 50}").Object
		o := shown(b)
		Expect(ReferenceKinds(b)).To(ConsistOf("Deployment", KindQuota))
		Expect(p.SetObjects(o, Now)).To(Succeed())
		plan := p.Plan()
		Expect(Requests(plan)).To(Equal("a=3"))
		o.Reserves = []*autoscaling.Reserve{plan.Requests[0].After(Namespace)}
		Expect(o.Reserves[0].Spec.Replicas).To(BeEquivalentTo(3))
		Expect(Standing(plan.Decisions[0].After(Now))).To(Equal("5 Provisioning=RequiresNewCapacity Ready=Growing"))
		Expect(b.Status).To(BeZero(), "what was shown stays as it was")
		Expect(p.SetObjects(o, Now)).To(Succeed())
		Expect(p.Plan().Requests).To(BeEmpty())

		By("fewer chunks, and then none")
		o.Buffers[0] = NewBuffer("b", "{"+ByWorkload+", percentage: 10}").Object
		Expect(p.SetObjects(o, Now)).To(Succeed())
		Expect(p.Plan().Requests[0].After(Namespace).Spec.Replicas).To(BeEquivalentTo(1))
		Expect(o.Reserves[0].Spec.Replicas).To(BeEquivalentTo(3))
		o.Buffers = nil
		Expect(p.SetObjects(o, Now)).To(Succeed())
		Expect(p.Plan().Requests[0].After(Namespace)).To(BeNil())
	})

	It("says what it may not read, and does not take it for missing", func() {
		p, err := NewPreview(Namespace, References{Unread: map[string]string{"Deployment": "no right"}})
		Expect(err).NotTo(HaveOccurred())
		Expect(p.SetObjects(shown(NewBuffer("b", "{"+ByWorkload+", replicas: 1}").Object), Now)).To(Succeed())
		Expect(p.Plan().Decisions[0].Problem).To(And(HaveField("Reason", reason.RightMissing), HaveField("Message", "no right")))
	})

	It("reads the scale of a workload of another kind", func(ctx SpecContext) {
		server := sim.New(sim.Options{Resources: served})
		DeferCleanup(server.Close)
		config := server.ConfigFor("plugin")
		scales, err := NewScaleReader(config, kubernetes.NewForConfigOrDie(config))
		Expect(err).NotTo(HaveOccurred())
		p, err := NewPreview(Namespace, References{Scales: scales})
		Expect(err).NotTo(HaveOccurred())
		b := ofRollout("b")
		Expect(ReadsScale(b)).To(BeTrue())
		Expect(p.SetObjects(shown(b), Now)).To(Succeed())
		Expect(p.Plan().Decisions[0].Problem.Reason).To(Equal(reason.WorkloadUnread))
		p.ReadScales(ctx)
		Expect(p.Plan().Decisions[0].Problem).To(HaveField("Message", HavePrefix("Rollout web does not exist")))
	})
})
