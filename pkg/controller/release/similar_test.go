// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/release"
	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/test/builders/release"
)

// addZone adds a pool with one machine in reserve, and so many full ones that serve.
func addZone(o *Objects, name string, serving int, change func(*v1alpha1.MachineDeployment)) {
	z := spare()
	d, set := z.Deployments[0], z.Sets[0]
	d.Name, d.UID, set.Name, set.UID = name, types.UID(name), name, types.UID(name)
	d.Spec.Replicas = int32(serving)
	d.Annotations[v1alpha1.AppliedReplicasAnnotation] = "9"
	change(d)
	set.OwnerReferences[0].UID = d.UID
	one, node := z.Machines[0], z.Nodes[0]
	for i := range serving + 1 {
		m, n := one.DeepCopy(), node.DeepCopy()
		m.Name = name + string(rune('0'+i))
		n.Name, m.Labels[mcm.NodeLabelKey], m.Spec.ProviderID, m.OwnerReferences[0].UID = m.Name, m.Name, m.Name, set.UID
		if i > 0 {
			m.Annotations, n.Annotations, n.Spec.Taints = nil, nil, nil
			o.Pods = append(o.Pods, Pod("on-"+m.Name, 4000, func(p *corev1.Pod) { p.Spec.NodeName = m.Name }))
		}
		o.Machines, o.Nodes = append(o.Machines, m), append(o.Nodes, n)
	}
	o.Deployments, o.Sets = append(o.Deployments, d), append(o.Sets, set)
}

func inPool(name string) func(*v1alpha1.MachineDeployment) {
	return func(d *v1alpha1.MachineDeployment) { d.Labels = map[string]string{pool.WorkerPoolLabel: name} }
}

func tainted(d *v1alpha1.MachineDeployment) {
	d.Spec.Template.Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoExecute}}
}

var _ = DescribeTable("Of two zones, the smaller one releases", func(want string, second func(*v1alpha1.MachineDeployment)) {
	preview, err := NewPreview(UsualSettings)
	Expect(err).NotTo(HaveOccurred())
	o := Objects{Pods: []*corev1.Pod{Pod("late", 3000)}}
	addZone(&o, "a", 2, inPool("x"))
	addZone(&o, "b", 1, second)
	Expect(preview.SetObjects(o, Noon)).To(Succeed())
	Expect(Raises(preview.Plan())).To(Equal(want))
},
	Entry("if they are of one pool", "b+1(b0)", inPool("x")),
	Entry("unless they are of different pools", "a+1(a0)", inPool("y")),
	Entry("unless only one of them is dedicated", "a+1(a0)", func(d *v1alpha1.MachineDeployment) { inPool("x")(d); tainted(d) }),
)
