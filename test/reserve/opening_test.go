// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

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

// loseAnswers loses the answers to the controller's writes of a resource after they took effect, or only to those with these verbs.
func (a *alone) loseAnswers(resource string, verbs ...string) {
	a.AfterWrite(func(w sim.Write) error {
		if w.User == controllerUser && w.Resource == resource && (len(verbs) == 0 || slices.Contains(verbs, w.Verb)) {
			return answerLost
		}
		return nil
	})
}

// loseSightOfNodes loses the answers to writes of Nodes, and holds their watch.
func (a *alone) loseSightOfNodes() {
	a.Hold("nodes", controllerUser)
	a.loseAnswers("nodes")
}

// touch writes a Node, as its kubelet does.
func touch(client kubernetes.Interface, node string) {
	GinkgoHelper()
	_, err := client.CoreV1().Nodes().Patch(context.Background(), node, types.MergePatchType, []byte(`{"metadata":{"labels":{"touched":"true"}}}`), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("A machine whose release has begun, and that keeps its mark", func() {
	DescribeTable("is not deleted if a pod came that is not seen yet (I3)", func(prepare func(a *alone)) {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			allowed := a.opens(prepare)
			a.occupies("c", fixture.Namespace)
			a.patch(`{"spec":{"replicas":2,"excessReplicas":0}}`)
			time.Sleep(time.Minute)
			allowed()
			time.Sleep(5 * time.Minute)
			a.exists("c")
			a.Release("pods", controllerUser)
			a.Release("nodes", controllerUser)
			time.Sleep(time.Minute)
			Expect(a.isMarked("c")).To(BeFalse())
			Expect(a.closed("c")).To(BeFalse())
		})
	},
		Entry("where it is known that its Node was opened", func(*alone) {}),
		Entry("where that is not known", (*alone).loseSightOfNodes),
		Entry("where that is not known, and another client has written the Node before", func(a *alone) {
			a.loseSightOfNodes()
			touch(a.core, "c")
		}),
	)

	It("is not deleted by a decision from before it was known that its Node may have been opened (I3)", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			time.Sleep(2 * time.Minute) // no request of an earlier process is under way
			a.loseSightOfNodes()
			a.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				switch {
				case r.User != controllerUser:
				case r.Resource == "nodes" && r.Writes():
					return 0, 5 * time.Second
				case r.Resource == "machinesets" && r.Verb == "get":
					return 6 * time.Second, 0
				case r.Resource == "machines" && r.Verb == "delete":
					return 3 * time.Second, 0
				}
				return 0, 0
			})
			a.patch(`{"spec":{"replicas":3}}`)
			time.Sleep(time.Second)
			Expect(a.closed("c")).To(BeFalse())
			Expect(a.isMarked("c")).To(BeTrue())
			a.patch(`{"spec":{"replicas":2,"excessReplicas":0}}`)
			time.Sleep(10 * time.Second)
			a.occupies("c", fixture.Namespace)
			time.Sleep(time.Minute)
			a.exists("c")
			a.Release("nodes", controllerUser)
			time.Sleep(time.Minute)
			Expect(a.isMarked("c")).To(BeFalse())
			Expect(a.closed("c")).To(BeFalse())
		})
	})

	It("is not deleted where its Node may have been opened while it was read because of an earlier write (I3)", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			time.Sleep(2 * time.Minute) // no request of an earlier process is under way
			a.loseAnswers("nodes")
			reads := 0
			a.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				switch {
				case r.User != controllerUser:
				case r.Resource == "nodes" && r.Verb == "get":
					if reads++; reads == 1 {
						return 0, 20 * time.Second
					}
					return 0, 6 * time.Second
				case r.Resource == "machines" && r.Verb == "delete":
					return 4 * time.Second, 0
				}
				return 0, 0
			})
			_, err := a.core.CoreV1().Nodes().Patch(context.Background(), "c", types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(2 * time.Second)
			Expect(a.closed("c")).To(BeTrue(), "and it is being read, as that was not answered")
			a.Hold("nodes", controllerUser)
			a.patch(`{"spec":{"replicas":3}}`)
			time.Sleep(8 * time.Second)
			Expect(a.closed("c")).To(BeFalse())
			Expect(a.isMarked("c")).To(BeTrue())
			a.patch(`{"spec":{"replicas":2,"excessReplicas":0}}`)
			time.Sleep(12500 * time.Millisecond)
			a.occupies("c", fixture.Namespace)
			time.Sleep(time.Minute)
			a.exists("c")
			a.Release("nodes", controllerUser)
			time.Sleep(time.Minute)
			Expect(a.isMarked("c")).To(BeFalse())
			Expect(a.closed("c")).To(BeFalse())
		})
	})

	It("is not opened while it is being read whether an earlier request has deleted it", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			a.wrote(0)
			a.Hold("machines", controllerUser)
			a.loseAnswers("machines", "delete")
			a.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == controllerUser && r.Resource == "machines" && r.Verb == "get" {
					before = 5 * time.Second
				}
				return before, 0
			})
			a.patch(`{"spec":{"excessReplicas":0}}`)
			time.Sleep(time.Second)
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Patch(context.Background(), "pool", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			a.controller.ObserveUpdate(context.Background(), d)
			time.Sleep(time.Minute)
			Expect(a.closed("c")).To(BeTrue(), "its machine is gone")
		})
	})

	It("is not opened where it was deleted while its Node was read", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			time.Sleep(2 * time.Minute) // no request of an earlier process is under way
			a.loseAnswers("nodes")
			reads := 0
			a.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == controllerUser && r.Resource == "nodes" && r.Verb == "get" {
					if reads++; reads == 1 {
						return 0, 3 * time.Second
					}
					return 0, 10 * time.Second
				}
				return 0, 0
			})
			_, err := a.core.CoreV1().Nodes().Patch(context.Background(), "c", types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(a.closed("c")).To(BeTrue(), "and it is being read, as that was not answered")
			a.Hold("machines", controllerUser)
			a.patch(`{"spec":{"replicas":3}}`)
			time.Sleep(time.Second)
			a.patch(`{"spec":{"replicas":2,"excessReplicas":0}}`)
			time.Sleep(5 * time.Second)
			_, err = a.stock.MachineV1alpha1().Machines(fixture.Namespace).Get(context.Background(), "c", metav1.GetOptions{})
			Expect(apierrors.IsNotFound(err)).To(BeTrue())
			time.Sleep(time.Minute)
			Expect(a.closed("c")).To(BeTrue())
		})
	})

	It("is closed again where it is not needed any more and no pod came, and stays in reserve", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			allowed := a.opens(func(*alone) {})
			a.patch(`{"spec":{"replicas":2}}`)
			allowed()
			a.Release("pods", controllerUser)
			time.Sleep(5 * time.Minute)
			Expect(a.isMarked("c")).To(BeTrue())
			Expect(a.closed("c")).To(BeTrue())
		})
	})

	It("goes where its Node cannot be closed again, and no pod came", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			allowed := a.opens(func(*alone) {})
			a.Admit(func(w sim.Admission) error {
				if w.Resource == "nodes" && w.User == controllerUser {
					return apierrors.NewForbidden(corev1.Resource("nodes"), w.Name, errors.New("no taints"))
				}
				return nil
			})
			allowed()
			a.patch(`{"spec":{"replicas":2,"excessReplicas":0}}`)
			a.Release("pods", controllerUser)
			time.Sleep(5 * time.Minute)
			_, err := a.stock.MachineV1alpha1().Machines(fixture.Namespace).Get(context.Background(), "c", metav1.GetOptions{})
			Expect(err).To(Satisfy(apierrors.IsNotFound))
			Expect(a.applied()).To(BeEmpty())
		})
	})
})

// exists expects that a machine has not been deleted.
func (a *alone) exists(machine string) {
	GinkgoHelper()
	Expect(a.stored(machine).DeletionTimestamp).To(BeNil())
}
