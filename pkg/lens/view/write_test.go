// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"context"
	"errors"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/sim"
)

func second[T any](_ T, err error) error { return err }

func (w world) setReplicas(n int32) error {
	d := w.deployment()
	d.Spec.Replicas = n
	_, err := w.seen.MachineDeployments(ns).Update(w, d, metav1.UpdateOptions{})
	return err
}

// Each of these decides now, and writes when the function returned is called.

func (w world) updateMachine() func() error {
	m := w.machine()
	m.Spec.ProviderID = "x"
	return func() error { return second(w.seen.Machines(ns).Update(w, m, metav1.UpdateOptions{})) }
}

func (w world) updateMachineStatus() func() error {
	m := w.machine()
	m.Status.CurrentStatus.Phase = v1alpha1.MachineFailed
	return func() error { return second(w.seen.Machines(ns).UpdateStatus(w, m, metav1.UpdateOptions{})) }
}

func (w world) updateDeployment() func() error {
	d := w.deployment()
	d.Labels = map[string]string{"freeze": "True"}
	return func() error { return second(w.seen.MachineDeployments(ns).Update(w, d, metav1.UpdateOptions{})) }
}

func (w world) updateDeploymentStatus() func() error {
	d := w.deployment()
	d.Status.Replicas = 5
	return func() error { return second(w.seen.MachineDeployments(ns).UpdateStatus(w, d, metav1.UpdateOptions{})) }
}

var _ = Describe("A write decided on an old version (V6)", func() {
	DescribeTable("is a conflict, also if only what is hidden has changed",
		func(decide func(world) func() error, patch string) {
			inWorld(func(w world) {
				Expect(decide(w)()).To(Succeed(), "nothing has changed")
				write := decide(w)
				_, err := w.raw.Machines(ns).Patch(w, "m", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
				Expect(err).NotTo(HaveOccurred())
				_, err = w.raw.MachineDeployments(ns).Patch(w, "pool", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
				Expect(err).NotTo(HaveOccurred())
				before := len(w.server.Writes())
				Expect(apierrors.IsConflict(write())).To(BeTrue())
				Expect(w.server.Writes()).To(HaveLen(before))
			})
		},
		Entry("excess", world.updateDeployment, `{"metadata":{"annotations":{"`+machine.AppliedExcessAnnotation+`":"1"}}}`),
		Entry("the wish", world.updateDeployment, `{"spec":{"excessReplicas":1}}`),
		Entry("replicas, which a status is not about", world.updateDeploymentStatus, `{"spec":{"replicas":4}}`),
		Entry("the mark", world.updateMachine, `{"metadata":{"annotations":{"`+machine.ReserveAnnotation+`":null}}}`),
		Entry("something else", world.updateMachine, `{"metadata":{"labels":{"a":"b"}}}`),
		Entry("something else, and the status is written", world.updateMachineStatus, `{"metadata":{"labels":{"a":"b"}}}`),
	)

	It("is a conflict too when the change comes between reading and writing", func() {
		inWorld(func(w world) {
			write := w.updateMachine()
			w.server.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == "ours" && r.Writes() {
					return time.Second, 0
				}
				return 0, 0
			})
			answer := make(chan error)
			go func() { answer <- write() }()
			time.Sleep(time.Second / 2)
			_, err := w.raw.Machines(ns).Patch(w, "m", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(apierrors.IsConflict(<-answer)).To(BeTrue())
			w.whole()
		})
	})
})

var (
	errServer = apierrors.NewInternalError(errors.New("storage"))
	errLate   = apierrors.NewTimeoutError("too late", 0)
	errSilent = errors.New("connection reset")
)

// failing makes so many writes of ours fail.
func (w world) failing(hook func(func(sim.Write) error), times int, err error) *int {
	failed := 0
	hook(func(write sim.Write) error {
		if write.User != "ours" || failed >= times {
			return nil
		}
		failed++
		return err
	})
	return &failed
}

var _ = Describe("A write that fails for a passing reason (V8)", func() {
	DescribeTable("is repeated until it has taken effect, and takes effect once",
		func(decide func(world) func() error, hook func(*sim.Server) func(func(sim.Write) error), err error) {
			inWorld(func(w world) {
				write := decide(w)
				failed := w.failing(hook(w.server), 3, err)
				before := w.server.Version()
				Expect(write()).To(Succeed())
				Expect(*failed).To(BeNumerically(">", 0))
				w.whole()
				effective := 0
				for _, one := range w.server.Writes() {
					if one.User == "ours" && !one.NoOp() {
						effective++
					}
				}
				Expect(effective).To(Equal(1))
				Expect(w.server.Version()).NotTo(Equal(before))
			})
		},
		Entry("before its effect", world.updateMachine, before, errServer),
		Entry("before its effect, without an answer", world.updateMachine, before, errSilent),
		Entry("after its effect", world.updateMachine, after, errLate),
		Entry("after its effect, without an answer", world.updateMachine, after, errSilent),
		Entry("a status, before", world.updateMachineStatus, before, errServer),
		Entry("a status, after", world.updateMachineStatus, after, errLate),
		Entry("a deployment, after", world.updateDeployment, after, errLate),
		Entry("a deployment's status, after", world.updateDeploymentStatus, after, errSilent),
		Entry("throttled", world.updateMachine, before, apierrors.NewTooManyRequests("too many requests", 0)),
		Entry("with an expired token, after an attempt that took effect", world.updateMachine, after, apierrors.NewUnauthorized("token has expired")),
	)

	DescribeTable("is repeated while the object cannot be read", func(answer sim.Answer) {
		inWorld(func(w world) {
			write := w.updateMachine()
			w.failing(w.server.AfterWrite, 1, errLate)
			go func() {
				time.Sleep(10 * time.Millisecond)
				w.server.Trouble("machines", sim.Trouble{Reads: 1, Only: []sim.Answer{answer}}, "ours")
				time.Sleep(time.Second)
				w.server.Trouble("machines", sim.Trouble{}, "ours")
			}()
			Expect(write()).To(Succeed())
			w.whole()
		})
	},
		Entry("for want of a right that comes back", sim.Forbidden),
		Entry("for want of a token that comes back", sim.Unauthorized),
		Entry("since the server is busy", sim.Throttled),
	)

	It("is found to have taken effect where the server notes who wrote which field", func() {
		inWorld(func(w world) {
			applied := `{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"Machine","metadata":{"name":"m","labels":{"a":"b"}}}`
			_, err := w.raw.Machines(ns).Patch(w, "m", types.ApplyPatchType, []byte(applied), metav1.PatchOptions{FieldManager: "others"})
			Expect(err).NotTo(HaveOccurred())
			Expect(w.machine().ManagedFields).NotTo(BeEmpty())
			write := w.updateMachine()
			w.failing(w.server.AfterWrite, 1, errSilent)
			Expect(write()).To(Succeed())
		})
	})

	It("is a conflict if another client wrote meanwhile", func() {
		inWorld(func(w world) {
			write := w.updateMachine()
			w.failing(w.server.OnWrite, 1, errServer)
			go func() {
				time.Sleep(10 * time.Millisecond)
				_, _ = w.raw.Machines(ns).Patch(w, "m", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
			}()
			Expect(apierrors.IsConflict(write())).To(BeTrue())
		})
	})

	It("is reported if the server goes on refusing, after some seconds", func() {
		inWorld(func(w world) {
			write := w.updateMachine()
			failed := w.failing(w.server.OnWrite, 1000, errServer)
			begun := time.Now()
			Expect(apierrors.IsInternalError(write())).To(BeTrue())
			Expect(*failed).To(Equal(10))
			Expect(time.Since(begun)).To(BeNumerically("~", 10*time.Second, 3*time.Second))
		})
	})

	It("waits for a server that does not answer, however long", func() {
		inWorld(func(w world) {
			write := w.updateMachine()
			w.server.Down(true, "ours")
			go func() {
				time.Sleep(time.Hour)
				w.server.Down(false, "ours")
			}()
			Expect(write()).To(Succeed())
			w.whole()
		})
	})

	It("is given up with the clientset", func() {
		inWorld(func(w world) {
			m := w.machine()
			w.server.Down(true, "ours")
			go func() {
				time.Sleep(time.Minute)
				w.stop()
			}()
			_, err := w.seen.Machines(ns).Update(context.Background(), m, metav1.UpdateOptions{})
			Expect(err).To(HaveOccurred())
		})
	})

	It("is not repeated if the server refused it for good", func() {
		inWorld(func(w world) {
			write := w.updateMachine()
			failed := w.failing(w.server.OnWrite, 1000, apierrors.NewForbidden(v1alpha1.Resource("machines"), "m", errors.New("no")))
			Expect(apierrors.IsForbidden(write())).To(BeTrue())
			Expect(*failed).To(Equal(1))
		})
	})
})

func before(s *sim.Server) func(func(sim.Write) error) { return s.OnWrite }
func after(s *sim.Server) func(func(sim.Write) error)  { return s.AfterWrite }
