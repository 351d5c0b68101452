// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/localcluster"
)

var _ = Describe("In the long run, drain-reserve", Label("long", "ours"), Serial, func() {
	It("removes reserves without a restart, restores them, and leaves nothing that stock machine-controller-manager would delete", func(ctx context.Context) {
		c := another(ctx, localcluster.Options{Name: "e2e-draining"})
		Expect(c.Apply(ctx, "kubernetes/crds", "kubernetes/policies")).To(Succeed())
		runProgram(ctx, c, localcluster.Program{Name: machineController, Flags: rates})
		runProgram(ctx, c, localcluster.Program{Name: mcm, Flags: rates})
		moveTo(c, c)
		command := func(arguments ...string) string {
			GinkgoHelper()
			out, err := plugin(ctx, "", append([]string{"--kubeconfig", c.Kubeconfig(), "-n", namespace, "drain-reserve", "--timeout", "4m"}, arguments...)...)
			Expect(err).NotTo(HaveOccurred(), out)
			return out
		}
		p := newPool(ctx, "drained", 3, excess(2))
		p.rests(ctx, 3, 2, "Complete")
		p.work(ctx, 3)
		busy := p.busy(ctx)

		Expect(command("--yes", "--wait")).To(And(ContainSubstring("default/drained: done"), ContainSubstring("No reserve is left")))
		p.rests(ctx, 3, 0, "")
		Expect(p.busy(ctx)).To(Equal(busy))

		Expect(command("--undo", "--yes", "--wait")).To(ContainSubstring("The reserves exist again"))
		p.rests(ctx, 3, 2, "Complete")

		Expect(command("--yes", "--wait")).To(ContainSubstring("No reserve is left"))
		runProgram(ctx, c, localcluster.Program{Name: mcm, Package: stockMCM, Binary: "stock-" + mcm, Flags: slices.Clone(rates)})
		sleep(ctx, 30*time.Second)
		p.settles(ctx, 3)
		Expect(p.busy(ctx)).To(Equal(busy))
	})
})
