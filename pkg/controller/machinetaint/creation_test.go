// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// withMachines returns a controller that sees a MachineDeployment with three replicas, an excess of two
// and these machines. All but the first three are in reserve.
func withMachines(exist, leaving int, change ...func(*api.MachineDeployment)) *machinetaint.Preview {
	GinkgoHelper()
	plain := fixture.MachineDeployment("a", 3)
	d := &api.MachineDeployment{ObjectMeta: plain.ObjectMeta, Spec: api.MachineDeploymentSpec{StockMachineDeploymentSpec: plain.Spec, ExcessReplicas: ptr.To[int32](2)}}
	d.UID, d.ResourceVersion, d.Annotations = "uid", "5", map[string]string{api.AppliedExcessAnnotation: "2,max=9"}
	for _, c := range change {
		c(d)
	}
	set, machines := fixture.Spares(d, exist+leaving, exist+leaving)
	for i, m := range machines {
		if m.UID = types.UID(m.Name); i < 3 {
			m.Annotations = nil
		}
		if i >= exist {
			m.DeletionTimestamp = &metav1.Time{}
		}
	}
	p, err := machinetaint.NewPreview(plan.Settings{}, true)
	Expect(err).NotTo(HaveOccurred())
	Expect(p.SetObjects(machinetaint.Objects{Deployments: []*api.MachineDeployment{d}, Sets: []*mcm.MachineSet{set}, Machines: machines}, time.Now())).To(Succeed())
	return p
}

var _ = Describe("A creation", func() {
	atMost := func(bounds string) func(*api.MachineDeployment) {
		return func(d *api.MachineDeployment) { d.Annotations[api.BoundsAnnotation] = bounds }
	}
	without := func(d *api.MachineDeployment) { d.Spec.ExcessReplicas, d.Annotations = nil, map[string]string{} }

	DescribeTable("is refused if there are enough machines with those that are being created (V13)",
		func(exist, leaving int, inProgress []string, allowed bool, change ...func(*api.MachineDeployment)) {
			err := withMachines(exist, leaving, change...).Superfluous(fixture.Namespace, "a", inProgress...)
			if allowed {
				Expect(err).NotTo(HaveOccurred())
				return
			}
			Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
		},
		Entry("one is missing", 4, 0, nil, true),
		Entry("none is missing", 5, 0, nil, false),
		Entry("the missing one is being created, and has no name yet", 4, 0, []string{""}, false),
		Entry("the missing one is being created, and cannot be seen yet", 4, 0, []string{"a-new"}, false),
		Entry("one that can be seen counts once", 4, 0, []string{"a-spare-3"}, true),
		Entry("two are missing, and one of them is being created", 3, 0, []string{""}, true),
		Entry("two are missing, and both are being created", 3, 0, []string{"", "a-new"}, false),
		Entry("one that leaves is replaced", 4, 1, nil, true),
		Entry("one of the reserve that leaves is not replaced at the maximum", 4, 1, nil, false, atMost("1:5:2")),
		Entry("nor if another annotation cannot be read", 4, 1, nil, false, atMost("1:5:2"), func(d *api.MachineDeployment) { d.Annotations[api.ShareAnnotation] = "many" }),
		Entry("one that leaves is replaced at the maximum while workload lacks one", 2, 3, nil, true, atMost("1:6:2")),
		Entry("workload lacks one, and it is being created at the maximum", 2, 3, []string{""}, false, atMost("1:6:2")),
		Entry("there is no excess, and no maximum", 9, 0, nil, true, without),
		Entry("the MachineDeployment does not exist", 9, 0, nil, true, func(d *api.MachineDeployment) { d.Name = "other" }),
	)

	DescribeTable("is decided on for the replicas that machine-controller-manager has seen, if these are later",
		func(exist int, version string, replicas int32, allowed bool) {
			p, seen := withMachines(exist, 0), fixture.MachineDeployment("a", replicas)
			seen.UID, seen.ResourceVersion = "uid", version
			Expect(p.SetSeen(seen)).To(Succeed())
			if err := p.Superfluous(fixture.Namespace, "a"); allowed {
				Expect(err).NotTo(HaveOccurred())
			} else {
				Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
			}
		},
		Entry("fewer replicas, and one machine is missing", 3, "7", int32(4), true),
		Entry("fewer replicas, and no machine is missing", 4, "7", int32(4), false),
		Entry("more replicas, and one machine is missing", 5, "7", int32(6), true),
		Entry("more replicas, in an earlier version", 5, "3", int32(6), false),
		Entry("fewer replicas, in an earlier version", 4, "3", int32(4), true),
	)
})
