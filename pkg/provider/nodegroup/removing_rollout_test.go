// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	builders "github.com/evenkeel/evenkeel/test/builders/nodegroup"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var _ = Describe("Removing", func() {
	It("waits for the end of a rollout", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 2)
			c.running("pool", "a", "b")
			d := c.deployment("pool")
			next := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "pool-2", OwnerReferences: world.OwnedBy("MachineDeployment", d)}}
			next, err := c.ours.MachineSets(ns).Create(context.Background(), next, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			m := builders.Machine("")
			m.Name, m.OwnerReferences = "n", world.OwnedBy("MachineSet", next)
			_, err = c.ours.Machines(ns).Create(context.Background(), m, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.lull()
			Expect(code(c.remove("pool", "node-a"))).To(Equal(codes.FailedPrecondition))
			Expect(c.increase("pool", 1)).To(Succeed(), "growing is possible all the time")
			Expect(c.ours.Machines(ns).Delete(context.Background(), "n", metav1.DeleteOptions{})).To(Succeed())
			c.lull()
			Expect(c.remove("pool", "node-a")).To(Succeed())
		})
	})

	It("reads machines and MachineSets once, so that a rollout that ends meanwhile counts whole or not at all", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 2)
			c.running("pool", "a", "b")
			other := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "pool-2", OwnerReferences: world.OwnedBy("MachineDeployment", c.deployment("pool"))}}
			other.Spec.Replicas = 1
			_, err := c.ours.MachineSets(ns).Create(context.Background(), other, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.lull()
			changing := &changingSource{Source: c.wire.server.memory.source}
			c.wire.server.memory.source = changing
			Expect(code(c.remove("pool", "node-a"))).To(Equal(codes.FailedPrecondition), "as the first read shows it")
			Expect(changing.reads).To(Equal(1))
		})
	})

	It("waits while another MachineSet asks for machines, though it has none: the smaller number would be spread over both", func() {
		play(func(c *cluster) {
			ctx := context.Background()
			c.pool("pool", "1:9", 2)
			c.running("pool", "a", "b")
			old := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "pool-0", OwnerReferences: world.OwnedBy("MachineDeployment", c.deployment("pool"))}}
			old.Spec.Replicas = 1
			old, err := c.ours.MachineSets(ns).Create(ctx, old, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			set, err := c.ours.MachineSets(ns).Get(ctx, "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			set.Spec.Replicas = 2
			_, err = c.ours.MachineSets(ns).Update(ctx, set, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.lull()
			Expect(code(c.remove("pool", "node-a"))).To(Equal(codes.FailedPrecondition))
			old.Spec.Replicas = 0
			_, err = c.ours.MachineSets(ns).Update(ctx, old, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.lull()
			Expect(c.remove("pool", "node-a")).To(Succeed())
		})
	})
})

// changingSource shows only the first MachineSet from the second read on.
type changingSource struct {
	pool.Source
	reads int
}

func (s *changingSource) Sets(deployment types.UID) []*mcm.MachineSet {
	sets := s.Source.Sets(deployment)
	if s.reads++; s.reads > 1 {
		return sets[:1]
	}
	return sets
}
