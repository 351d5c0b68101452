// SPDX-License-Identifier: Apache-2.0

package balance_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/evenkeel/evenkeel/pkg/controller/balance"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

var _ = Describe("What comes and goes", func() {
	It("leaves nothing behind: MachineDeployments that go while they are written, with their MachineSets and MachineClasses", Label("soak"), func() {
		const each = 20
		rounds := storm.Soak(600, 3*each)
		play(func(c *cluster) {
			var held *Controller
			c.Start("balance", exposed(func(it *Controller) { held = it }))
			c.Lag("machinedeployments", sim.Uniformly(1, 0, 3*time.Second), "balance")
			most := 0
			for round := range rounds {
				for i := range each {
					c.deploy(NewMember(fmt.Sprintf("m-%d-%d", round, i), 1, ScaleUp, Labelled("p"), Excess("3")))
				}
				for range 20 {
					time.Sleep(200 * time.Millisecond)
					most = max(most, held.Written())
				}
				c.clear()
			}
			time.Sleep(time.Minute)
			Expect(most).To(BeNumerically(">", 0), "there was something to forget")
			Expect(held.Held()).To(BeZero())
		})
	})
})

// clear deletes everything.
func (c *cluster) clear() {
	GinkgoHelper()
	ctx, all := context.Background(), metav1.ListOptions{}
	ours := c.ours.MachineV1alpha1()
	for _, err := range []error{
		ours.MachineDeployments(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
		ours.MachineSets(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
		ours.MachineClasses(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
		c.core.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, all),
	} {
		Expect(err).NotTo(HaveOccurred())
	}
	machines, err := ours.Machines(ns).List(ctx, all)
	Expect(err).NotTo(HaveOccurred())
	for i := range machines.Items {
		m := &machines.Items[i]
		m.Finalizers = nil
		if _, err := ours.Machines(ns).Update(ctx, m, metav1.UpdateOptions{}); err == nil {
			_ = ours.Machines(ns).Delete(ctx, m.Name, metav1.DeleteOptions{})
		}
	}
}
