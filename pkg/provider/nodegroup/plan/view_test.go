// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
	. "github.com/evenkeel/evenkeel/test/builders/nodegroup"
)

var _ = Describe("A member", func() {
	It("is in reserve by the mark of its Machine, readable or not", func() {
		running := func(change ...func(*v1alpha1.Machine)) Member {
			return Member{Machine: pool.Machine{Object: Machine(mcm.MachineRunning, change...)}}
		}
		Expect(running(InReserve).Serves()).To(BeFalse())
		Expect(running(Annotated(v1alpha1.ReserveAnnotation, "?")).Serves()).To(BeFalse())
		Expect(running(Annotated(v1alpha1.ReserveAnnotation, "")).Serves()).To(BeTrue(), "an empty mark is none, for all who read it")
		Expect(running().Serves()).To(BeTrue())
	})

	DescribeTable("leaves once it is being deleted, is named for deletion, or will be replaced",
		func(phase mcm.MachinePhase, change func(*Member), leaving bool) {
			m := Member{Machine: pool.Machine{Object: Machine(phase)}}
			change(&m)
			Expect(m.Leaving()).To(Equal(leaving))
			Expect(m.Serves()).To(Equal(!leaving))
		},
		Entry("not while it runs", mcm.MachineRunning, func(*Member) {}, false),
		Entry("deleted, which the stores do not show yet", mcm.MachineRunning, func(m *Member) { m.Gone = true }, true),
		Entry("named for deletion", mcm.MachineRunning, func(m *Member) { m.Named = true }, true),
		Entry("deleted", mcm.MachineRunning, func(m *Member) { Deleted(m.Object) }, true),
		Entry("failed", mcm.MachineFailed, func(*Member) {}, true),
		Entry("not when it has failed and is preserved", mcm.MachineFailed, func(m *Member) { m.Preserved = true }, false),
		Entry("not for a health that is unknown", mcm.MachineUnknown, func(*Member) {}, false),
	)

	It("is counted by machine-controller-manager until it terminates", func() {
		for phase, counted := range map[mcm.MachinePhase]bool{"": true, mcm.MachineRunning: true, mcm.MachineFailed: true, mcm.MachineTerminating: false} {
			m := Member{Machine: pool.Machine{Object: Machine(phase, Deleted), Named: true}}
			Expect(m.Counted()).To(Equal(counted), string(phase))
		}
	})
})

var _ = Describe("A group", func() {
	It("leaves machines that are dedicated out of max, and never less than there is", func() {
		dedicated := func(g Group) Group {
			g.Deployment.Annotations[v1alpha1.DedicatedAnnotation] = "shop=2 ci=1"
			return g
		}
		Expect(dedicated(Bounded("1:9", 3)).Max()).To(BeEquivalentTo(6))
		Expect(dedicated(Bounded("1:9", 8)).Max()).To(BeEquivalentTo(8))
		Expect(dedicated(Bounded("1:2", 1)).Max()).To(BeEquivalentTo(1))
		Expect(dedicated(Bounded("0:2", 0)).Max()).To(BeZero(), "all that it may have is dedicated")
		Expect(dedicated(Bounded("3:5", 1)).Max()).To(BeEquivalentTo(3), "replicas come first, so that an autoscaler can raise them to min")
		_, err := NewRaise(dedicated(Bounded("1:9", 5)), 5, 2)
		Expect(status.Code(err)).To(Equal(codes.OutOfRange))
	})

	DescribeTable("is a MachineDeployment with bounds that is not being deleted; the error is",
		func(change func(*v1alpha1.MachineDeployment), want codes.Code, text string) {
			d := Deployment("1:5", 3)
			change(d)
			g, err := NewGroup(d)
			Expect(status.Code(err)).To(Equal(want))
			Expect(status.Convert(err).Message()).To(ContainSubstring(text))
			Expect(g).To(BeZero())
		},
		Entry("not found, if it is being deleted", func(d *v1alpha1.MachineDeployment) { d.DeletionTimestamp = &metav1.Time{Time: Noon} },
			codes.NotFound, "MachineDeployment pool is being deleted"),
		Entry("not found, without the annotation", func(d *v1alpha1.MachineDeployment) { d.Annotations = nil },
			codes.NotFound, "MachineDeployment pool has no annotation "+v1alpha1.BoundsAnnotation),
		Entry("a failed precondition, if the bounds cannot be parsed", func(d *v1alpha1.MachineDeployment) { d.Annotations[v1alpha1.BoundsAnnotation] = "5:1" },
			codes.FailedPrecondition, "MachineDeployment pool: "),
	)

	It("has the MachineDeployment and its bounds", func() {
		d := Deployment("1:5", 3)
		g, err := NewGroup(d)
		Expect(err).NotTo(HaveOccurred())
		Expect(g).To(Equal(Group{Deployment: d, Bounds: v1alpha1.Bounds{Min: 1, Max: 5}}))
	})

	It("counts replicas below zero as none", func() {
		Expect(Bounded("1:5", -3).Replicas()).To(BeZero())
	})
})
