// SPDX-License-Identifier: Apache-2.0

package machinedeployment_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// refuse makes the API server refuse to create machines while it holds, and counts how often it does.
func (c *cluster) refuse(holds *atomic.Bool, times *atomic.Int64) {
	c.OnWrite(func(w sim.Write) error {
		if holds.Load() && w.Verb == "create" && w.Resource == "machines" {
			times.Add(1)
			return apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, "", errors.New("exceeded quota"))
		}
		return nil
	})
}

func failureOf(s *mcm.MachineSet) mcm.MachineSetCondition {
	for _, condition := range s.Status.Conditions {
		if condition.Type == mcm.MachineSetReplicaFailure {
			return condition
		}
	}
	return mcm.MachineSetCondition{}
}

var _ = Describe("A MachineSet", func() {
	It("1 and 6: gets its machines in few writes, and then nothing is written", func() {
		play(func(c *cluster) {
			c.create("s", 3)
			time.Sleep(time.Second)
			Expect(c.machinesOf("s")).To(HaveLen(3), "within a second")
			Expect(c.wrote(0)).To(HaveExactElements("patch machinesets", "create machines", "create machines", "create machines",
				"patch machinesets status"), "the next status comes a second later")
			c.settle()
			s := c.set("s")
			Expect(s.Finalizers).To(ConsistOf(plan.Finalizer))
			Expect(s.Status.Replicas).To(BeEquivalentTo(3))
			Expect(s.Status.ReadyReplicas).To(BeEquivalentTo(3))
			Expect(c.events()).To(ConsistOf("Normal SuccessfulCreate"))
			since := len(c.Writes())
			time.Sleep(24 * time.Hour)
			Expect(c.wrote(since)).To(BeEmpty())
		})
	})

	It("T9: creates machines from the template, with its name and owner", func() {
		play(func(c *cluster) {
			s := c.create("s", 1, func(s *mcm.MachineSet) {
				s.Spec.Template.Annotations = map[string]string{"a": "b"}
				s.Spec.Template.Finalizers = []string{"others.dev/hold"}
			})
			time.Sleep(time.Second)
			m := c.machinesOf("s")[0]
			Expect(m.Name).To(MatchRegexp(`^s-[a-z0-9]{5}$`))
			Expect(m.Labels).To(HaveKeyWithValue("name", "s"))
			Expect(m.Annotations).To(HaveKeyWithValue("a", "b"))
			Expect(m.Finalizers).To(ContainElement("others.dev/hold"))
			Expect(m.Spec.Class).To(Equal(s.Spec.Template.Spec.Class))
			Expect(m.OwnerReferences).To(ConsistOf(*metav1.NewControllerRef(s, mcm.SchemeGroupVersion.WithKind("MachineSet"))))
		})
	})

	It("T9: gives machines names that Nodes can have, also with the longest name of its own", func() {
		play(func(c *cluster) {
			long := strings.Repeat("s", 63)
			c.create(long, 1)
			time.Sleep(time.Second)
			Expect(c.machinesOf(long)[0].Name).To(MatchRegexp(`^s{58}[a-z0-9]{5}$`))
		})
	})

	It("S3, S26: stops at the first machine that is refused, says so, and goes on when it can", func() {
		play(func(c *cluster) {
			var full atomic.Bool
			var attempts atomic.Int64
			full.Store(true)
			c.refuse(&full, &attempts)
			c.create("s", 9)
			time.Sleep(time.Hour)
			Expect(attempts.Load()).To(BeNumerically("~", 60, 15), "one each minute")
			Expect(failureOf(c.set("s"))).To(And(HaveField("Reason", plan.FailedCreate), HaveField("Status", mcm.ConditionTrue), HaveField("Message", ContainSubstring("exceeded quota"))))
			Expect(c.events()).To(ConsistOf("Warning FailedCreate"))
			since := len(c.Writes())
			time.Sleep(time.Hour)
			Expect(c.wrote(since)).To(BeEmpty(), "the condition stays the same")
			full.Store(false)
			c.settle()
			Expect(c.machinesOf("s")).To(HaveLen(9))
			Expect(failureOf(c.set("s"))).To(BeZero())
		})
	})

	It("S26: does not name the machine that was refused, which is another one each time", func() {
		m := fixture.Machine("s-abcde", func(m *mcm.Machine) { m.GenerateName = "s-" })
		Expect(MessageOf(m, apierrors.NewForbidden(v1alpha1.Resource("machines"), m.Name, errors.New("exceeded quota")))).
			To(Equal(`machines.machine.sapcloud.io "s-*" is forbidden: exceeded quota`))
		Expect(MessageOf(m, apierrors.NewInternalError(errors.New("webhook failed")))).To(ContainSubstring("webhook failed"))
		for _, lost := range []error{apierrors.NewTimeoutError("no answer", 0), errors.New("connection reset")} {
			Expect(MessageOf(m, lost)).To(BeEmpty())
		}
	})

	It("O9: sets a machine that it deletes to Terminating at once, and creates another one in its place", func() {
		play(func(c *cluster) {
			c.create("s", 2)
			c.settle()
			m := c.machinesOf("s")[0]
			_, err := c.machines().Patch(context.Background(), m.Name, "application/merge-patch+json",
				[]byte(`{"status":{"currentStatus":{"phase":"Failed","timeoutActive":true,"preserveExpiryTime":"1999-01-01T00:00:00Z"},"lastOperation":{"errorCode":"Internal"}}}`), metav1.PatchOptions{}, "status")
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(500 * time.Millisecond) // the cloud waits for a second
			m = world.Stored[mcm.Machine](c, machineGVR, fixture.Namespace, m.Name)
			Expect(m.DeletionTimestamp).NotTo(BeNil())
			Expect(m.Status.CurrentStatus).To(And(HaveField("Phase", mcm.MachineTerminating), HaveField("TimeoutActive", false), HaveField("PreserveExpiryTime", BeNil())))
			Expect(m.Status.LastOperation).To(And(HaveField("Type", mcm.MachineOperationDelete), HaveField("State", mcm.MachineStateProcessing), HaveField("ErrorCode", BeEmpty())))
			Expect(c.machinesOf("s")).To(HaveLen(3), "it is replaced before it has gone")
			c.settle()
			Expect(c.machinesOf("s")).To(HaveLen(2))
			Expect(c.events()).To(ConsistOf("Normal SuccessfulCreate", "Normal SuccessfulDelete"))
		})
	})

	It("O9: leaves alone a machine that has the name of one that it has deleted", func() {
		play(func(c *cluster) {
			c.create("s", 1)
			c.settle()
			old := c.machinesOf("s")[0].Name
			c.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == name && r.Verb == "delete" && r.Resource == "machines" {
					after = 2 * time.Second
				}
				return 0, after
			})
			c.scale("s", 0)
			time.Sleep(time.Second)
			world.Patch(c.machines(), old, `{"metadata":{"finalizers":null}}`)
			world.CreateWithStatus(c.machines(), fixture.Machine(old, func(m *mcm.Machine) { m.Status.CurrentStatus.Phase = mcm.MachineRunning }))
			time.Sleep(5 * time.Second)
			Expect(world.Stored[mcm.Machine](c, machineGVR, fixture.Namespace, old).Status.CurrentStatus.Phase).To(Equal(mcm.MachineRunning))
		})
	})

	It("O4, O5: adopts a machine, and keeps its other owners and what it does not know", func() {
		play(func(c *cluster) {
			m := world.Create(c.machines(), fixture.Machine("a", func(m *mcm.Machine) {
				m.Labels = map[string]string{"name": "s"}
				m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "other", UID: "other"}}
			}))
			world.Patch(c.machines(), m.Name, `{"spec":{"unknown":"stays"}}`)
			c.create("s", 1)
			world.Patch(c.sets(), "s", `{"metadata":{"finalizers":["others.dev/hold"]},"spec":{"unknown":"stays"}}`)
			time.Sleep(500 * time.Millisecond) // the cloud writes whole machines after a second
			Expect(c.machinesOf("s")).To(HaveExactElements(And(HaveField("Name", "a"), HaveField("OwnerReferences", HaveLen(2)))))
			Expect(c.set("s").Finalizers).To(ConsistOf("others.dev/hold", plan.Finalizer))
			for _, o := range []*unstructured.Unstructured{c.Get(machineGVR, fixture.Namespace, "a"), c.Get(setGVR, fixture.Namespace, "s")} {
				unknown, _, _ := unstructured.NestedString(o.Object, "spec", "unknown")
				Expect(unknown).To(Equal("stays"))
			}
		})
	})

	It("O6: releases a machine that it does not select any more, which then survives it", func() {
		play(func(c *cluster) {
			c.create("s", 2)
			c.settle()
			m := c.machinesOf("s")[0]
			world.Patch(c.machines(), m.Name, `{"metadata":{"labels":{"name":"other"}}}`)
			c.settle()
			Expect(c.machinesOf("s")).To(HaveLen(2))
			Expect(world.Stored[mcm.Machine](c, machineGVR, fixture.Namespace, m.Name).OwnerReferences).To(BeEmpty())
			world.Delete(c.sets(), "s")
			c.settle()
			Expect(world.List[mcm.Machine](c, machineGVR)).To(HaveExactElements(HaveField("Name", m.Name)))
			Expect(world.List[mcm.MachineSet](c, setGVR)).To(BeEmpty())
		})
	})

	It("4: that is deleted takes its machines along, also while the cloud is slow", func() {
		play(func(c *cluster) {
			c.create("s", 4)
			c.settle()
			world.Delete(c.sets(), "s")
			time.Sleep(5 * time.Second)
			Expect(c.machinesOf("s")).To(HaveLen(4))
			Expect(c.set("s").Finalizers).To(ConsistOf(plan.Finalizer))
			c.settle()
			Expect(world.List[mcm.Machine](c, machineGVR)).To(BeEmpty())
			Expect(world.List[mcm.MachineSet](c, setGVR)).To(BeEmpty())
		})
	})

	It("5: whose spec is invalid says so once, and is deleted with its machines", func() {
		play(func(c *cluster) {
			c.create("s", 2)
			c.settle()
			generation := c.set("s").Generation
			world.Patch(c.sets(), "s", `{"spec":{"selector":null}}`)
			c.settle()
			s := c.set("s")
			Expect(failureOf(s).Reason).To(Equal(plan.SelectingAll))
			Expect(s.Status.ObservedGeneration).To(Equal(generation))
			Expect(c.machinesOf("s")).To(HaveLen(2))
			Expect(c.events()).To(ContainElement("Warning SelectingAll"))
			world.Delete(c.sets(), "s")
			c.settle()
			Expect(world.List[mcm.MachineSet](c, setGVR)).To(BeEmpty())
			Expect(world.List[mcm.Machine](c, machineGVR)).To(BeEmpty())
		})
	})

	It("has its machines also while its MachineDeployment is invalid, and when that goes", func() {
		play(func(c *cluster) {
			d := world.Create(c.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace), &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "d"}})
			c.create("s", 2, func(s *mcm.MachineSet) { s.OwnerReferences = world.OwnedBy("MachineDeployment", d) })
			c.settle()
			Expect(c.machinesOf("s")).To(HaveLen(2))
			Expect(c.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace).Delete(context.Background(), "d", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)})).To(Succeed())
			c.scale("s", 3)
			c.settle()
			Expect(c.machinesOf("s")).To(HaveLen(3))
		})
	})

	It("S24, Y2: preserves a failed machine, and deletes it when that has expired", func() {
		play(func(c *cluster) {
			c.create("s", 2, func(s *mcm.MachineSet) { s.Spec.AutoPreserveFailedMachineMax = 1 })
			c.settle()
			m := c.machinesOf("s")[0]
			c.fail(m)
			c.settle()
			m = world.Stored[mcm.Machine](c, machineGVR, fixture.Namespace, m.Name)
			Expect(m.Annotations).To(HaveKeyWithValue("node.machine.sapcloud.io/preserve", "auto-preserved"))
			Expect(c.set("s").Status.AutoPreserveFailedMachineCount).To(BeEquivalentTo(1))
			expiry := metav1.NewTime(time.Now().Add(3 * time.Minute).Truncate(time.Second))
			text, err := expiry.MarshalJSON()
			Expect(err).NotTo(HaveOccurred())
			_, err = c.machines().Patch(context.Background(), m.Name, "application/merge-patch+json", slices.Concat([]byte(`{"status":{"currentStatus":{"preserveExpiryTime":`), text, []byte(`}}}`)), metav1.PatchOptions{}, "status")
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Minute)
			Expect(c.set("s").Status.PreservedFailedReplicas).To(BeEquivalentTo(1))
			Expect(c.machinesOf("s")).To(HaveLen(2))
			time.Sleep(time.Until(expiry.Time) + time.Second)
			Expect(c.machinesOf("s")).To(HaveLen(3), "it is replaced at that moment")
		})
	})
})

// first and last make a machine the first or the last to be deleted.
const (
	first = `{"metadata":{"annotations":{"machinepriority.machine.sapcloud.io":"1"}}}`
	last  = `{"metadata":{"annotations":{"machinepriority.machine.sapcloud.io":"9"}}}`
)

var _ = Describe("With late watches, law 2 and 3:", func() {
	It("no machine too many is created (17.1)", func() {
		play(func(c *cluster) {
			most := world.MostMachines(c.World)
			c.create("s", 4)
			c.settle()
			c.Lag("machines", sim.Constantly(5*time.Second), name)
			c.scale("s", 7)
			time.Sleep(2 * time.Second)
			Expect(c.machinesOf("s")).To(HaveLen(7))
			Expect(c.set("s").Status.Replicas).To(BeEquivalentTo(7), "before the watch shows them")
			c.settle()
			Expect(*most).To(Equal(7))
		})
	})

	It("no machine is created twice where an answer is lost", func() {
		play(func(c *cluster) {
			c.create("s", 0)
			c.settle()
			most := world.MostMachines(c.World)
			c.Hold("machines", name)
			lost := 0
			c.AfterWrite(func(w sim.Write) error {
				if w.Verb == "create" && w.Resource == "machines" && lost < 3 {
					lost++
					return errors.New("connection reset")
				}
				return nil
			})
			c.scale("s", 4)
			time.Sleep(30 * time.Second)
			c.Release("machines", name)
			c.settle()
			Expect(lost).To(Equal(3))
			Expect(*most).To(Equal(4))
		})
	})

	It("no machine too many is created where answers were lost to more creations than are needed now", func() {
		play(func(c *cluster) {
			c.create("s", 0)
			c.settle()
			most := world.MostMachines(c.World)
			c.Hold("machines", name)
			var asked atomic.Int64
			var refuse atomic.Bool
			isCreation := func(w sim.Write) bool { return w.Verb == "create" && w.Resource == "machines" }
			c.OnWrite(func(w sim.Write) error { // the second one has no effect, nor any until fewer are needed
				if !isCreation(w) {
					return nil
				}
				if asked.Add(1) == 2 || refuse.Load() {
					return errors.New("connection reset")
				}
				return nil
			})
			c.AfterWrite(func(w sim.Write) error { // the third one has
				if isCreation(w) && asked.Load() == 3 {
					refuse.Store(true)
					return errors.New("connection reset")
				}
				return nil
			})
			c.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.Verb == "create" && r.Resource == "machines" && asked.Load() == 2 {
					after = 10 * time.Millisecond
				}
				return 0, after
			})
			c.scale("s", 4)
			time.Sleep(100 * time.Millisecond)
			Expect(asked.Load()).To(BeNumerically(">=", 3))
			c.scale("s", 2)
			time.Sleep(time.Second)
			refuse.Store(false)
			time.Sleep(30 * time.Second)
			c.Release("machines", name)
			c.settle()
			Expect(*most).To(Equal(2))
		})
	})

	It("no other machine is deleted where the answer to a deletion is lost, and another one seems to be due then", func() {
		play(func(c *cluster) {
			c.create("s", 3)
			c.settle()
			old := c.machinesOf("s")
			lost := false
			c.AfterWrite(func(w sim.Write) error {
				if w.Verb == "delete" && w.Resource == "machines" && w.User == name && !lost {
					lost = true
					return apierrors.NewTimeoutError("no answer", 0)
				}
				return nil
			})
			c.Lag("machines", sim.Constantly(5*time.Second), name)
			world.Patch(c.machines(), old[1].Name, first)
			time.Sleep(2 * time.Second)
			c.scale("s", 2)
			c.settle()
			Expect(lost).To(BeTrue())
			Expect(c.machinesOf("s")).To(HaveExactElements(HaveField("Name", old[1].Name), HaveField("Name", old[2].Name)))
		})
	})

	DescribeTable("no other machine is deleted where the machine cannot be read after its deletion until another one seems to be due", func(answer error) {
		play(func(c *cluster) {
			c.create("s", 3)
			c.settle()
			old := c.machinesOf("s")
			isDeletion := func(r sim.Request) bool { return r.Verb == "delete" && r.Resource == "machines" && r.User == name }
			deleted := false
			c.AfterWrite(func(w sim.Write) error {
				if isDeletion(w.Request) && !deleted {
					deleted = true
					return answer
				}
				return nil
			})
			c.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if isDeletion(r) {
					after = 100 * time.Millisecond
				}
				return 0, after
			})
			c.Lag("machines", sim.Constantly(5*time.Second), name)
			world.Patch(c.machines(), old[1].Name, first)
			time.Sleep(2 * time.Second)
			c.scale("s", 2)
			time.Sleep(50 * time.Millisecond)
			Expect(deleted).To(BeTrue())
			for _, t := range []sim.Trouble{{Reads: 1, Only: []sim.Answer{sim.Failed}}, {}} {
				c.Trouble("machines", t, name)
				c.Trouble("machinesets", t, name)
				time.Sleep(2900 * time.Millisecond)
			}
			c.settle()
			Expect(c.machinesOf("s")).To(HaveExactElements(HaveField("Name", old[1].Name), HaveField("Name", old[2].Name)))
		})
	},
		Entry("whose answer is lost", apierrors.NewTimeoutError("no answer", 0)),
		Entry("which is answered", nil),
	)

	It("a machine is not released for labels that it has again", func() {
		play(func(c *cluster) {
			c.create("s", 2)
			c.settle()
			c.Lag("machines", sim.Constantly(5*time.Second), name)
			old := c.machinesOf("s")
			world.Patch(c.machines(), old[0].Name, `{"metadata":{"labels":{"name":"other"}}}`)
			time.Sleep(time.Second)
			world.Patch(c.machines(), old[0].Name, `{"metadata":{"labels":{"name":"s"}}}`)
			since := len(c.Writes())
			c.settle()
			Expect(c.wrote(since)).To(BeEmpty())
		})
	})

	It("own writes are known at once, so that none is refused because of another one", func() {
		play(func(c *cluster) {
			c.create("s", 3)
			c.settle()
			attempts, accepted := 0, 0
			count := func(n *int) func(w sim.Write) error {
				return func(w sim.Write) error {
					if w.User == name && w.Resource != "events" {
						*n++
					}
					return nil
				}
			}
			c.OnWrite(count(&attempts))
			c.AfterWrite(count(&accepted))
			c.Lag("machines", sim.Constantly(5*time.Second), name)
			c.Lag("machinesets", sim.Constantly(4*time.Second), name)
			c.fail(c.machinesOf("s")[0])
			time.Sleep(6 * time.Second)
			Expect(c.machinesOf("s")).To(HaveLen(4), "one is created in place of that which leaves, before the watch shows that")
			c.settle()
			Expect(accepted).To(Equal(attempts))
		})
	})

	It("machines that were gone at once do not count", func() {
		play(func(c *cluster) {
			c.Lag("machines", sim.Constantly(10*time.Second), name)
			c.create("s", 3)
			for _, replicas := range []int{1, 3} { // before the cloud adds its finalizer
				time.Sleep(300 * time.Millisecond)
				Expect(c.machinesOf("s")).To(HaveLen(4 - replicas))
				c.scale("s", replicas)
			}
			time.Sleep(300 * time.Millisecond)
			Expect(c.machinesOf("s")).To(HaveLen(3))
		})
	})

	It("no machine is deleted that has changed since it was looked at", func() {
		play(func(c *cluster) {
			c.create("s", 3)
			c.settle()
			old := c.machinesOf("s")
			c.Lag("machines", sim.Constantly(5*time.Second), name)
			world.Patch(c.machines(), old[0].Name, last)
			c.scale("s", 2)
			c.settle()
			Expect(c.machinesOf("s")).To(HaveExactElements(HaveField("Name", old[0].Name), HaveField("Name", old[2].Name)))
		})
	})

	It("no machine is deleted, and none created, for a number of replicas that has changed since", func() {
		play(func(c *cluster) {
			c.create("s", 3)
			c.settle()
			old := c.machinesOf("s")
			c.Hold("machinesets", name)
			c.scale("s", 1)
			c.scale("s", 3)
			c.Release("machinesets", name)
			time.Sleep(time.Second)
			c.Lag("machinesets", sim.Constantly(time.Minute), name)
			c.scale("s", 1)
			time.Sleep(59 * time.Second)
			c.scale("s", 3)
			time.Sleep(time.Second + 500*time.Millisecond) // the watch shows that there is to be one
			c.settle()
			Expect(c.machinesOf("s")).To(HaveExactElements(HaveField("Name", old[0].Name), HaveField("Name", old[1].Name), HaveField("Name", old[2].Name)))
		})
	})
})

var _ = It("What is remembered of statuses that were written is forgotten after a second", func() {
	Expect(HeldAfterReports()).To(Equal(1))
})

var _ = It("What is remembered of a MachineSet that is gone is forgotten with the end of the sync", func() {
	Expect(HeldAfterRelease()).To(Equal(1))
})
