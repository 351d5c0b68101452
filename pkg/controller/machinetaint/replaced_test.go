// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinetaint_test

import (
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// replaceWhole removes excess and annotations, as kubectl replace does with a manifest that has neither. Machines that were named for
// lower replicas stay named: without that any machine may go for them.
func (c *cluster) replaceWhole() {
	GinkgoHelper()
	annotations := map[string]any{}
	for key := range c.deployment().Annotations {
		if key != machineutils.TriggerDeletionByMCM {
			annotations[key] = nil
		}
	}
	text, err := json.Marshal(annotations)
	Expect(err).NotTo(HaveOccurred())
	c.patch(`{"spec":{"excessReplicas":null,"reserveWitness":null},"metadata":{"annotations":%s}}`, text)
}

// halfway keeps MachineSets of a class from asking for more than so many machines. More may ask for others from then on.
func (c *cluster) halfway(class string, most int32) (ask func(most int32)) {
	var limit atomic.Int32
	limit.Store(most)
	c.Admit(func(a sim.Admission) error {
		if a.Resource != "machinesets" || a.Subresource != "" {
			return nil
		}
		if set := world.Decoded[mcmapi.MachineSet](a.Object.Object); set.Spec.Template.Spec.Class.Name == class && set.Spec.Replicas > limit.Load() {
			return apierrors.NewServiceUnavailable("an admission webhook is down")
		}
		return nil
	})
	return limit.Store
}

var _ = Describe("A machine that pods run on", func() {
	It("is not deleted before those in reserve where a MachineDeployment is replaced whole (I3)", func() {
		story(func(c *cluster) {
			busy := c.busy()
			c.slowly("patch", "machines", 2*time.Second)
			c.replaceWhole()
			c.settle()
			Expect(c.busy()).To(Equal(busy))
			Expect(c.numbers()).To(Equal("3+0 status 0/0"))
		})
	})

	It("is not deleted where more serve than replicas and the MachineDeployment is replaced whole for a moment (I3)", func() {
		story(func(c *cluster) {
			c.overstay()
			busy := c.busy()
			c.replaceWhole()
			time.Sleep(5 * time.Second)
			c.want(2)
			time.Sleep(machinetaint.DefaultSurplusPatience - time.Minute)
			Expect(c.busy()).To(Equal(busy))
			c.settle()
			Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
		})
	})

	DescribeTable("is not deleted where the excess of a MachineDeployment that was replaced whole is reduced by a write that fails (I3)", func(ctx SpecContext, effect sim.Moment, answer error) {
		play(func(c *cluster) {
			c.work(3)
			c.pool(3, inclusive, excess(2))
			c.settle()
			Expect(c.totals()).To(Equal("5 = 3 + 2 of 2"))
			busy, failed, begun := c.busy(), false, time.Now()
			// at is called for each write of the excess. At first, the record of it cannot be restored.
			at := func(moment sim.Moment, r sim.Request, object map[string]any) error {
				replicas, _, _ := unstructured.NestedInt64(object, "spec", "replicas")
				switch {
				case failed || r.User != evenkeel || r.Verb != "patch" || r.Resource != "machinedeployments":
				case replicas == 5 && moment == sim.Before && time.Since(begun) < 10*time.Second:
					return apierrors.NewForbidden(mcmapi.Resource(r.Resource), r.Name, errors.New("not yet"))
				case replicas < 5 && moment == effect:
					failed = true
					return answer
				}
				return nil
			}
			c.Admit(func(a sim.Admission) error { return at(sim.Before, a.Request, a.Object.Object) })
			c.AfterWrite(func(w sim.Write) error { return at(sim.After, w.Request, w.Object) })
			c.Lag("machinedeployments", sim.Constantly(3*time.Second), evenkeel)
			c.replaceWhole()
			c.settle()
			Expect(failed).To(BeTrue())
			Expect(c.busy()).To(Equal(busy))
			Expect(c.totals()).To(Equal("3 = 3 + 0 of 0"))
			Expect(c.numbers()).To(Equal("3+0 status 0/0"))
		})
	},
		Entry("after its effect", sim.After, errors.New("the connection breaks")),
		Entry("before its effect", sim.Before, errors.New("the connection breaks")),
		Entry("because it is denied", sim.Before, apierrors.NewForbidden(mcmapi.Resource("machinedeployments"), "pool", errors.New("not now"))),
	)

	DescribeTable("is not deleted in a rollout for the reserve that a new process does not know of (I3)", func(ctx SpecContext, known bool, stalled int32, again int, end string) {
		story(func(c *cluster) {
			ask := c.halfway("other", 3)
			c.edit()
			c.settle()
			Expect(c.sets()).To(HaveLen(2))
			Expect(c.midway()).To(Equal("3+2 Complete"), "all that serve are new, all in reserve are old")
			busy := c.busy()
			if !known {
				c.annotate(busy, api.ReserveStateAnnotation, nil)
			}
			c.process.Crash()
			c.replaceWhole()
			ask(stalled)
			c.process.Restart()
			for range 60 { // machine-controller-manager looks at the new MachineSet over and over, while the reserve leaves and when it has
				time.Sleep(500 * time.Millisecond)
				c.annotate(busy[:1], "touched", time.Now())
			}
			ask(100)
			c.want(again)
			c.settle()
			Expect(c.busy()).To(Equal(busy))
			Expect(c.numbers()).To(Equal(end))
			Expect(c.sets()).To(HaveLen(1))
		})
	},
		Entry("though it is wanted again", true, int32(100), 2, "3+2 status 2/2 True Complete"),
		Entry("though machines say nothing of how they left it", false, int32(100), 0, "3+0 status 0/0"),
		Entry("when it has gone, and the new MachineSet has yet to grow", true, int32(2), 0, "3+0 status 0/0"),
	)
})
