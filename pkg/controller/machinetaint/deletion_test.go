// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
)

// refusesDeletion returns why a machine must not be deleted now.
func (a *alone) refusesDeletion(name string) error {
	_, _, err := a.taint.Guards().Remove(fixture.Namespace, name)
	return err
}

var _ = Describe("What the controller answers the lens about deletions", func() {
	It("a machine does not go while it leaves the reserve", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			a.patchSet(`{"spec":{"replicas":2}}`)
			a.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == controllerUser && r.Verb == "patch" && r.Resource == "nodes" {
					return 0, time.Second
				}
				return 0, 0
			})
			a.patch(`{"spec":{"replicas":3}}`)
			time.Sleep(500 * time.Millisecond)
			Expect(a.refusesDeletion("c")).To(Satisfy(apierrors.IsConflict))
			time.Sleep(time.Minute)
			Expect(a.refusesDeletion("c")).To(Satisfy(apierrors.IsConflict), "it serves now, and is needed")
			a.patch(`{"spec":{"template":{"spec":{"class":{"name":"other"}}}}}`)
			a.wrote(0)
			Expect(a.refusesDeletion("c")).To(Succeed(), "a rollout replaces it, at its new version")
		})
	})

	It("a machine is not put in reserve where replicas grow before the one that takes its place has left it", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ctx, machines := context.Background(), a.stock.MachineV1alpha1().Machines(fixture.Namespace)
			set, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Get(ctx, "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			booting := a.machine(set, false)
			_, err = machines.Patch(ctx, booting, types.MergePatchType, []byte(`{"status":{"currentStatus":{"phase":"Pending"}}}`), metav1.PatchOptions{}, "status")
			Expect(err).NotTo(HaveOccurred())
			Expect(a.core.CoreV1().Nodes().Delete(ctx, booting, metav1.DeleteOptions{})).To(Succeed())
			a.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == controllerUser && r.Verb == "patch" && r.Resource == "nodes" {
					return time.Second, 0
				}
				return 0, 0
			})
			since := len(a.Writes())
			a.patch(`{"spec":{"replicas":3}}`)
			time.Sleep(500 * time.Millisecond)
			a.patch(`{"spec":{"replicas":4}}`)
			Expect(a.wrote(since)).NotTo(ContainElement(ContainSubstring("machines " + booting)))
			m, err := machines.Get(ctx, "c", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(m.Annotations).NotTo(HaveKey(api.ReserveAnnotation), "the one that takes its place")
		})
	})

	It("a machine that serves stays while another one may be in reserve that the controller does not see yet (I3)", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ctx := context.Background()
			a.Hold("machines", controllerUser)
			set, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Get(ctx, "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			a.machine(set, true)
			time.Sleep(time.Second)
			Expect(a.refusesDeletion("a")).To(Satisfy(apierrors.IsConflict))
			a.Release("machines", controllerUser)
			time.Sleep(time.Second)
			Expect(a.refusesDeletion("a")).To(Satisfy(apierrors.IsConflict), "it is in reserve")
			a.patch(`{"spec":{"replicas":1}}`)
			time.Sleep(time.Second)
			Expect(a.refusesDeletion("a")).To(Succeed())
		})
	})

	It("a machine that serves goes only at the version that was seen, after a reduction of the excess that may be the reason (I3)", func() {
		onItsOwn(3, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ctx, machines := context.Background(), a.stock.MachineV1alpha1().Machines(fixture.Namespace)
			ask := func() (version string) {
				version, ended, err := a.taint.Guards().Remove(fixture.Namespace, "a")
				Expect(err).NotTo(HaveOccurred())
				ended(apierrors.NewConflict(mcmapi.Resource("machines"), "a", nil))
				return version
			}
			a.patch(`{"spec":{"excessReplicas":0}}`)
			time.Sleep(time.Second)
			Expect(a.applied()).To(BeEmpty())
			Expect(machines.Delete(ctx, "d", metav1.DeleteOptions{})).To(Succeed())
			_, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Patch(ctx, "pool-1", types.MergePatchType, []byte(`{"spec":{"replicas":2}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			a.patch(`{"spec":{"replicas":2}}`)
			time.Sleep(time.Second)
			m, err := machines.Get(ctx, "a", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(ask()).To(Equal(m.ResourceVersion))
			time.Sleep(3 * time.Minute)
			Expect(ask()).To(BeEmpty(), "that is left to machine-controller-manager")
		})
	})

	It("a machine that serves does not go before those in reserve where all annotations were lost", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			a.Hold("machines", controllerUser, lensUser)
			a.patch(`{"spec":{"excessReplicas":null,"reserveWitness":null},"metadata":{"annotations":null}}`)
			time.Sleep(10 * time.Millisecond)
			Expect(a.refusesDeletion("a")).To(Satisfy(apierrors.IsConflict))
			Expect(a.refusesDeletion("c")).To(Satisfy(apierrors.IsConflict), "three are still wanted")
			a.patchSet(`{"metadata":{"annotations":{"deployment.kubernetes.io/desired-replicas":"2"}},"spec":{"replicas":2}}`)
			time.Sleep(time.Second)
			Expect(a.refusesDeletion("a")).To(Satisfy(apierrors.IsConflict))
			Expect(a.refusesDeletion("c")).To(Satisfy(apierrors.IsConflict), "the excess falls only when it is seen that c goes first")
			a.Release("machines", controllerUser, lensUser)
			time.Sleep(time.Second)
			Expect(a.refusesDeletion("c")).To(Succeed())
		})
	})

	It("counts a machine out from when its removal begins until the store shows it, unless that was refused", func() {
		onItsOwn(4, 1, machinetaint.Options{}, func(a *alone) {
			a.patch(`{"spec":{"template":{"spec":{"class":{"name":"other"}}}}}`) // a rollout replaces all of them
			a.wrote(0)
			resize := func(replicas int) {
				a.patchSet(`{"spec":{"replicas":%d}}`, replicas)
				time.Sleep(time.Second)
			}
			resize(4)
			a.Hold("machines", controllerUser, lensUser)
			remove := a.taint.Guards().Remove
			_, ended, err := remove(fixture.Namespace, "a")
			Expect(err).NotTo(HaveOccurred())
			ended(apierrors.NewConflict(mcmapi.Resource("machines"), "a", nil))
			_, ended, err = remove(fixture.Namespace, "b")
			Expect(err).NotTo(HaveOccurred(), "the first was refused")
			Expect(a.stock.MachineV1alpha1().Machines(fixture.Namespace).Delete(context.Background(), "b", metav1.DeleteOptions{})).To(Succeed())
			ended(nil)
			_, _, err = remove(fixture.Namespace, "c")
			Expect(err).To(Satisfy(apierrors.IsConflict), "one of five has gone, though the store does not show it")
			_, _, err = remove(fixture.Namespace, "b")
			Expect(err).NotTo(HaveOccurred(), "it is the one that goes")
			resize(3)
			_, ended, err = remove(fixture.Namespace, "c")
			Expect(err).NotTo(HaveOccurred())
			ended(errors.New("the connection broke"))
			_, _, err = remove(fixture.Namespace, "d")
			Expect(err).To(Satisfy(apierrors.IsConflict), "the third may have gone")
			time.Sleep(3 * time.Minute)
			_, ended, err = remove(fixture.Namespace, "d")
			Expect(err).NotTo(HaveOccurred(), "it would have been seen by now")
			ended(apierrors.NewGenericServerResponse(http.StatusNotFound, "delete", mcmapi.Resource("machines"), "d", "no such page", 0, true))
			_, _, err = remove(fixture.Namespace, "e")
			Expect(err).To(Satisfy(apierrors.IsConflict), "a proxy does not know whether the fourth has gone")
			time.Sleep(3 * time.Minute)
			_, _, err = remove(fixture.Namespace, "e")
			Expect(err).NotTo(HaveOccurred(), "it would have been seen by now, too")
			a.Release("machines", controllerUser, lensUser)
		})
	})

	It("a machine stays while its MachineSet asks for what was decided before the excess was applied, unless that is frozen and has no reserve", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ask := func(replicas int, decidedFor, frozen string) error {
				a.patchSet(`{"metadata":{"annotations":{"deployment.kubernetes.io/desired-replicas":%q},"labels":{"freeze":%q}},"spec":{"replicas":%d}}`, decidedFor, frozen, replicas)
				time.Sleep(time.Second)
				_, ended, err := a.taint.Guards().Remove(fixture.Namespace, "a")
				if err == nil {
					ended(apierrors.NewConflict(mcmapi.Resource("machines"), "a", nil))
				}
				return err
			}
			Expect(ask(2, "2", "")).To(Satisfy(apierrors.IsConflict))
			Expect(ask(2, "3", "")).To(Satisfy(apierrors.IsConflict), "both that serve are needed, and the third is in reserve")
			Expect(ask(2, "2", "True")).To(Satisfy(apierrors.IsConflict), "the third can go, and the set thaws because a larger number is shown")
			Expect(ask(2, "3", "True")).To(Succeed(), "it is one of several sets, and its reserve stays")
			a.patch(`{"spec":{"template":{"spec":{"class":{"name":"other"}}}}}`)
			Expect(ask(2, "3", "")).To(Succeed(), "a rollout replaces it")
			Expect(ask(2, "3", "True")).To(Succeed())
		})
	})

	It("a machine that workload needs goes if its MachineSet is frozen and none of its machines is in reserve", func() {
		onItsOwn(2, 0, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			a.patch(`{"spec":{"excessReplicas":1}}`)
			time.Sleep(time.Second)
			ask := func(frozen string) error {
				a.patchSet(`{"metadata":{"annotations":{"deployment.kubernetes.io/desired-replicas":"1"},"labels":{"freeze":%q}},"spec":{"replicas":1}}`, frozen)
				time.Sleep(time.Second)
				return a.refusesDeletion("a")
			}
			Expect(ask("")).To(Satisfy(apierrors.IsConflict))
			Expect(ask("True")).To(Succeed(), "it is written again only when it has lost machines")
		})
	})

	It("a machine goes whose MachineSet is being deleted", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ctx, sets := context.Background(), a.stock.MachineV1alpha1().MachineSets(fixture.Namespace)
			Expect(a.refusesDeletion("a")).To(Satisfy(apierrors.IsConflict))
			_, err := sets.Patch(ctx, "pool-1", types.MergePatchType, []byte(`{"metadata":{"finalizers":["machine.sapcloud.io/machine-controller-manager"]}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(sets.Delete(ctx, "pool-1", metav1.DeleteOptions{})).To(Succeed())
			time.Sleep(time.Second)
			Expect(a.refusesDeletion("a")).To(Succeed())
		})
	})

	It("of the machines that serve only those go that workload does not need, one after the other", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			a.Hold("machines", lensUser)
			a.patch(`{"spec":{"replicas":1}}`)
			a.patchSet(`{"metadata":{"annotations":{"deployment.kubernetes.io/desired-replicas":"2"}},"spec":{"replicas":1}}`)
			time.Sleep(time.Second)
			_, ended, err := a.taint.Guards().Remove(fixture.Namespace, "a")
			Expect(err).NotTo(HaveOccurred(), "two serve")
			ended(nil)
			_, _, err = a.taint.Guards().Remove(fixture.Namespace, "b")
			Expect(err).To(Satisfy(apierrors.IsConflict), "the first goes, though no store shows it")
			_, _, err = a.taint.Guards().Remove(fixture.Namespace, "a")
			Expect(err).NotTo(HaveOccurred(), "it is the one that goes, and is asked for again")
			a.Release("machines", lensUser)
		})
	})

	It("a machine in reserve goes for lower replicas that machine-controller-manager has seen before the controller", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			a.Hold("machinedeployments", controllerUser)
			a.patch(`{"spec":{"replicas":1}}`)
			a.patchSet(`{"metadata":{"annotations":{"deployment.kubernetes.io/desired-replicas":"2"}},"spec":{"replicas":2}}`)
			time.Sleep(time.Second)
			Expect(a.refusesDeletion("c")).To(Succeed())
			a.Release("machinedeployments", controllerUser)
		})
	})

	It("a machine goes only while there are more than its MachineSet asks for, or by itself", func() {
		onItsOwn(2, 3, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			Expect(a.refusesDeletion("a")).To(Satisfy(apierrors.IsConflict))
			m := a.stored("a")
			m.Status.CurrentStatus.Phase = mcmapi.MachineFailed
			_, err := a.stock.MachineV1alpha1().Machines(fixture.Namespace).UpdateStatus(context.Background(), m, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(a.refusesDeletion("a")).To(Succeed())
			a.patchSet(`{"spec":{"replicas":4}}`)
			time.Sleep(time.Second)
			Expect(a.refusesDeletion("b")).To(Satisfy(apierrors.IsConflict), "it serves, and a does not")
			Expect(a.refusesDeletion("d")).To(Succeed())
			Expect(a.refusesDeletion("e")).To(Satisfy(apierrors.IsConflict), "one of five is on its way")
		})
	})
})

// slowDown has each patch of a MachineDeployment by the controller take ten seconds before it takes effect, until end is called.
func (a *alone) slowDown() (end func()) {
	var ended atomic.Bool
	a.LatencyOf(func(r sim.Request) (before, after time.Duration) {
		if !ended.Load() && r.User == controllerUser && r.Verb == "patch" && r.Resource == "machinedeployments" {
			return 10 * time.Second, 0
		}
		return 0, 0
	})
	return func() { ended.Store(true) }
}

var _ = Describe("What the controller answers the lens about deletions", func() {
	It("a machine that serves does not go in addition to one that was named (I3)", func() {
		onItsOwn(3, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			a.patch(`{"spec":{"replicas":2},"metadata":{"annotations":{%q:"a~%s"}}}`, machineutils.TriggerDeletionByMCM, time.Now().UTC().Format(time.RFC3339))
			a.patchSet(`{"spec":{"replicas":3}}`)
			time.Sleep(time.Second)
			Expect(a.refusesDeletion("b")).To(Satisfy(apierrors.IsConflict), "two serve without a, and two are needed")
			Expect(a.refusesDeletion("a")).To(Succeed())
		})
	})

	DescribeTable("a machine in reserve that was named goes once replicas are restored for it, though more than these serve", func(late func(a *alone) (end func())) {
		onItsOwn(3, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ask := func() error {
				_, ended, err := a.taint.Guards().Remove(fixture.Namespace, "d")
				if err == nil {
					ended(apierrors.NewConflict(mcmapi.Resource("machines"), "d", nil))
				}
				return err
			}
			end := late(a)
			a.patch(`{"spec":{"replicas":1},"metadata":{"annotations":{%q:"d~%s"}}}`, machineutils.TriggerDeletionByMCM, time.Now().UTC().Format(time.RFC3339))
			time.Sleep(time.Second)
			Expect(a.deployment().Spec.Replicas).To(Equal(int32(1)))
			_, err := a.stock.MachineV1alpha1().Machines(fixture.Namespace).Patch(context.Background(), "d", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"1",%q:"now"}}}`, machineutils.MachinePriority, machineutils.MarkedForDeletionTime), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(ask()).To(Satisfy(apierrors.IsConflict))
			end()
			time.Sleep(time.Minute)
			Expect(a.deployment().Spec.Replicas).To(Equal(int32(2)))
			Expect(ask()).To(Succeed())
		})
	},
		Entry("while the controller does not see its name", func(a *alone) func() {
			a.Hold("machinedeployments", controllerUser)
			return func() { a.Release("machinedeployments", controllerUser) }
		}),
		Entry("while it cannot restore them", func(a *alone) func() {
			return a.slowDown()
		}),
		Entry("while it cannot restore them for machines that join no cluster", func(a *alone) func() {
			for _, name := range []string{"a", "b", "c", "d"} {
				a.reports(name, `{"currentStatus":{"phase":"Available"}}`)
			}
			return a.slowDown()
		}),
	)

	It("a machine in reserve that was named stays until the controller sees it, and replicas are restored for it (I3)", func() {
		onItsOwn(3, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			a.Hold("machines", controllerUser)
			set, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Get(context.Background(), "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			late := a.machine(set, true)
			a.patch(`{"spec":{"replicas":1,"excessReplicas":2},"metadata":{"annotations":{%q:"%s~%s"}}}`, machineutils.TriggerDeletionByMCM, late, time.Now().UTC().Format(time.RFC3339))
			time.Sleep(time.Second)
			Expect(a.refusesDeletion(late)).To(Satisfy(apierrors.IsConflict))
			a.Release("machines", controllerUser)
			time.Sleep(time.Minute)
			Expect(a.deployment().Spec.Replicas).To(Equal(int32(2)))
			Expect(a.refusesDeletion(late)).To(Succeed())
		})
	})

	DescribeTable("a machine that serves stays while replicas are still to be restored for one of the reserve that was named",
		func(happens func(a *alone) (end func())) {
			onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
				a.wrote(0)
				end := a.slowDown()
				a.patch(`{"spec":{"replicas":1},"metadata":{"annotations":{%q:"c~%s"}}}`, machineutils.TriggerDeletionByMCM, time.Now().UTC().Format(time.RFC3339))
				a.patchSet(`{"spec":{"replicas":1}}`)
				time.Sleep(time.Second)
				defer happens(a)()
				time.Sleep(time.Second)
				Expect(a.deployment().Spec.Replicas).To(Equal(int32(1)))
				Expect(a.refusesDeletion("a")).To(Satisfy(apierrors.IsConflict))
				end()
				time.Sleep(time.Minute)
				Expect(a.deployment().Spec.Replicas).To(Equal(int32(2)))
				Expect(a.refusesDeletion("a")).To(Satisfy(apierrors.IsConflict))
				a.patch(`{"spec":{"replicas":1}}`)
				time.Sleep(time.Second)
				Expect(a.refusesDeletion("a")).To(Succeed(), "nothing is to be restored any more")
			})
		},
		Entry("and is there", func(*alone) func() { return func() {} }),
		Entry("also in a process that has just started", func(a *alone) func() { return a.start(machinetaint.Options{}) }),
		Entry("and has gone", func(a *alone) func() {
			Expect(a.stock.MachineV1alpha1().Machines(fixture.Namespace).Delete(context.Background(), "c", metav1.DeleteOptions{})).To(Succeed())
			a.patch(`{"metadata":{"annotations":{%q:null}}}`, machineutils.TriggerDeletionByMCM)
			return func() {}
		}),
	)

	DescribeTable("a machine that serves goes although another one was named, if more serve than replicas with those that are to be restored",
		func(named string) {
			onItsOwn(3, 1, machinetaint.Options{}, func(a *alone) {
				a.wrote(0)
				a.slowDown()
				a.patch(`{"spec":{"replicas":1},"metadata":{"annotations":{%q:"%s~%s"}}}`, machineutils.TriggerDeletionByMCM, named, time.Now().UTC().Format(time.RFC3339))
				a.patchSet(`{"spec":{"replicas":1}}`)
				time.Sleep(time.Second)
				Expect(a.refusesDeletion("a")).To(Succeed())
			})
		},
		Entry("and one of the reserve counts once", "d"),
		Entry("and one that serves does not count", "c"),
	)

	It("a machine in reserve that was named goes at once where replicas include the reserve, though more than these serve", func() {
		onItsOwn(4, 1, machinetaint.Options{}, func(a *alone) {
			a.patch(`{"spec":{"replicas":5,"excessReplicas":2},"metadata":{"annotations":{%q:"Inclusive",%q:"2,counted=2,replicas=5"}}}`, api.AccountingAnnotation, api.AppliedExcessAnnotation)
			a.wrote(0)
			Expect(a.applied()).To(Equal("2,counted=2,replicas=5"))
			a.patch(`{"metadata":{"annotations":{%q:"e~%s"}}}`, machineutils.TriggerDeletionByMCM, time.Now().UTC().Format(time.RFC3339))
			a.wrote(0)
			Expect(a.refusesDeletion("e")).To(Succeed())
		})
	})

	It("a machine in reserve that was named stays until replicas are restored for those that these do not include", func() {
		onItsOwn(4, 3, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			end := a.slowDown()
			a.patch(`{"spec":{"replicas":5},"metadata":{"annotations":{%q:"Inclusive",%q:"3,counted=1,replicas=5"}}}`, api.AccountingAnnotation, api.AppliedExcessAnnotation)
			now := time.Now().UTC().Format(time.RFC3339)
			a.patch(`{"spec":{"replicas":3},"metadata":{"annotations":{%q:"e~%s,f~%s"}}}`, machineutils.TriggerDeletionByMCM, now, now)
			time.Sleep(time.Second)
			Expect(a.refusesDeletion("e")).To(Satisfy(apierrors.IsConflict))
			for _, name := range []string{"e", "f"} {
				Expect(a.stock.MachineV1alpha1().Machines(fixture.Namespace).Delete(context.Background(), name, metav1.DeleteOptions{})).To(Succeed())
			}
			a.patch(`{"metadata":{"annotations":{%q:null}}}`, machineutils.TriggerDeletionByMCM)
			end()
			time.Sleep(time.Minute)
			Expect(pool.Workload(a.deployment(), a.deployment().Spec.Replicas)).To(BeEquivalentTo(4))
		})
	})

	It("a machine in reserve that was named goes at once from a frozen MachineSet, which must lose machines", func() {
		onItsOwn(3, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ctx, machines, sets := context.Background(), a.stock.MachineV1alpha1().Machines(fixture.Namespace), a.stock.MachineV1alpha1().MachineSets(fixture.Namespace)
			a.Hold("machinedeployments", controllerUser)
			a.patch(`{"spec":{"replicas":1},"metadata":{"annotations":{%q:"d~%s"}}}`, machineutils.TriggerDeletionByMCM, time.Now().UTC().Format(time.RFC3339))
			_, err := machines.Patch(ctx, "d", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"1",%q:"now"}}}`, machineutils.MachinePriority, machineutils.MarkedForDeletionTime), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(a.refusesDeletion("d")).To(Satisfy(apierrors.IsConflict))
			_, err = sets.Patch(ctx, "pool-1", types.MergePatchType, []byte(`{"metadata":{"labels":{"freeze":"True"}}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(a.refusesDeletion("d")).To(Succeed())
			a.Release("machinedeployments", controllerUser)
		})
	})
})
