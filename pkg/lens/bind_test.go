// SPDX-License-Identifier: Apache-2.0

package lens_test

import (
	"cmp"
	"context"
	"errors"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	machineclient "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	machinefactory "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions"
	machineinformers "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions/machine/v1alpha1"
	machinelisters "github.com/gardener/machine-controller-manager/pkg/client/listers/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/evenkeel/evenkeel/pkg/lens"
	"github.com/evenkeel/evenkeel/test/sim"
)

var errBroken = errors.New("store is broken")

// claiming has an informer of machines whose store claims a version, if that is set: as the stores of client-go
// do after a resync with some of its feature gates off.
type claiming struct {
	machineinformers.Interface
	informer claimingInformer
}

func (c claiming) Machines() machineinformers.MachineInformer {
	return claimingMachines{c.Interface.Machines(), c.informer}
}

type claimingMachines struct {
	machineinformers.MachineInformer
	informer claimingInformer
}

func (m claimingMachines) Informer() cache.SharedIndexInformer { return m.informer }

type claimingInformer struct {
	cache.SharedIndexInformer
	claim *string
}

func (i claimingInformer) GetIndexer() cache.Indexer {
	return claimingStore{i.SharedIndexInformer.GetIndexer(), i.claim}
}

type claimingStore struct {
	cache.Indexer
	claim *string
}

func (s claimingStore) LastStoreSyncResourceVersion() string {
	return cmp.Or(*s.claim, s.Indexer.LastStoreSyncResourceVersion())
}

// broken has a lister of machines that fails.
type broken struct{ machineinformers.Interface }

func (b broken) Machines() machineinformers.MachineInformer {
	return brokenMachines{b.Interface.Machines()}
}

type brokenMachines struct {
	machineinformers.MachineInformer
}

func (brokenMachines) Lister() machinelisters.MachineLister { return brokenLister{} }

type brokenLister struct{ machinelisters.MachineLister }

func (brokenLister) List(labels.Selector) ([]*v1alpha1.Machine, error) { return nil, errBroken }

// lettered is a clientset whose server answers creations with versions that are not numbers.
type lettered struct{ versioned.Interface }

func (l lettered) MachineV1alpha1() machineclient.MachineV1alpha1Interface {
	return letteredGroup{l.Interface.MachineV1alpha1()}
}

type letteredGroup struct {
	machineclient.MachineV1alpha1Interface
}

func (g letteredGroup) Machines(namespace string) machineclient.MachineInterface {
	return letteredMachines{g.MachineV1alpha1Interface.Machines(namespace)}
}

type letteredMachines struct{ machineclient.MachineInterface }

func (l letteredMachines) Create(ctx context.Context, m *v1alpha1.Machine, o metav1.CreateOptions) (*v1alpha1.Machine, error) {
	made, err := l.MachineInterface.Create(ctx, m, o)
	made.ResourceVersion = "v" + made.ResourceVersion
	return made, err
}

// plain is a clientset without this package.
func (w lensWorld) plain() versioned.Interface {
	return versioned.NewForConfigOrDie(w.server.ConfigFor("ours"))
}

var _ = Describe("A clientset", func() {
	It("waits for nothing before informers are bound to it", func() {
		inWorld(1, func(w lensWorld) {
			w.server.Lag("machines", sim.Constantly(lag))
			machines := lens.New(w, w.plain(), lens.Options{}).MachineV1alpha1().Machines(ns)
			Expect(took(func() {
				made, err := machines.Create(w, machine("a"), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(made.Name).To(Equal("a"))
				Expect(machines.Delete(w, "a", metav1.DeleteOptions{})).To(Succeed())
			})).To(BeZero())
			Expect(w.stored()).To(BeEmpty())
		})
	})

	It("refuses informers that have ended, and names each kind", func() {
		inWorld(1, func(w lensWorld) {
			factory := machinefactory.NewSharedInformerFactory(w.client, 0)
			informers := factory.Machine().V1alpha1()
			informers.Machines().Informer()
			informers.MachineSets().Informer()
			informers.MachineDeployments().Informer()
			ended, end := context.WithCancel(w)
			end()
			factory.Start(ended.Done())
			factory.Shutdown()
			bound, err := lens.New(w, w.plain(), lens.Options{}).Bind(informers)
			Expect(bound).To(BeNil())
			Expect(err).To(MatchError(And(
				ContainSubstring("bind informers: "), ContainSubstring("follow machines: "),
				ContainSubstring("follow machinesets: "), ContainSubstring("follow machinedeployments: "))))
		})
	})

	It("waits for no version that is not a number: such versions cannot be compared", func() {
		inWorld(1, func(w lensWorld) {
			client := lens.New(w, lettered{w.plain()}, lens.Options{})
			informers, err := client.Bind(machinefactory.NewSharedInformerFactory(client, 0).Machine().V1alpha1())
			Expect(err).NotTo(HaveOccurred())
			time.AfterFunc(time.Hour, w.stop)
			Expect(took(func() {
				_, err := client.MachineV1alpha1().Machines(ns).Create(w, machine("a"), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(informers.Machines().Lister().List(labels.Everything())).To(BeEmpty())
			})).To(BeZero())
		})
	})

	It("passes on the error of a list", func() {
		inWorld(1, func(w lensWorld) {
			_, err := w.informers.Machines().Lister().List(labels.Everything())
			Expect(err).To(MatchError(errBroken))
		}, func(in machineinformers.Interface) machineinformers.Interface { return broken{in} })
	})

	DescribeTable("waits with a write for as long as its patience lasts",
		func(patience, want time.Duration) {
			inWorldWith(lens.Options{Patience: patience}, 1, func(w lensWorld) {
				w.server.Lag("machines", sim.Constantly(lag))
				Expect(took(func() { w.create(machine("a")) })).To(Equal(want))
			})
		},
		Entry("three seconds", 3*time.Second, 3*time.Second),
		Entry("the shortest time", time.Nanosecond, time.Nanosecond),
		Entry("by default", time.Duration(0), 2*time.Second),
		Entry("by default, where it is below zero", -time.Second, 2*time.Second),
	)

	It("tells the time by the clock that it is given", func() {
		clock := clocktesting.NewFakeClock(time.Now())
		inWorldWith(lens.Options{Clock: clock}, 1, func(w lensWorld) {
			w.server.Hold("machines")
			done := make(chan struct{})
			go func() {
				defer close(done)
				w.create(machine("a"))
			}()
			time.Sleep(time.Hour)
			synctest.Wait()
			Expect(done).NotTo(BeClosed())
			clock.Step(lens.DefaultPatience)
			<-done
		})
	})
})
