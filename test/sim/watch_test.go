// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"slices"
	"sync"
	"testing/synctest"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
)

// said is what a watch has said.
type said struct {
	kinds    []watch.EventType
	versions []string
	err      error
	ended    bool
}

// follower records the events of a watch of the machines.
type follower struct {
	mu sync.Mutex
	said
}

func (f *follower) note(e watch.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kinds = append(f.kinds, e.Type)
	if o, err := meta.CommonAccessor(e.Object); err == nil && e.Type != watch.Error {
		f.versions = append(f.versions, o.GetResourceVersion())
		return
	}
	f.err = apierrors.FromObject(e.Object)
}

// now is what has been said once all that is due has happened.
func (f *follower) now() said {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return said{slices.Clone(f.kinds), slices.Clone(f.versions), f.err, f.ended}
}

// follow begins a watch from a version.
func (s scene) follow(version string) *follower {
	GinkgoHelper()
	w, err := s.machine.MachineV1alpha1().Machines(fixture.Namespace).Watch(s, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
	Expect(err).NotTo(HaveOccurred())
	f := &follower{}
	go func() {
		for e := range w.ResultChan() {
			f.note(e)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ended = true
	}()
	return f
}

var _ = Describe("Watches", func() {
	It("end with 410 Gone when history is forgotten, also those that have seen all of it", func() {
		play(sim.Options{}, func(s scene) {
			m := s.create("one")
			f := s.follow(m.ResourceVersion)
			Expect(f.now().ended).To(BeFalse())
			s.Compact()
			Expect(f.now().err).To(Satisfy(apierrors.IsResourceExpired))
			Expect(f.now().ended).To(BeTrue())
			f = s.follow(m.ResourceVersion)
			Expect(f.now().kinds).To(BeEmpty(), "nothing has happened since")
			s.update(labelled(m))
			s.Compact()
			f = s.follow(m.ResourceVersion)
			Expect(f.now().err).To(Satisfy(apierrors.IsResourceExpired))
			Expect(f.now().ended).To(BeTrue())
		})
	})

	It("begin anywhere in the history that is kept, and nowhere before", func() {
		play(sim.Options{History: 3}, func(s scene) {
			var versions []string
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				versions = append(versions, s.create(name).ResourceVersion)
			}
			Expect(s.follow(versions[0]).now().err).To(Satisfy(apierrors.IsResourceExpired))
			Expect(s.follow(versions[1]).now().versions).To(Equal(versions[2:]))
			Expect(s.follow(versions[4]).now().versions).To(BeEmpty())
		})
	})

	It("are told each minute how far they are, unless they know", func() {
		play(sim.Options{}, func(s scene) {
			f := s.follow(s.create("one").ResourceVersion)
			time.Sleep(time.Second)
			var versions []string
			for range 10 {
				set := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{GenerateName: "set-"}} // another kind
				_, err := s.machine.MachineV1alpha1().MachineSets(fixture.Namespace).Create(s, set, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				versions = append(versions, s.Version())
				time.Sleep(time.Minute)
			}
			time.Sleep(time.Hour)
			Expect(f.now().kinds).To(HaveEach(watch.Bookmark))
			Expect(f.now().versions).To(Equal(versions))
		})
	})

	It("are not told that they are further than they are", func() {
		play(sim.Options{}, func(s scene) {
			m := s.create("one")
			s.Lag("machines", sim.Constantly(150*time.Second))
			f := s.follow(m.ResourceVersion)
			m = s.update(labelled(m))
			time.Sleep(100 * time.Second)
			s.create("two") // makes the watch look up
			time.Sleep(49 * time.Second)
			Expect(f.now().kinds).To(BeEmpty())
			time.Sleep(time.Minute)
			Expect(f.now().kinds).To(HaveExactElements(watch.Modified), "two is still to come")
			time.Sleep(time.Minute)
			Expect(f.now().kinds).To(HaveExactElements(watch.Modified, watch.Added))
			Expect(f.now().versions).To(HaveExactElements(m.ResourceVersion, s.Version()))
		})
	})

	It("refuse a version that is none", func() {
		play(sim.Options{}, func(s scene) {
			_, err := s.machine.MachineV1alpha1().Machines(fixture.Namespace).Watch(s, metav1.ListOptions{ResourceVersion: "yesterday"})
			Expect(err).To(Satisfy(apierrors.IsBadRequest))
		})
	})
})
