// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"context"
	"fmt"
	"testing/synctest"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	machineclient "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	machineinformers "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

var (
	machines    = machinev1alpha1.SchemeGroupVersion.WithResource("machines")
	deployments = machinev1alpha1.SchemeGroupVersion.WithResource("machinedeployments")
)

// scene is a server in a bubble, with one client of each kind that specs need.
type scene struct {
	*sim.Server
	context.Context
	machine machineclient.Interface
}

// play runs body in a bubble. What body defers ends before the server does.
func play(o sim.Options, body func(scene)) {
	GinkgoHelper()
	storm.Bubble(suite, func() {
		s := sim.New(o)
		ctx, cancel := context.WithCancel(context.Background())
		defer time.Sleep(time.Minute)
		defer s.Close()
		defer cancel()
		body(scene{s, ctx, machineclient.NewForConfigOrDie(s.ConfigFor("writer"))})
	})
}

func (s scene) create(name string) *machinev1alpha1.Machine {
	GinkgoHelper()
	m, err := s.machine.MachineV1alpha1().Machines(fixture.Namespace).Create(s, fixture.Machine(name), metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return m
}

func (s scene) update(m *machinev1alpha1.Machine) *machinev1alpha1.Machine {
	GinkgoHelper()
	m, err := s.machine.MachineV1alpha1().Machines(fixture.Namespace).Update(s, m, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return m
}

func labelled(m *machinev1alpha1.Machine) *machinev1alpha1.Machine {
	m = m.DeepCopy()
	m.Labels = map[string]string{"a": "b"}
	return m
}

func (s scene) delete(name string) {
	GinkgoHelper()
	Expect(s.machine.MachineV1alpha1().Machines(fixture.Namespace).Delete(s, name, metav1.DeleteOptions{})).To(Succeed())
}

// mirror is an informer's view of the machines, and how it came about.
type mirror struct {
	cache.SharedIndexInformer
	events []string
}

func (s scene) mirror(user string) *mirror {
	GinkgoHelper()
	client := machineclient.NewForConfigOrDie(s.ConfigFor(user))
	m := &mirror{SharedIndexInformer: machineinformers.NewSharedInformerFactory(client, 0).Machine().V1alpha1().Machines().Informer()}
	note := func(what string, o any) {
		if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
			what, o = "lost", gone.Obj
		}
		m.events = append(m.events, what+" "+o.(*machinev1alpha1.Machine).Name)
	}
	_, err := m.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { note("add", o) },
		UpdateFunc: func(_, o any) { note("update", o) },
		DeleteFunc: func(o any) { note("delete", o) },
	})
	Expect(err).NotTo(HaveOccurred())
	go m.RunWithContext(s)
	synctest.Wait()
	Expect(m.HasSynced()).To(BeTrue())
	return m
}

// names are the machines that the mirror shows now.
func (m *mirror) names() []string {
	synctest.Wait()
	names := []string{}
	for _, o := range m.GetStore().List() {
		names = append(names, o.(*machinev1alpha1.Machine).Name)
	}
	return names
}

var _ = Describe("Informers", func() {
	It("show what existed and what is created, at once", func() {
		play(sim.Options{}, func(s scene) {
			s.create("one")
			m := s.mirror("reader")
			Expect(m.names()).To(ConsistOf("one"))
			two := s.create("two")
			Expect(m.names()).To(ConsistOf("one", "two"))
			s.update(labelled(two))
			s.delete("one")
			Expect(m.names()).To(ConsistOf("two"))
			Expect(m.events).To(Equal([]string{"add one", "add two", "update two", "delete one"}))
		})
	})

	It("survive hours, timeouts of their watches and bookmarks included, without an event", func() {
		play(sim.Options{}, func(s scene) {
			s.create("one")
			m := s.mirror("reader")
			time.Sleep(24 * time.Hour)
			Expect(m.names()).To(ConsistOf("one"))
			Expect(m.events).To(HaveLen(1))
			s.create("two")
			Expect(m.names()).To(ConsistOf("one", "two"))
		})
	})

	It("are late by the lag of their kind and identity, in order, and not for what was there", func() {
		play(sim.Options{}, func(s scene) {
			lags := []time.Duration{8 * time.Second, time.Second, 3 * time.Second}
			s.Lag("machines", func() time.Duration {
				lag := lags[0]
				lags = append(lags[1:], lag)
				return lag
			}, "late")
			s.create("zero")
			late, prompt := s.mirror("late"), s.mirror("prompt")
			Expect(late.names()).To(ConsistOf("zero"))
			for _, name := range []string{"a", "b", "c"} {
				s.create(name)
			}
			Expect(prompt.names()).To(HaveLen(4))
			time.Sleep(8*time.Second - 1)
			Expect(late.names()).To(ConsistOf("zero"))
			time.Sleep(time.Nanosecond)
			Expect(late.names()).To(HaveLen(4))
			Expect(late.events).To(Equal([]string{"add zero", "add a", "add b", "add c"}))
			s.Lag("machines", nil, "late")
			s.create("d")
			Expect(late.names()).To(HaveLen(5))
		})
	})

	It("keep their lag when another kind has none", func() {
		play(sim.Options{}, func(s scene) {
			s.Lag("", sim.Constantly(time.Hour))
			s.Lag("machines", sim.Constantly(time.Second))
			m := s.mirror("reader")
			s.create("one")
			time.Sleep(time.Second - 1)
			Expect(m.names()).To(BeEmpty())
			time.Sleep(time.Nanosecond)
			Expect(m.names()).To(ConsistOf("one"))
		})
	})

	It("stand still while they are held, longer than their watches last", func() {
		play(sim.Options{}, func(s scene) {
			held, free := s.mirror("held"), s.mirror("free")
			s.Hold("machines", "held")
			s.create("one")
			Expect(free.names()).To(ConsistOf("one"))
			time.Sleep(15 * time.Minute)
			Expect(held.names()).To(BeEmpty())
			s.Release("machines", "held")
			Expect(held.names()).To(ConsistOf("one"))
		})
	})

	It("list again when history is forgotten, and miss nothing", func() {
		play(sim.Options{}, func(s scene) {
			s.create("kept")
			s.create("gone")
			m := s.mirror("reader")
			s.Hold("machines")
			s.delete("gone")
			s.create("new")
			s.Compact()
			s.Release("machines")
			time.Sleep(time.Minute)
			Expect(m.names()).To(ConsistOf("kept", "new"))
			Expect(m.events).To(ContainElement("lost gone"))
		})
	})

	It("list again when they fall behind the history that is kept", func() {
		play(sim.Options{History: 3}, func(s scene) {
			m := s.mirror("reader")
			s.Hold("machines")
			for i := range 10 {
				s.create(fmt.Sprint("m", i))
			}
			s.delete("m0")
			s.Release("machines")
			time.Sleep(time.Minute)
			Expect(m.names()).To(HaveLen(9))
		})
	})

	It("recover when the server was away", func() {
		play(sim.Options{}, func(s scene) {
			m := s.mirror("reader")
			s.Down(true, "reader")
			s.create("one")
			time.Sleep(time.Hour)
			Expect(m.names()).To(BeEmpty())
			s.Down(false, "reader")
			time.Sleep(time.Minute)
			Expect(m.names()).To(ConsistOf("one"))
		})
	})

	It("agree with the server after a storm of everything", func() {
		storm.Seeds(suite, 80, func(seed uint64) {
			w := storm.NewWorld(sim.Options{Seed: seed, History: 20})
			defer w.End()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			s := scene{w.Server, ctx, machineclient.NewForConfigOrDie(w.ConfigFor("writer"))}
			m := s.mirror("reader")
			weather(s, seed)
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			var versions []string
			for _, o := range m.GetStore().List() {
				versions = append(versions, o.(*machinev1alpha1.Machine).Name+" "+o.(*machinev1alpha1.Machine).ResourceVersion)
			}
			var want []string
			for _, o := range s.Objects(machines) {
				want = append(want, o.GetName()+" "+o.GetResourceVersion())
			}
			Expect(versions).To(ConsistOf(want))
		})
	})
})

var _ = Describe("Selecting informers", func() {
	It("see machines come and go with their labels", func() {
		play(sim.Options{}, func(s scene) {
			factory := machineinformers.NewSharedInformerFactoryWithOptions(s.machine, 0,
				machineinformers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "role=reserve" }))
			lister := factory.Machine().V1alpha1().Machines().Lister()
			factory.Start(s.Done())
			one := s.create("one")
			seen := func() int {
				synctest.Wait()
				found, err := lister.List(labels.Everything())
				Expect(err).NotTo(HaveOccurred())
				return len(found)
			}
			Expect(seen()).To(Equal(0))
			one.Labels = map[string]string{"role": "reserve"}
			one = s.update(one)
			Expect(seen()).To(Equal(1))
			one.Labels = nil
			s.update(one)
			Expect(seen()).To(Equal(0))
		})
	})
})
