// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"fmt"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// counts are devices by node/class; a text is why they are not known.
type counts map[string]any

func (c counts) Count(node, class string) (int, string) {
	switch has := c[node+"/"+class].(type) {
	case int:
		return has, ""
	case string:
		return 0, has
	}
	return 0, "no devices of " + class
}

// inDevices has a world with an excess, whose Nodes have these devices.
func inDevices(excess string, has counts) *world {
	w := newWorld()
	metav1.SetMetaDataAnnotation(&w.deployment.ObjectMeta, machine.BoundsAnnotation, "0:10:"+excess)
	w.Devices = has
	return w
}

func settled(n *corev1.Node) {
	n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon.Add(-time.Hour))
}

func declaring(n int) func(*world) {
	return func(w *world) {
		w.Classes = []*mcm.MachineClass{fixture.MachineClass("new", func(c *mcm.MachineClass) {
			c.NodeTemplate = &mcm.NodeTemplate{VirtualCapacity: corev1.ResourceList{"devices.gpu": resource.MustParse(fmt.Sprint(n))}}
		})}
	}
}

var _ = DescribeTable("A machine has devices",
	func(excess string, has counts, add func(*world), want, unknown string) {
		w := inDevices(excess, has)
		add(w)
		s := w.read()
		var shown string
		for _, class := range pool.DeviceClasses(w.deployment) {
			if q, is := s.Allocatable[machine.DevicesOf(class)]; is {
				shown += fmt.Sprintf("%s=%s ", class, q.String())
			}
		}
		Expect(shown).To(Equal(want))
		Expect(s.Unknown.String()).To(ContainSubstring(unknown))
		if unknown == "" {
			Expect(s.Unknown).To(BeEmpty())
		}
	},
	Entry("as a ready Node has", "devices.gpu=8", counts{"a/gpu": 4}, func(w *world) {
		w.machine("new", "a")
		w.node("a", settled)
	}, "gpu=4 ", ""),
	Entry("of several classes", "devices.gpu=8,devices.nic.example.com=10%", counts{"a/gpu": 4, "a/nic.example.com": 2}, func(w *world) {
		w.machine("new", "a")
		w.node("a", settled)
	}, "gpu=4 nic.example.com=2 ", ""),
	Entry("of one of two classes", "devices.gpu=8,devices.nic=1", counts{"a/gpu": 4}, func(w *world) {
		w.machine("new", "a")
		w.node("a", settled)
	}, "gpu=4 ", "devices.nic: no devices of nic"),
	Entry("as others have, while the driver of the first has not started", "devices.gpu=8", counts{"b/gpu": 4}, func(w *world) {
		w.machine("new", "a")
		w.node("a", settled)
		w.machine("new", "b")
		w.node("b", settled)
	}, "gpu=4 ", ""),
	Entry("as machines of the present template have, rather than others", "devices.gpu=8", counts{"a/gpu": 4, "b/gpu": 8}, func(w *world) {
		w.machine("old", "a")
		w.node("a", settled)
		w.machine("new", "b")
		w.node("b", settled)
	}, "gpu=8 ", ""),
	Entry("as machines of an older template have, if there are no others", "devices.gpu=8", counts{"a/gpu": 4}, func(w *world) {
		w.machine("old", "a")
		w.node("a", settled)
		w.machine("new", "b")
	}, "gpu=4 ", ""),
	Entry("not as a Node has that is not ready", "devices.gpu=8", counts{"a/gpu": 4}, func(w *world) {
		w.machine("new", "a")
		w.node("a", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse })
	}, "", "devices.gpu: no Node is ready that shows how many a machine has: wait for one, or add devices.gpu to virtualCapacity in the nodeTemplate of the MachineClass"),
	Entry("as the MachineClass declares, if no Node is ready", "devices.gpu=8", counts{}, declaring(2), "gpu=2 ", ""),
	Entry("as the MachineClass declares, until a driver has started", "devices.gpu=8", counts{"a/gpu": "being replaced"}, func(w *world) {
		declaring(2)(w)
		w.machine("new", "a")
		w.node("a", func(n *corev1.Node) { n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon) })
	}, "gpu=2 ", ""),
	Entry("as a Node has, whatever the MachineClass declares", "devices.gpu=8", counts{"a/gpu": 4}, func(w *world) {
		declaring(2)(w)
		w.machine("new", "a")
		w.node("a", func(n *corev1.Node) { n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon) })
	}, "gpu=4 ", ""),
	Entry("for an unknown reason, as its Node says", "devices.gpu=8", counts{"a/gpu": "being replaced"}, func(w *world) {
		w.machine("new", "a")
		w.node("a", settled)
	}, "", "devices.gpu: being replaced"),
)

var _ = It("A Node is not changed by devices that are counted", func() {
	w := inDevices("devices.gpu=8", counts{"a/gpu": 4})
	w.machine("new", "a")
	w.node("a", settled, offering("7"))
	w.read()
	Expect(w.Nodes[0].Status.Allocatable).NotTo(HaveKey(corev1.ResourceName("devices.gpu")))
})

var _ = DescribeTable("DeviceClasses are named",
	func(own, pooled, bounds string, want ...string) {
		w := newWorld()
		for key, text := range map[string]string{machine.PoolExcessAnnotation: pooled, machine.BoundsAnnotation: bounds} {
			if text != "" {
				metav1.SetMetaDataAnnotation(&w.deployment.Spec.Template.Spec.NodeTemplateSpec.ObjectMeta, key, text)
			}
		}
		if own != "" {
			metav1.SetMetaDataAnnotation(&w.deployment.ObjectMeta, machine.BoundsAnnotation, own)
		}
		Expect(pool.DeviceClasses(w.deployment)).To(HaveExactElements(want))
	},
	Entry("by its bounds", "0:1:max(1,devices.gpu=1)", "", "", "gpu"),
	Entry("by the excess of its pool", "", "devices.gpu=10%", "", "gpu"),
	Entry("by the bounds of its pool", "", "", "0:1:devices.gpu=1", "gpu"),
	Entry("by all, each once", "0:1:devices.gpu=1,devices.b=1", "devices.gpu=1", "0:1:devices.a=1", "a", "b", "gpu"),
)

var _ = DescribeTable("DeviceClasses are not named",
	func(own string) {
		w := newWorld()
		metav1.SetMetaDataAnnotation(&w.deployment.ObjectMeta, machine.BoundsAnnotation, own)
		Expect(pool.DeviceClasses(w.deployment)).To(BeEmpty())
	},
	Entry("without an excess", "0:1"),
	Entry("by other resources", "0:1:cpu=1"),
	Entry("by an extended resource of a domain", "0:1:devices.example.com/gpu=1"),
	Entry("by text that is invalid", "0:1:devices.=1"),
)
