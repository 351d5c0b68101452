// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/lens/view"
)

var _ = Describe("The creation of a Machine (V9)", func() {
	It("of an outcome that is unknown counts until it is too old, and is decided once for its name", func() {
		r := &registry{serve: 1}
		bornInWorld(r.births(), func(w world) {
			named := child("pool")
			named.Name, named.GenerateName = "pool-x", ""
			w.failing(w.server.AfterWrite, 1, errLate)
			Expect(second(w.bear(named))).To(HaveOccurred())
			Expect(apierrors.IsAlreadyExists(second(w.bear(named)))).To(BeTrue())
			Expect(r.asked).To(HaveLen(1))
			serving, _ := w.stored("pool")
			Expect(serving).To(Equal(1))

			_, err := w.bear(child("pool"))
			Expect(err).NotTo(HaveOccurred())
			Expect(r.asked[1].InProgress).To(Equal([]view.InProgress{{Name: "pool-x"}}))
			time.Sleep(3 * time.Minute)
			_, err = w.bear(child("pool"))
			Expect(err).NotTo(HaveOccurred())
			Expect(r.asked[2].InProgress).To(HaveLen(1), "the doubtful one is forgotten, the other is not shown yet")
		})
	})

	It("of an outcome that is unknown counts no longer once the Machine was read, and the store shows as much", func() {
		r := &registry{serve: 1}
		bornInWorld(r.births(), func(w world) {
			named := child("pool")
			named.Name, named.GenerateName = "pool-x", ""
			w.failing(w.server.AfterWrite, 1, errLate)
			Expect(second(w.bear(named))).To(HaveOccurred())
			Expect(second(w.seen.Machines(ns).Get(w, "pool-x", metav1.GetOptions{}))).To(Succeed())
			_, err := w.bear(child("pool"))
			Expect(err).NotTo(HaveOccurred())
			Expect(r.asked[1].InProgress).To(Equal([]view.InProgress{{Name: "pool-x"}}), "the store does not show it yet")
			r.seen = true
			_, err = w.bear(child("pool"))
			Expect(err).NotTo(HaveOccurred())
			Expect(r.asked[2].InProgress).To(BeEmpty(), "it may be gone by now")
		})
	})

	It("that is tried again is under way, however long ago the first try was", func() {
		r := &registry{serve: 1}
		bornInWorld(r.births(), func(w world) {
			named := child("pool")
			named.Name, named.GenerateName = "pool-x", ""
			w.failing(w.server.AfterWrite, 1, errLate)
			Expect(second(w.bear(named))).To(HaveOccurred())
			time.Sleep(115 * time.Second)
			w.server.Latency(20 * time.Second)
			var again sync.WaitGroup
			again.Go(func() { _, _ = w.bear(named) })
			time.Sleep(10 * time.Second)
			_, err := w.bear(child("pool"))
			Expect(err).NotTo(HaveOccurred())
			again.Wait()
			Expect(r.asked[1].InProgress).To(Equal([]view.InProgress{{Name: "pool-x"}}))
		})
	})

	It("that was refused does not count", func() {
		r := &registry{serve: 1}
		bornInWorld(r.births(), func(w world) {
			w.failing(w.server.OnWrite, 1, apierrors.NewForbidden(v1alpha1.Resource("machines"), "", fmt.Errorf("quota")))
			Expect(apierrors.IsForbidden(second(w.bear(child("pool"))))).To(BeTrue())
			_, err := w.bear(child("pool"))
			Expect(err).NotTo(HaveOccurred())
			Expect(r.asked[1].InProgress).To(BeEmpty())
		})
	})

	It("that was refused counts if an earlier attempt may take effect yet", func() {
		r := &registry{serve: 1}
		bornInWorld(r.births(), func(w world) {
			named := child("pool")
			named.Name, named.GenerateName = "pool-x", ""
			w.failing(w.server.OnWrite, 1, errLate)
			Expect(second(w.bear(named))).To(MatchError(errLate))
			w.failing(w.server.OnWrite, 1, apierrors.NewForbidden(v1alpha1.Resource("machines"), "", fmt.Errorf("quota")))
			Expect(apierrors.IsForbidden(second(w.bear(named)))).To(BeTrue())
			_, err := w.bear(child("pool"))
			Expect(err).NotTo(HaveOccurred())
			Expect(r.asked[1].InProgress).To(Equal([]view.InProgress{{Name: "pool-x"}}))
		})
	})

	It("is decided alone also if the one before it was refused, and the next one comes meanwhile (V13)", func() {
		r := &registry{serve: 1}
		births := r.births()
		var all sync.WaitGroup
		var next func()
		var first, second sync.Once
		births.Superfluous = func(view.Creation) (err error) {
			first.Do(func() {
				next() // waits for this one
				err = apierrors.NewConflict(v1alpha1.Resource("machines"), "", errors.New("there are enough"))
			})
			return err
		}
		r.during = func(view.Creation) { second.Do(func() { next() }) }
		bornInWorld(births, func(w world) {
			next = func() {
				all.Go(func() {
					defer GinkgoRecover()
					_, err := w.bear(child("pool"))
					Expect(err).NotTo(HaveOccurred())
				})
				for range 1000 {
					runtime.Gosched()
				}
			}
			_, err := w.bear(child("pool"))
			Expect(apierrors.IsConflict(err)).To(BeTrue())
			all.Wait()
			Expect(r.most).To(Equal(1), "one decision after another")
			serving, reserved := w.stored("pool")
			Expect([]int{serving, reserved}).To(Equal([]int{1, 1}))
		})
	})

	It("is not created where it is superfluous, and is not remembered (V13)", func() {
		r := &registry{}
		births, refuse := r.births(), true
		births.Superfluous = func(b view.Creation) error {
			Expect(b.Deployment.Name).To(Equal("pool"))
			if refuse {
				return apierrors.NewConflict(v1alpha1.Resource("machines"), "", errors.New("there are enough"))
			}
			return nil
		}
		bornInWorld(births, func(w world) {
			m, err := w.bear(child("pool"))
			Expect(apierrors.IsConflict(err)).To(BeTrue())
			Expect(m).NotTo(BeNil())
			Expect(r.asked).To(BeEmpty())
			Expect(view.Remembered(w.clientset)).To(BeZero())
			refuse = false
			_, err = w.bear(child("pool"))
			Expect(err).NotTo(HaveOccurred())
			Expect(r.asked).To(HaveLen(1))
		})
	})

	It("is no failure of its MachineDeployment where it is superfluous, and others are (V13)", func() {
		births := (&registry{}).births()
		births.Superfluous = func(view.Creation) error {
			return apierrors.NewConflict(v1alpha1.Resource("machines"), "", errors.New("there are enough"))
		}
		bornInWorld(births, func(w world) {
			refused := second(w.bear(child("pool")))
			Expect(refused).To(HaveOccurred())
			kept := func(message string) (kinds []v1alpha1.MachineDeploymentConditionType) {
				d := w.deployment().DeepCopy()
				d.Status.Conditions = []v1alpha1.MachineDeploymentCondition{{Type: v1alpha1.MachineDeploymentReplicaFailure, Message: message}, {Type: "Other", Message: message}}
				d, err := w.seen.MachineDeployments(ns).UpdateStatus(w, d, metav1.UpdateOptions{})
				Expect(err).NotTo(HaveOccurred())
				for _, c := range d.Status.Conditions {
					kinds = append(kinds, c.Type)
				}
				return kinds
			}
			Expect(kept(refused.Error())).To(HaveExactElements(BeEquivalentTo("Other")))
			Expect(kept("quota")).To(HaveExactElements(v1alpha1.MachineDeploymentReplicaFailure, BeEquivalentTo("Other")))
			failed := w.failing(w.server.OnWrite, 1, errServer)
			Expect(kept(refused.Error())).To(HaveExactElements(BeEquivalentTo("Other")), "also when it is written again")
			Expect(*failed).To(Equal(1))
		})
	})
})
