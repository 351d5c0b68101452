// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
)

// objects are copies of all objects of a view.
type objects struct {
	deployment *api.MachineDeployment
	machines   []*mcm.Machine
	nodes      []*corev1.Node
}

func objectsOf(v plan.View) objects {
	all := objects{deployment: v.Deployment.DeepCopy()}
	for _, m := range v.Machines {
		all.machines, all.nodes = append(all.machines, m.Object.DeepCopy()), append(all.nodes, m.Node.DeepCopy())
	}
	return all
}

var _ = DescribeTable("A plan changes no object of its view, and is the same for the same view,", func(v plan.View) {
	before := objectsOf(v)
	p := plan.New(v)
	Expect(p.Steady()).To(BeFalse())
	for _, c := range p.Machines {
		v.Changed(c)
	}
	for _, c := range p.Nodes {
		c.Rebase(c.Machine.Node, v.Settings, v.Now)
	}
	plan.NewStatus(v.Deployment, p.Report, at(0))
	Expect(objectsOf(v)).To(Equal(before), "the objects are those of a cache")
	Expect(plan.New(v)).To(Equal(p), "the same view, the same plan")
},
	Entry("when it releases a machine", atRest(replicas(4), machine("r1", tainted(reserveTaint, otherTaint)))),
	Entry("when it holds machines", atRest(excess(3), applied("3"), replicas(2), machine("s3", idle, tainted(otherTaint)))),
	Entry("when it renews marks", atRest(func(v *plan.View) { v.Settings = evicting }, machine("r1", tainted(), nodeNoted()))),
	Entry("when it changes numbers", included(additive, excess(4))),
	Entry("when it writes a lost record", atRest(applied(""), remembered("2"), note(api.ReturnedAnnotation, "gone"))),
	Entry("when it gives the field back",
		owned(2, "2", gitops, entry(plan.FieldManager, "Update", 9, claim), entry("gitops", "Apply", 0, noClaim))),
	Entry("when it ends a reserve", changed(fleet(2, 1, held("r1", condemned), serving("s1"), serving("s2")), excess(0), func(v *plan.View) {
		v.Deployment.Status.Conditions = []mcm.MachineDeploymentCondition{{Type: api.ReserveReady}, {Type: "Available"}}
	})),
)
