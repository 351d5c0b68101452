// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
)

// opens makes the controller begin to release machine c, and rejects its writes of that Machine until allowed is called. Until then, if there
// are errors for Nodes, its writes of Nodes fail with them, one after the other and then always with the last. The controller does not see pods
// that are created after that.
func (a *alone) opens(prepare func(a *alone), nodes ...error) (allowed func()) {
	GinkgoHelper()
	a.wrote(0)
	prepare(a)
	a.Hold("pods", controllerUser)
	var ended atomic.Bool
	next := -1
	a.OnWrite(func(w sim.Write) error {
		switch {
		case ended.Load() || w.User != controllerUser:
		case w.Resource == "machines" && w.Name == "c":
			return apierrors.NewServiceUnavailable("not now")
		case w.Resource == "nodes" && len(nodes) > 0:
			next = min(next+1, len(nodes)-1)
			return nodes[next]
		}
		return nil
	})
	a.patch(`{"spec":{"replicas":3}}`)
	time.Sleep(time.Second)
	Expect(a.isMarked("c")).To(BeTrue())
	return func() { ended.Store(true) }
}

// loseAnswers loses the answers to writes of Nodes after they took effect, and their watch is late.
func (a *alone) loseAnswers() {
	a.Hold("nodes", controllerUser)
	a.AfterWrite(func(w sim.Write) error {
		if w.User == controllerUser && w.Resource == "nodes" {
			return answerLost
		}
		return nil
	})
}

// touch writes a Node, as its kubelet does.
func touch(client kubernetes.Interface, node string) {
	GinkgoHelper()
	_, err := client.CoreV1().Nodes().Patch(context.Background(), node, types.MergePatchType, []byte(`{"metadata":{"labels":{"touched":"true"}}}`), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// lowers lowers the replicas of the MachineDeployment and of its MachineSet. If machine is not empty, it names that machine for deletion.
func (a *alone) lowers(replicas int, machine string) {
	GinkgoHelper()
	names := ""
	if machine != "" {
		names = machine + "~" + time.Now().UTC().Format(time.RFC3339)
	}
	a.patch(`{"spec":{"replicas":%d},"metadata":{"annotations":{%q:%q}}}`, replicas, machineutils.TriggerDeletionByMCM, names)
	a.patchSet(`{"spec":{"replicas":%d}}`, replicas)
}

// openings is how many machines the controller remembers whose Nodes it may have opened.
func (a *alone) openings() int { return a.taint.Remembered()["openings"] }

var _ = Describe("A machine whose release has begun, and that keeps its mark", func() {
	DescribeTable("serves: it is not deleted, and replicas are restored for one of the reserve that was named (12, I3)", func(prepare, then func(a *alone)) {
		onItsOwn(2, 2, machinetaint.Options{}, func(a *alone) {
			a.opens(prepare)
			then(a)
			a.occupies("c", fixture.Namespace)
			a.slowDown()
			a.lowers(2, "d")
			time.Sleep(time.Second)
			Expect(a.deployment().Spec.Replicas).To(Equal(int32(2)))
			Expect(a.refusesDeletion("c")).To(Satisfy(apierrors.IsConflict))
			Expect(a.refusesDeletion("d")).To(Satisfy(apierrors.IsConflict), "replicas are to be restored for it")
			time.Sleep(30 * time.Second)
			Expect(a.isMarked("c")).To(BeTrue())
			Expect(a.closed("c")).To(BeFalse())
			Expect(a.deployment().Spec.Replicas).To(Equal(int32(3)))
			Expect(a.refusesDeletion("c")).To(Satisfy(apierrors.IsConflict))
		})
	},
		Entry("where it is known that its Node was opened", func(*alone) {}, func(*alone) {}),
		Entry("where it is known that its Node was opened and that no pod came at first", func(*alone) {}, func(a *alone) {
			a.Release("pods", controllerUser)
			a.occupies("a", "elsewhere")
			time.Sleep(time.Second)
			a.Hold("pods", controllerUser)
		}),
		Entry("where that is not known", (*alone).loseAnswers, func(*alone) {}),
		Entry("where that is not known, and another client has written the Node before", func(a *alone) {
			a.loseAnswers()
			touch(a.core, "c")
			a.occupies("a", "elsewhere")
			time.Sleep(time.Second)
		}, func(*alone) {}),
	)

	DescribeTable("is closed again where it is not needed any more, and pods decide then", func(pod, mark bool) {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			allowed := a.opens((*alone).loseAnswers)
			if pod {
				a.occupies("c", fixture.Namespace)
			}
			a.lowers(2, "")
			allowed()
			time.Sleep(time.Minute)
			Expect(a.closed("c")).To(BeTrue())
			Expect(a.isMarked("c")).To(BeTrue())
			Expect(a.openings()).To(Equal(1))
			Expect(a.refusesDeletion("c")).To(Satisfy(apierrors.IsConflict))
			a.Release("pods", controllerUser)
			a.occupies("a", "elsewhere")
			time.Sleep(3 * time.Minute)
			Expect(a.openings()).To(BeZero())
			Expect(a.isMarked("c")).To(Equal(mark))
			Expect(a.closed("c")).To(Equal(mark))
		})
	},
		Entry("that none came", false, true),
		Entry("that one came", true, false),
	)

	DescribeTable("goes where workload needs no machine, unless replicas are to be restored for one that was named", func(named string, goes OmegaMatcher) {
		onItsOwn(2, 2, machinetaint.Options{}, func(a *alone) {
			a.opens(func(*alone) {})
			a.slowDown()
			a.lowers(0, named)
			time.Sleep(time.Second)
			Expect(a.refusesDeletion("c")).To(goes)
		})
	},
		Entry("and is asked for", "", Succeed()),
		Entry("and is not", "d", Satisfy(apierrors.IsConflict)),
	)

	DescribeTable("is in reserve once it is known that its Node stayed closed", func(happens func(a *alone)) {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.opens(func(*alone) {}, answerLost, apierrors.NewForbidden(corev1.Resource("nodes"), "c", errors.New("not now")))
			Expect(a.openings()).To(Equal(1))
			happens(a)
			Expect(a.openings()).To(BeZero())
			Expect(a.isMarked("c")).To(BeTrue())
			Expect(a.closed("c")).To(BeTrue())
			Expect(a.refusesDeletion("c")).To(Succeed())
		})
	},
		Entry("by a later version of it, and by pods as late", func(a *alone) {
			a.lowers(2, "")
			touch(a.core, "c")
			time.Sleep(time.Minute)
			Expect(a.openings()).To(Equal(1), "a pod may have come before")
			a.Release("pods", controllerUser)
			a.occupies("a", "elsewhere")
			time.Sleep(3 * time.Minute)
		}),
		Entry("because no write of it can be under way any more", func(a *alone) {
			a.lowers(2, "")
			time.Sleep(3 * time.Minute)
		}),
		Entry("because no write of it can be under way any more, and later ones were refused", func(a *alone) {
			time.Sleep(3 * time.Minute)
			a.lowers(2, "")
			time.Sleep(time.Second)
		}),
	)

	It("is like any other one in reserve where its Node cannot be closed again", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			allowed := a.opens(func(*alone) {})
			a.Admit(func(w sim.Admission) error {
				if w.Resource == "nodes" && w.User == controllerUser {
					return apierrors.NewForbidden(corev1.Resource("nodes"), w.Name, errors.New("no taints"))
				}
				return nil
			})
			a.lowers(2, "")
			allowed()
			a.patch(`{"spec":{"excessReplicas":0}}`)
			time.Sleep(3 * time.Minute)
			Expect(a.openings()).To(BeZero())
			Expect(a.closed("c")).To(BeFalse())
			Expect(a.isMarked("c")).To(BeTrue())
			Expect(a.applied()).To(BeEmpty())
		})
	})

	It("is remembered where the Node of another one cannot be closed again", func() {
		onItsOwn(2, 2, machinetaint.Options{}, func(a *alone) {
			allowed := a.opens(func(*alone) {})
			touch(a.core, "d")
			time.Sleep(time.Second) // the controller sees that version, and no pods of it
			a.taint.Opening(fixture.Namespace+"/pool", a.stored("d"))
			Expect(a.openings()).To(Equal(2))
			a.Admit(func(w sim.Admission) error {
				if w.Resource == "nodes" && w.Name == "c" && w.User == controllerUser {
					return apierrors.NewForbidden(corev1.Resource("nodes"), w.Name, errors.New("no taints"))
				}
				return nil
			})
			a.lowers(2, "")
			allowed()
			time.Sleep(time.Minute)
			Expect(a.openings()).To(Equal(1))
			Expect(a.refusesDeletion("d")).To(Satisfy(apierrors.IsConflict))
		})
	})

	It("is none that has just entered the reserve", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			Expect(a.retire(func() { a.Hold("pods", controllerUser) })).To(BeTrue())
			Expect(a.openings()).To(BeZero())
			a.Release("pods", controllerUser)
		})
	})
})
