// SPDX-License-Identifier: Apache-2.0

package overview_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/evenkeel/evenkeel/internal/overview"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/preparation/plan"
)

// puller adds a pod that pulls images on a Node.
func (w *world) puller(name, node string, state corev1.ContainerState) {
	w.pod(name, node, func(p *corev1.Pod) {
		p.Labels, p.OwnerReferences = map[string]string{plan.Label: name}, owned("Node", "uid")
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: state}}
	})
}

var (
	pulled  = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	pulling = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	failing = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "web:\n not found"}}
)

// wanting has a MachineDeployment ask for something, with a complete reserve of which that many machines are prepared.
func wanting(text string, prepared int32) func(*v1alpha1.MachineDeployment) {
	return func(d *v1alpha1.MachineDeployment) {
		d.Annotations[v1alpha1.PrepareAnnotation] = text
		d.Status.ReadyExcessReplicas = prepared
		d.Status.Conditions = []mcm.MachineDeploymentCondition{{Type: v1alpha1.ReserveReady, Status: mcm.ConditionTrue, Reason: "Complete"}}
	}
}

const web = "[{namespace: shop, images: [web]}]"

var _ = Describe("Images on machines in reserve", func() {
	It("are shown as far as they are", func() {
		w := newWorld()
		w.pool("a", 1, wanting(web, 1))
		for name, state := range map[string][]corev1.ContainerState{"both": {pulled, pulled}, "one": {pulled, pulling}, "none": nil, "failed": {pulled, failing}} {
			w.machine("a", name, held(time.Hour))
			for i, s := range state {
				w.puller(name+string(rune('0'+i)), name, s)
			}
		}
		w.machine("a", "serving")
		w.puller("left", "serving", pulled)
		z := New(w.Objects).Pools[0].Zones[0]
		texts := map[string]string{}
		for _, m := range z.Machines {
			texts[m.Name] = m.Images
		}
		Expect(texts).To(Equal(map[string]string{"both": "pulled", "one": "being pulled", "none": "", "failed": "ImageNotFound: web: not found", "serving": ""}))
		Expect(z.Prepared).To(HaveValue(Equal(1)))
	})

	It("are not counted where none are asked for", func() {
		w := newWorld()
		w.pool("a", 1, wanting("", 1))
		Expect(New(w.Objects).Pools[0].Zones[0].Prepared).To(BeNil())
	})

	DescribeTable("are asked for by Reserves", func(asked bool, change func(*autoscaling.Reserve)) {
		w := newWorld()
		d := w.pool("a", 1, wanting("", 0))
		r := &autoscaling.Reserve{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: "r"}, Spec: autoscaling.ReserveSpec{
			Pools: autoscaling.ReservePools{Names: []string{"a"}}, Prepare: []autoscaling.Preparation{{Namespace: "shop", Images: []string{"web"}}},
		}}
		change(r)
		w.Reserves = []*autoscaling.Reserve{r}
		Expect(New(w.Objects).Pools[0].Zones[0].Prepared != nil).To(Equal(asked))
	},
		Entry("that select the MachineDeployment", true, func(*autoscaling.Reserve) {}),
		Entry("not by those that select others", false, func(r *autoscaling.Reserve) { r.Spec.Pools.Names = []string{"b"} }),
		Entry("not by those of other namespaces", false, func(r *autoscaling.Reserve) { r.Namespace = "other" }),
		Entry("not by those that are suspended", false, func(r *autoscaling.Reserve) { r.Spec.Suspend = true }),
		Entry("not by those of CapacityBuffers", false, func(r *autoscaling.Reserve) { r.Labels = map[string]string{v1beta1.ReserveLabel: "true"} }),
		Entry("not by those that prepare nothing", false, func(r *autoscaling.Reserve) { r.Spec.Prepare = nil }),
	)

	const nobody = "images are requested, but no controller pulls them"
	DescribeTable("are missed if nobody pulls them", func(missed bool, text string, change func(*world)) {
		w := newWorld()
		w.pool("a", 1, wanting(text, 0))
		w.machine("a", "m", held(time.Hour))
		change(w)
		var said []string
		for _, t := range New(w.Objects).Troubles {
			said = append(said, t.What)
		}
		if missed {
			Expect(said).To(ContainElement(nobody))
		} else {
			Expect(said).NotTo(ContainElement(nobody))
		}
	},
		Entry("after a while", true, web, func(*world) {}),
		Entry("not at once", false, web, func(w *world) { held(time.Minute)(w.Machines[0]) }),
		Entry("not if they are pulled", false, web, func(w *world) { w.puller("p", "m", pulling) }),
		Entry("not if pods cannot be read", false, web, func(w *world) { w.PodsUnknown = true }),
		Entry("not if none are asked for", false, "[]", func(*world) {}),
		Entry("not while the reserve is not complete: its condition says what is missing", false, web, func(w *world) { w.Deployments[0].Status.Conditions[0].Status = "False" }),
	)
})
