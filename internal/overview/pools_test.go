// SPDX-License-Identifier: Apache-2.0

package overview_test

import (
	"fmt"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	. "github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/fixture"
)

func nameless(d *v1alpha1.MachineDeployment) { d.Labels = nil }

func classed(name string) func(*v1alpha1.MachineDeployment) {
	return func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = name }
}

// class adds a MachineClass that describes its machines.
func (w *world) class(name, place, cpu string) {
	w.Classes = append(w.Classes, fixture.MachineClass(name, func(c *mcm.MachineClass) {
		c.NodeTemplate = &mcm.NodeTemplate{
			Capacity:     corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("16Gi")},
			InstanceType: "large", Region: "r", Zone: place,
		}
	}))
}

// outline is pools with their zones, in one line each.
func outline(v Overview) []string {
	lines := []string{}
	for _, p := range v.Pools {
		line := p.Namespace + "/" + p.Name + ":"
		for _, z := range p.Zones {
			line += fmt.Sprintf(" %s@%s", z.Name, z.Zone)
		}
		lines = append(lines, line)
	}
	return lines
}

var _ = Describe("Pools", func() {
	It("are those of a label, on the MachineDeployment or in its node template", func() {
		w := newWorld()
		w.pool("b", 1)
		w.pool("a", 1, nameless, func(d *v1alpha1.MachineDeployment) {
			d.Spec.Template.Spec.NodeTemplateSpec.Labels = map[string]string{DefaultPoolLabel: "pool", corev1.LabelTopologyZone: "z9"}
		})
		w.pool("c", 1, func(d *v1alpha1.MachineDeployment) { d.Labels[DefaultPoolLabel] = "another" })
		w.pool("d", 1, func(d *v1alpha1.MachineDeployment) { d.Namespace = "elsewhere" })
		Expect(outline(New(w.Objects))).To(Equal([]string{"default/another: c@", "default/pool: b@ a@z9", "elsewhere/pool: d@"}))
	})

	It("are named by other labels where that was said", func() {
		w := newWorld()
		w.PoolLabels = []string{"first", "second"}
		w.pool("a", 1, func(d *v1alpha1.MachineDeployment) { d.Labels = map[string]string{"second": "x", "first": "y"} })
		w.pool("b", 1, func(d *v1alpha1.MachineDeployment) { d.Labels = map[string]string{"second": "x"} })
		Expect(outline(New(w.Objects))).To(Equal([]string{"default/x: b@", "default/y: a@"}))
	})

	It("are who is alike where there is no label, and go by what their names begin with", func() {
		w := newWorld()
		w.class("l1", "z1", "4")
		w.class("l2", "z2", "4")
		w.class("xl", "z1", "8")
		w.pool("shoot-worker-z1", 1, nameless, classed("l1"))
		w.pool("shoot-worker-z2", 1, nameless, classed("l2"))
		w.pool("shoot-big-z1", 1, nameless, classed("xl"))
		w.pool("unknown", 1, nameless, classed("none"))
		Expect(outline(New(w.Objects))).To(Equal([]string{
			"default/shoot-big-z1: shoot-big-z1@z1", "default/shoot-worker: shoot-worker-z1@z1 shoot-worker-z2@z2", "default/unknown: unknown@",
		}))
	})

	It("have zones where their Nodes say they are", func() {
		w := newWorld()
		w.class("l1", "z1", "4")
		w.pool("a", 1, classed("l1"))
		w.machine("a", "m")
		Expect(outline(New(w.Objects))).To(Equal([]string{"default/pool: a@zone-of-a"}))
	})

	It("are skewed by the replicas of their zones", func() {
		w := newWorld()
		w.pool("a", 3)
		w.pool("b", 7)
		w.pool("c", 5)
		Expect(New(w.Objects).Pools[0].Skew).To(Equal(4))
	})

	It("show the excess that was asked for all zones", func() {
		w := newWorld()
		for i, text := range []string{"4", "4", "10%"} {
			w.pool(fmt.Sprint("p", i), 3, func(d *v1alpha1.MachineDeployment) {
				d.Spec.Template.Spec.NodeTemplateSpec.Annotations = map[string]string{v1alpha1.PoolExcessAnnotation: text}
			})
		}
		Expect(New(w.Objects).Pools[0].Excess).To(Equal("10% or 4"))
	})

	It("roll out while more than one MachineSet is in use", func() {
		w := newWorld()
		d := w.pool("a", 3)
		Expect(New(w.Objects).Pools[0].Zones[0].Rollout).To(BeFalse())
		w.set(d, "a-second")
		w.Sets[1].Spec.Template.Spec.Class.Name = "older"
		Expect(New(w.Objects).Pools[0].Zones[0].Rollout).To(BeTrue())
		w.Sets[1].Spec.Replicas = 0
		Expect(New(w.Objects).Pools[0].Zones[0].Rollout).To(BeFalse())
	})

	It("are nothing where nothing is", func() {
		v := New(Objects{At: now})
		Expect(v.Pools).To(Equal([]Pool{}))
		Expect(v.Balancers).To(Equal([]Balancer{}))
		Expect(v.Federated).To(Equal([]Federated{}))
		Expect(v.Troubles).To(Equal([]Trouble{}))
		Expect(v.PodsWaiting).To(BeZero())
	})
})

var _ = DescribeTable("The excess of a zone is",
	func(x int, asked string, change ...func(*v1alpha1.MachineDeployment)) {
		w := newWorld()
		w.class("large", "z", "4")
		w.pool("a", 10, append(change, classed("large"))...)
		z := New(w.Objects).Pools[0].Zones[0]
		Expect(z.Excess).To(Equal(x))
		Expect(z.Asked).To(Equal(asked))
	},
	Entry("none if none is requested", 0, ""),
	Entry("that of the field", 3, "3", excess(3)),
	Entry("that of a field that was removed", 3, "3", annotated(v1alpha1.WantedExcessAnnotation, "3")),
	Entry("none if the field is 0", 0, "0", excess(0), annotated(v1alpha1.WantedExcessAnnotation, "3")),
	Entry("that of bounds before the field", 2, "2", excess(3), bounds("1:20:2")),
	Entry("a percentage, rounded up", 2, "15%", bounds("1:20:15%")),
	Entry("as many as cover resources", 3, "cpu=9", bounds("1:20:cpu=9")),
	Entry("what max leaves of it", 1, "5", bounds("1:11:5")),
	Entry("the field, limited by bounds without a third part", 1, "5", bounds("1:11"), excess(5)),
	Entry("its share of the pool's before all", 4, "4", bounds("1:20:2"), excess(3), annotated(v1alpha1.ShareAnnotation, "4")),
	Entry("none while the reserve is given up", 0, "3", excess(3), annotated(v1alpha1.DrainReserveAnnotation, "true")),
	Entry("what is applied, where bounds is invalid", 7, "nonsense", bounds("nonsense"), annotated(v1alpha1.AppliedExcessAnnotation, "7")),
	Entry("what is applied, where a share is invalid", 7, "many", annotated(v1alpha1.ShareAnnotation, "many"), annotated(v1alpha1.AppliedExcessAnnotation, "7")),
	Entry("what max leaves of what is applied, where its share is invalid", 2, "many", annotated(v1alpha1.ShareAnnotation, "many"), annotated(v1alpha1.AppliedExcessAnnotation, "7,max=12")),
	Entry("none while the reserve is given up, even if bounds are invalid", 0, "nonsense",
		bounds("nonsense"), annotated(v1alpha1.AppliedExcessAnnotation, "7"), annotated(v1alpha1.DrainReserveAnnotation, "true")),
	Entry("none while the reserve is given up, even if the capacity of a machine is unknown", 0, "gpu=2",
		bounds("1:20:gpu=2"), annotated(v1alpha1.AppliedExcessAnnotation, "7,max=20"), annotated(v1alpha1.DrainReserveAnnotation, "true")),
	Entry("what is applied, if the capacity of a machine is unknown", 7, "gpu=2", bounds("1:20:gpu=2"), annotated(v1alpha1.AppliedExcessAnnotation, "7,max=20")),
)

// counted is how many devices each Node has.
type counted int

func (c counted) Count(string, string) (int, string) { return int(c), "" }

var _ = It("The excess in devices is as many machines as have these, and what is applied if they are not read", func() {
	w := newWorld()
	w.set(w.pool("a", 3, bounds("1:20:devices.gpu=16"), annotated(v1alpha1.AppliedExcessAnnotation, "7,max=20")), "a-set")
	w.machine("a", "m")
	Expect(New(w.Objects).Pools[0].Zones[0].Excess).To(Equal(7))
	w.Devices = counted(8)
	Expect(New(w.Objects).Pools[0].Zones[0].Excess).To(Equal(2))
})

var _ = It("The excess in resources is computed for machines of the current template, as by the controller", func() {
	w := newWorld()
	w.class("large", "z", "8")
	d := w.pool("a", 3, classed("large"), bounds("1:20:cpu=16"))
	w.set(d, "older-set")
	w.Sets[1].Spec.Template.Spec.Class.Name = "small"
	w.machine("older", "m") // its Node has 4 CPUs
	z := New(w.Objects).Pools[0].Zones[0]
	Expect(z.Rollout).To(BeTrue())
	Expect(z.Excess).To(Equal(2), "of 8 CPUs each")
})

var _ = It("A zone shows bounds and what is applied", func() {
	w := newWorld()
	w.pool("a", 3, bounds("2:9:1"), annotated(v1alpha1.AppliedExcessAnnotation, "1,max=9"), ready("True", "Complete", "3 of 3", 0))
	z := New(w.Objects).Pools[0].Zones[0]
	Expect(z.Bounds).To(Equal(&Bounds{Min: 2, Max: 9}))
	Expect(z.Applied).To(Equal(1))
	Expect(z.ReserveReady).To(Equal(Condition{Status: "True", Reason: "Complete", Message: "3 of 3", Since: now}))
})
