// SPDX-License-Identifier: Apache-2.0

package stores_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/cache"
	source "k8s.io/client-go/tools/cache/testing"

	"github.com/evenkeel/evenkeel/internal/fixture"
	"github.com/evenkeel/evenkeel/internal/stores"
)

// listeners counts those of an informer.
type listeners struct {
	cache.SharedIndexInformer
	n int
}

func (l *listeners) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	l.n++
	return l.SharedIndexInformer.AddEventHandler(handler)
}

// hearing is a handler that keeps what it heard.
type hearing struct {
	mu    sync.Mutex
	heard []string
}

func (h *hearing) note(what string, item any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard = append(h.heard, what+" "+item.(*mcm.Machine).Name)
}

func (h *hearing) OnAdd(item any, initial bool) { h.note(fmt.Sprint("add ", initial), item) }
func (h *hearing) OnUpdate(_, item any)         { h.note("update", item) }
func (h *hearing) OnDelete(item any)            { h.note("delete", item) }

// news is what it heard since it was last asked.
func (h *hearing) news() []string {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	defer func() { h.heard = nil }()
	return h.heard
}

var _ = Describe("Sharing", func() {
	// sharing runs do with an informer of machine a, which start starts.
	sharing := func(do func(informer cache.SharedIndexInformer, l *listeners, machines *source.FakeControllerSource, start func())) {
		GinkgoHelper()
		synctest.Test(suite, func(*testing.T) {
			machines := source.NewFakeControllerSource()
			machines.Add(fixture.Machine("a"))
			l := &listeners{SharedIndexInformer: cache.NewSharedIndexInformer(machines, &mcm.Machine{}, 0, cache.Indexers{})}
			s := &stores.Sharing{}
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan struct{})
			begun := false
			do(s.Of(l), l, machines, func() {
				begun = true
				s.Starting()
				go func() { defer close(ended); l.RunWithContext(ctx) }()
				synctest.Wait()
			})
			cancel()
			if begun {
				<-ended
			}
			machines.Shutdown()
			synctest.Wait()
		})
	}

	It("gives handlers one listener, and tells each of them all", func() {
		sharing(func(informer cache.SharedIndexInformer, l *listeners, machines *source.FakeControllerSource, start func()) {
			one, two := &hearing{}, &hearing{}
			for _, h := range []*hearing{one, two} {
				handle, err := informer.AddEventHandler(h)
				Expect(err).NotTo(HaveOccurred())
				Expect(handle.HasSynced()).To(BeFalse())
				defer func() { Expect(handle.HasSynced()).To(BeTrue()) }()
			}
			start()
			machines.Modify(fixture.Machine("a"))
			machines.Add(fixture.Machine("b"))
			machines.Delete(fixture.Machine("a"))
			want := []string{"add true a", "update a", "add false b", "delete a"}
			Expect(one.news()).To(Equal(want))
			Expect(two.news()).To(Equal(want))
			Expect(l.n).To(Equal(1))
		})
	})

	It("tells a handler that comes late of what is there", func() {
		sharing(func(informer cache.SharedIndexInformer, l *listeners, machines *source.FakeControllerSource, start func()) {
			early, late := &hearing{}, &hearing{}
			_, err := informer.AddEventHandler(early)
			Expect(err).NotTo(HaveOccurred())
			start()
			Expect(early.news()).To(Equal([]string{"add true a"}))
			handle, err := informer.AddEventHandler(late)
			Expect(err).NotTo(HaveOccurred())
			Expect(late.news()).To(Equal([]string{"add true a"}))
			Expect(early.news()).To(BeEmpty())
			Expect(l.n).To(Equal(2))
			Expect(informer.RemoveEventHandler(handle)).To(Succeed())
			machines.Delete(fixture.Machine("a"))
			Expect(late.news()).To(BeEmpty())
			Expect(early.news()).To(Equal([]string{"delete a"}))
		})
	})

	It("removes one handler, and not the others", func() {
		sharing(func(informer cache.SharedIndexInformer, _ *listeners, machines *source.FakeControllerSource, start func()) {
			stays, goes := &hearing{}, &hearing{}
			_, err := informer.AddEventHandler(stays)
			Expect(err).NotTo(HaveOccurred())
			handle, err := informer.AddEventHandler(goes)
			Expect(err).NotTo(HaveOccurred())
			start()
			Expect(goes.news()).To(HaveLen(1))
			Expect(informer.RemoveEventHandler(handle)).To(Succeed())
			machines.Delete(fixture.Machine("a"))
			Expect(goes.news()).To(BeEmpty())
			Expect(stays.news()).To(Equal([]string{"add true a", "delete a"}))
		})
	})

	It("is that of one informer", func() {
		s := &stores.Sharing{}
		a := cache.NewSharedIndexInformer(source.NewFakeControllerSource(), &mcm.Machine{}, 0, cache.Indexers{})
		b := cache.NewSharedIndexInformer(source.NewFakeControllerSource(), &mcm.Machine{}, 0, cache.Indexers{})
		Expect(s.Of(a)).To(BeIdenticalTo(s.Of(a)))
		Expect(s.Of(a)).NotTo(BeIdenticalTo(s.Of(b)))
	})
})
