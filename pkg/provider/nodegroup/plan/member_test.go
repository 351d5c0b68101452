// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
	. "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan/plantest"
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
		_, err := NewRaise(dedicated(Bounded("1:9", 5)), 5, 2)
		Expect(status.Code(err)).To(Equal(codes.OutOfRange))
	})

	It("counts replicas below zero as none", func() {
		Expect(Bounded("1:5", -3).Replicas()).To(BeZero())
	})
})
