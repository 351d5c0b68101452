// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
)

// cannotBeMade has a reserve machine fail in its creation.
func (a *alone) cannotBeMade(name string) {
	GinkgoHelper()
	a.reports(name, `{"currentStatus":{"phase":"CrashLoopBackOff"},"lastOperation":{"type":"Create","state":"Failed","errorCode":"ResourceExhausted"}}`)
}

// reports writes into the status of a Machine, as the machine controller does.
func (a *alone) reports(name, status string) {
	GinkgoHelper()
	_, err := a.stock.MachineV1alpha1().Machines(fixture.Namespace).Patch(context.Background(), name, types.MergePatchType, []byte(`{"status":`+status+`}`), metav1.PatchOptions{}, "status")
	Expect(err).NotTo(HaveOccurred())
}

func (a *alone) deployment() *api.MachineDeployment {
	GinkgoHelper()
	d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return d
}

func (a *alone) applied() string {
	GinkgoHelper()
	return a.deployment().Annotations[api.AppliedExcessAnnotation]
}

var _ = Describe("A machine that cannot be made", func() {
	It("is not tried again at once where the answer to the lower excess was lost", func() {
		onItsOwn(2, 2, machinetaint.Settings{}, func(a *alone) {
			a.wrote(0)
			a.FailWrites(1, sim.After, controllerUser)
			a.cannotBeMade("d")
			time.Sleep(10 * time.Second)
			a.FailWrites(0, sim.After, controllerUser)
			time.Sleep(20 * time.Second)
			Expect(a.applied()).To(Equal("1"))
			time.Sleep(time.Minute)
			Expect(a.applied()).To(Equal("2"))
		})
	})
})

var _ = Describe("A machine whose creation was not answered", func() {
	It("is not created once more where a release sees it first", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			a.wrote(0)
			a.Hold("machines", controllerUser)
			lost := false
			a.AfterWrite(func(w sim.Write) error {
				if lost || w.User != controllerUser || w.Resource != "machines" || w.Verb != "create" {
					return nil
				}
				lost = true
				return answerLost
			})
			a.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if lost && r.User == controllerUser && r.Resource == "machinesets" && r.Verb == "get" {
					before = 5 * time.Second
				}
				return before, 0
			})
			since := len(a.Writes())
			a.patch(`{"spec":{"excessReplicas":2}}`)
			time.Sleep(2 * time.Second)
			a.Release("machines", controllerUser)
			a.controller.ObserveUpdate(context.Background(), a.deployment())
			time.Sleep(time.Minute)
			created := 0
			for _, w := range a.Writes()[since:] {
				if w.Resource == "machines" && w.Effect == sim.Added {
					created++
				}
			}
			Expect(created).To(Equal(1))
		})
	})
})

var _ = Describe("A machine that cannot be released", func() {
	It("does not keep other changes from being written, nor from being released once it can", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			a.wrote(0)
			var allowed atomic.Bool
			a.Admit(func(w sim.Admission) error {
				if !allowed.Load() && w.Resource == "machines" && w.User == controllerUser {
					return apierrors.NewForbidden(mcmapi.Resource(w.Resource), w.Name, errors.New("not now"))
				}
				return nil
			})
			a.patch(`{"spec":{"replicas":3,"excessReplicas":2}}`)
			time.Sleep(10 * time.Second)
			Expect(a.applied()).To(Equal("2"))
			allowed.Store(true)
			time.Sleep(2 * time.Minute)
			Expect(a.closed("c")).To(BeFalse())
			Expect(a.isMarked("c")).To(BeFalse())
		})
	})
})

// retire releases machine c, and has it enter the reserve again after do.
func (a *alone) retire(do func()) (marked bool) {
	GinkgoHelper()
	a.full()
	a.patch(`{"spec":{"replicas":3}}`)
	a.wrote(0)
	do()
	a.patch(`{"spec":{"replicas":2}}`)
	time.Sleep(10 * time.Second)
	return a.isMarked("c")
}

// full leaves no room for more than three machines: none is created in place of one that leaves the reserve.
func (a *alone) full() {
	GinkgoHelper()
	a.patch(`{"metadata":{"annotations":{%q:"0:3:1"}}}`, api.BoundsAnnotation)
	a.wrote(0)
}

func (a *alone) isMarked(name string) bool {
	GinkgoHelper()
	return pool.Marked(a.stored(name))
}

// occupies binds a pod to a machine, on-c to c.
func (a *alone) occupies(machine, namespace string) {
	GinkgoHelper()
	pod := fixture.Pod("on-"+machine, func(p *corev1.Pod) { p.Namespace, p.Spec.NodeName = namespace, machine })
	_, err := a.core.CoreV1().Pods(namespace).Create(context.Background(), pod, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

var answerLost = apierrors.NewTimeoutError("the answer is lost", 1)

// doubt lowers replicas from three to two while only machine b is empty, and answers the write that puts b into the reserve with an error.
// moment decides whether that write takes effect before the error.
func (a *alone) doubt(answer error, moment func(func(sim.Write) error)) {
	GinkgoHelper()
	a.full()
	a.patch(`{"spec":{"replicas":3}}`)
	a.wrote(0)
	a.occupies("c", fixture.Namespace)
	a.leaves("on-b")
	moment(func(w sim.Write) error {
		if w.User == controllerUser && w.Resource == "machines" && w.Name == "b" {
			return answer
		}
		return nil
	})
	a.patch(`{"spec":{"replicas":2}}`)
	time.Sleep(time.Second)
}

// leaves removes a pod.
func (a *alone) leaves(pod string) {
	GinkgoHelper()
	Expect(a.core.CoreV1().Pods(fixture.Namespace).Delete(context.Background(), pod, metav1.DeleteOptions{})).To(Succeed())
}

var _ = Describe("A machine that enters the reserve", func() {
	It("stays where the one that was to serve in its place is gone (I2)", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			ctx, machines := context.Background(), a.stock.MachineV1alpha1().Machines(fixture.Namespace)
			a.leaves("on-b")
			a.wrote(0)
			a.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == controllerUser && r.Resource == "machines" && r.Writes() {
					before = 5 * time.Second
				}
				return before, 0
			})
			since := len(a.Writes())
			_, err := machines.Patch(ctx, "b", types.MergePatchType, []byte(`{"status":{"currentStatus":{"phase":"Pending"}}}`), metav1.PatchOptions{}, "status")
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(2 * time.Second)
			Expect(machines.Delete(ctx, "c", metav1.DeleteOptions{})).To(Succeed())
			Expect(a.wrote(since)).To(ContainElement("nodes c"))
			Expect(a.isMarked("b")).To(BeFalse())
		})
	})

	It("waits for the one that serves in its place also if that one was released before (I2)", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			a.leaves("on-b")
			a.wrote(0)
			a.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == controllerUser && r.Resource == "nodes" && r.Name == "c" {
					before = 30 * time.Second
				}
				return before, 0
			})
			a.OnWrite(func(w sim.Write) error {
				if w.Resource == "machines" && w.Verb == "create" {
					return apierrors.NewForbidden(mcmapi.Resource("machines"), w.Name, errors.New("no quota"))
				}
				return nil
			})
			a.patch(`{"spec":{"replicas":3}}`)
			time.Sleep(time.Second)
			a.reports("b", `{"currentStatus":{"phase":"Pending"}}`)
			a.patch(`{"spec":{"replicas":2}}`)
			time.Sleep(20 * time.Second)
			Expect([]bool{a.isMarked("b"), a.isMarked("c")}).To(Equal([]bool{false, true}))
			time.Sleep(time.Minute)
			Expect([]bool{a.isMarked("b"), a.isMarked("c")}).To(Equal([]bool{true, false}))
		})
	})

	It("gets NoExecute on its Node only once it has its mark, for pods may come until then", func() {
		both := machinetaint.Settings{Effects: []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}}
		onItsOwn(2, 1, both, func(a *alone) {
			var order []string
			Expect(a.retire(func() {
				a.AfterWrite(func(w sim.Write) error {
					taints, _, _ := unstructured.NestedSlice(w.Object, "spec", "taints")
					if w.User == controllerUser && w.Resource != "machinedeployments" {
						order = append(order, fmt.Sprint(w.Resource, " ", len(taints)))
					}
					return nil
				})
			})).To(BeTrue())
			Expect(order).To(HaveExactElements("nodes 1", "machines 0", "nodes 2"))
		})
	})

	It("is the only one while it is not known whether it has entered (I2)", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			a.doubt(answerLost, func(lose func(sim.Write) error) {
				a.AfterWrite(lose)
				a.Hold("machines", controllerUser)
			})
			Expect(a.isMarked("b")).To(BeTrue())
			a.leaves("on-c")
			time.Sleep(time.Minute)
			Expect(a.isMarked("c")).To(BeFalse(), "a and c are to serve")
			a.Release("machines", controllerUser)
			a.wrote(0)
			Expect([]bool{a.isMarked("b"), a.isMarked("c")}).To(Equal([]bool{true, false}))
		})
	})

	DescribeTable("lets another one enter in its place", func(answer error) {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			a.doubt(answer, a.OnWrite)
			a.occupies("b", fixture.Namespace)
			a.leaves("on-c")
			time.Sleep(10 * time.Second)
			Expect([]bool{a.isMarked("b"), a.isMarked("c")}).To(Equal([]bool{false, true}))
		})
	},
		Entry("where the answer was lost, and it has not entered", answerLost),
		Entry("where it was refused", apierrors.NewForbidden(mcmapi.Resource("machines"), "b", errors.New("not now"))),
	)

	DescribeTable("does not where a pod runs on it that is not shown yet (I2)", func(namespace string) {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			Expect(a.retire(func() {
				a.Hold("pods", controllerUser)
				a.occupies("c", namespace)
			})).To(BeFalse())
			a.Release("pods", controllerUser)
		})
	},
		Entry("in the namespace of the machines", fixture.Namespace),
		Entry("in any other namespace", "elsewhere"),
	)
})

var _ = Describe("The state of a machine in reserve (11)", func() {
	It("stays where the machine is not ready for a while", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			a.wrote(0)
			state := func() string {
				m := a.stored("c")
				return m.Annotations[api.ReserveStateAnnotation]
			}
			before := state()
			a.reports("c", `{"currentStatus":{"phase":"Pending"}}`)
			time.Sleep(time.Minute)
			Expect(before).To(HavePrefix("Held since "))
			Expect(state()).To(Equal(before))
		})
	})
})
