// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

var _ = DescribeTable("Pods are read",
	func(want bool, members ...Member) { Expect(PodsNeeded(view(members...))).To(Equal(want)) },
	Entry("not without members", false),
	Entry("not while members are even", false, NewMember("a", 3, Continuous, Applied(3)), NewMember("b", 3, Continuous, Applied(3))),
	Entry("not while members differ by one, which is even", false, NewMember("a", 3, Continuous, Applied(3)), NewMember("b", 2, Continuous, Applied(2))),
	Entry("while members differ by two", true, NewMember("a", 3, Continuous, Applied(3)), NewMember("b", 1, Continuous, Applied(1))),
	Entry("while a later member has more", true, NewMember("a", 1, Continuous, Applied(1)), NewMember("b", 2, Continuous, Applied(2)), NewMember("c", 3, Continuous, Applied(3))),
	Entry("not for one member alone, which is even by itself", false, NewMember("a", 5, Continuous, Applied(5))),
	Entry("not where no machine may move", false, NewMember("a", 5, ScaleUp, Applied(5)), NewMember("b", 1, Continuous, Applied(1))),
	Entry("while one replica is not applied", true, NewMember("a", 3, ScaleUp, Applied(2))),
	Entry("while a move is in progress", true, NewMember("a", 3, ScaleUp, Applied(3), move(v1alpha1.Move{ID: "1", From: "b", Taken: 1}))),
	Entry("while a machine cannot be created", true, NewMember("a", 1, ScaleUp, Applied(1), stuck(1))),
	Entry("not while a machine boots", false, NewMember("a", 1, ScaleUp, Applied(1), stuckBoot)),
	Entry("once it boots for too long", true, NewMember("a", 1, ScaleUp, Applied(1), func(m *Member) {
		phase(mcm.MachinePending)(&m.Machines[0])
		bornAt(Noon.Add(-10 * time.Minute))(&m.Machines[0])
	})),
)

var _ = DescribeTable("Decisions about a MachineDeployment depend",
	func(machines, pods bool, changes ...Change) {
		onMachines, onPods := Concerns(NewMember("a", 2, changes...).Object, NewSettings())
		Expect(onMachines).To(Equal(machines), "on machines")
		Expect(onPods).To(Equal(pods), "on pods")
	},
	Entry("on neither without settings", false, false),
	Entry("on both in a mode", true, true, ScaleUp),
	Entry("on both while a move ends", true, true, move(v1alpha1.Move{ID: "1", From: "b", Taken: 1})),
	Entry("on machines where applied replicas are written down", true, false, Applied(2)),
	Entry("on machines with a share", true, false, share(0)),
	Entry("on machines with an excess of the pool", true, false, Excess("0")),
	Entry("on machines with an excess of the pool that is invalid", true, false, Excess("many")),
	Entry("on machines with bounds that contain an excess", true, false, bounds("1:3:2")),
	Entry("on neither with bounds that contain none", false, false, bounds("1:3")),
	Entry("on neither with bounds that are invalid", false, false, bounds("many")),
	Entry("on neither with an excess of its own", false, false, ExcessField(2)),
)
