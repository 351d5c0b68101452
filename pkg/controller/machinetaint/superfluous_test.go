// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinetaint_test

import (
	"strings"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/sim"
)

// nameAll names machines for deletion as an autoscaler does, in one write of the whole object with as many replicas fewer.
func (c *cluster) nameAll(machines ...string) {
	GinkgoHelper()
	now := time.Now().UTC().Format(time.RFC3339)
	c.typed(func(d *mcmapi.MachineDeployment) {
		d.Spec.Replicas -= int32(len(machines))
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, machineutils.TriggerDeletionByMCM, strings.Join(machines, "~"+now+",")+"~"+now)
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, machineutils.LastDeploymentReplicaChangeByScalerTime, now)
	})
}

// countFrozen counts the writes that freeze something.
func countFrozen(n *int) func(sim.Write) error {
	return func(w sim.Write) error {
		metadata, _ := w.Object["metadata"].(map[string]any)
		labels, _ := metadata["labels"].(map[string]any)
		if labels["freeze"] == "True" {
			*n++
		}
		return nil
	}
}

var _ = Describe("Machines that an autoscaler names", func() {
	for name, accounting := range map[string]func(*api.MachineDeployment){"additive": func(*api.MachineDeployment) {}, "inclusive": inclusive} {
		It("are not replaced before their MachineSet becomes smaller, which could freeze it (V13), "+name, func() {
			play(func(c *cluster) {
				c.work(5)
				c.pool(5, bounds("3:9:2"), accounting)
				c.settle()
				Expect(c.numbers()).To(Equal("5+2 status 2/2 True Complete"))
				frozen, since := 0, len(c.Writes())
				c.AfterWrite(countFrozen(&frozen))
				c.slowly("update", "machinesets", 3*time.Second)
				serving, _ := c.names()
				c.nameAll(serving[:2]...)
				c.settle()
				Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
				made, deleted := c.born(since)
				Expect([]int{made, deleted, frozen}).To(Equal([]int{0, 2, 0}))
			})
		})
	}
})
