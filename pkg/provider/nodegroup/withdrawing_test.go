// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
)

var _ = Describe("Withdrawing", func() {
	It("takes back what does not exist, touches no Machine, and always succeeds (trap 5)", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 4)
			c.running("pool", "a", "b")
			c.machine("pool", "c", mcm.MachinePending)
			c.lull()
			Expect(c.decrease("pool", -2)).To(Succeed())
			Expect(c.target("pool")).To(BeEquivalentTo(3))
			Expect(c.decrease("pool", -1)).To(Succeed())
			Expect(c.target("pool")).To(BeEquivalentTo(3))
			By("and the placeholder, deleted later, counts once: 3 -> 4 -> 3, never 2")
			Expect(c.remove("pool", "requested://c")).To(Succeed())
			Expect(c.target("pool")).To(BeEquivalentTo(2))
			Expect(c.decrease("pool", -1)).To(Succeed())
			Expect(c.target("pool")).To(BeEquivalentTo(2))
		})
	})

	It("leaves the replicas of machines that exist, however late our watch of Machines is (law 8)", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 4)
			c.pool("other", "1:9", 1)
			labelled := func(m *v1alpha1.Machine) { m.Labels = fixture.MachineDeployment("pool", 0).Spec.Selector.MatchLabels }
			c.running("pool", "a", "b")
			c.lull()
			c.Hold("machines", serving)
			c.machine("pool", "c", mcm.MachinePending, labelled)
			c.machine("other", "d", mcm.MachinePending, labelled)
			time.Sleep(time.Minute)
			Expect(c.decrease("pool", -2)).To(Succeed())
			Expect(c.target("pool")).To(BeEquivalentTo(3), "c exists, and d is another group's")
			Expect(c.decrease("pool", -1)).To(Succeed())
			Expect(c.target("pool")).To(BeEquivalentTo(3))
		})
	})

	It("leaves the replicas of machines whose MachineSet is new, however late our watch of MachineSets is (law 8)", func() {
		play(func(c *cluster) {
			c.Hold("machinesets", serving)
			c.pool("pool", "1:9", 4)
			labelled := func(m *v1alpha1.Machine) { m.Labels = fixture.MachineDeployment("pool", 0).Spec.Selector.MatchLabels }
			c.machine("pool", "a", mcm.MachinePending, labelled)
			c.machine("pool", "b", mcm.MachinePending, labelled)
			time.Sleep(time.Minute)
			Expect(c.decrease("pool", -3)).To(Succeed())
			Expect(c.target("pool")).To(BeEquivalentTo(2), "a and b exist")
		})
	})

	It("counts each machine once, whoever shows it, and none that is named for deletion (law 8)", func() {
		play(func(c *cluster) {
			c.pool("pool", "0:9", 5, func(d *v1alpha1.MachineDeployment) { d.Annotations[v1alpha1.AppliedExcessAnnotation] = "2,max=9" })
			labelled := func(m *v1alpha1.Machine) { m.Labels = fixture.MachineDeployment("pool", 0).Spec.Selector.MatchLabels }
			c.machine("pool", "a", mcm.MachinePending, labelled)
			c.machine("pool", "b", mcm.MachinePending, labelled)
			c.lull()
			c.Hold("machines", serving)
			c.machine("pool", "c", mcm.MachinePending, labelled, priority("1"), doomed)
			Expect(c.decrease("pool", -1)).To(Succeed())
			Expect(c.target("pool")).To(BeEquivalentTo(4))
			Expect(c.decrease("pool", -3)).To(Succeed())
			Expect(c.target("pool")).To(BeEquivalentTo(2), "a and b")
		})
	})

	It("withdraws nothing while machines cannot be read, and succeeds all the same", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 4)
			c.running("pool", "a", "b")
			c.lull()
			c.Trouble("machines", sim.Trouble{Reads: 1, Only: []sim.Answer{sim.Failed}}, serving)
			Expect(c.decrease("pool", -1)).To(Succeed())
			Expect(c.target("pool")).To(BeEquivalentTo(4))
			c.Trouble("machines", sim.Trouble{}, serving)
			Expect(c.decrease("pool", -1)).To(Succeed())
			Expect(c.target("pool")).To(BeEquivalentTo(3))
		})
	})

	It("of nothing, or of an unknown group, is refused", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 4)
			c.lull()
			Expect(code(c.decrease("pool", 0))).To(Equal(codes.InvalidArgument))
			Expect(code(c.decrease("pool", 1))).To(Equal(codes.InvalidArgument))
			Expect(code(c.decrease("unknown", -1))).To(Equal(codes.NotFound))
			Expect(c.writes()).To(BeEmpty())
		})
	})
})
