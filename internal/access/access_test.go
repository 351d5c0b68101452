// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/access"
)

var suite *testing.T

func TestAccess(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Access")
}

var rule = access.Rule{
	Cluster: "control", Resource: schema.GroupResource{Group: "extensions.gardener.cloud", Resource: "workers"}, Namespace: "shoot",
	Without: "Bounds do not come from the Worker",
}

// server answers lists, and holds watches until they are stopped.
type server struct {
	mu       sync.Mutex
	err      error
	refusals int
	changes  atomic.Int32
	rights   *access.Rights
}

func newServer(err error) *server {
	s := &server{err: err, rights: access.New(clock.RealClock{})}
	s.rights.Subscribe(func() { s.changes.Add(1) })
	return s
}

// answer returns the outcome of a request.
func (s *server) answer() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		s.refusals++
	}
	return s.err
}

// answerWith sets the outcome of later requests.
func (s *server) answerWith(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// refused returns how many requests were refused.
func (s *server) refused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusals
}

// informer runs until ctx ends.
func (s *server) informer(ctx context.Context) cache.SharedIndexInformer {
	lw := &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, s.answer()
		},
		WatchFuncWithContext: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
			if err := s.answer(); err != nil {
				return nil, err
			}
			w := watch.NewFake()
			time.AfterFunc(time.Minute, w.Stop) // as the process ends each watch
			return w, nil
		},
	}
	i := cache.NewSharedIndexInformer(s.rights.ListWatch(rule, lw, noWatchList{}), &corev1.Pod{}, 0, nil)
	go i.RunWithContext(ctx)
	return i
}

// noWatchList is a client that begins with a list.
type noWatchList struct{}

func (noWatchList) IsWatchListSemanticsUnSupported() bool { return true }

var forbidden = apierrors.NewForbidden(rule.Resource, "", errors.New("no rule"))

func play(body func(ctx context.Context)) {
	synctest.Test(suite, func(*testing.T) {
		defer GinkgoRecover()
		ctx, stop := context.WithCancel(context.Background())
		defer synctest.Wait()
		defer stop()
		body(ctx)
	})
}

var _ = Describe("An informer without the right to list", func() {
	It("asks twice, reports once what is missing, and then asks every ten minutes (laws 1, 2)", func() {
		play(func(ctx context.Context) {
			s := newServer(forbidden)
			i := s.informer(ctx)
			time.Sleep(time.Second)
			Expect(s.rights.Missing()).To(BeEmpty())
			time.Sleep(24*time.Hour - time.Second)
			Expect(s.rights.Missing()).To(Equal([]access.Rule{rule}))
			Expect(s.rights.Lacks(rule)).To(BeTrue())
			Expect(s.changes.Load()).To(BeEquivalentTo(1))
			Expect(s.refused()).To(BeNumerically("~", 2+24*6, 1))
			Expect(i.HasSynced()).To(BeFalse())
		})
	})

	It("lists once it may (law 2)", func() {
		play(func(ctx context.Context) {
			s := newServer(forbidden)
			i := s.informer(ctx)
			time.Sleep(time.Hour)
			s.answerWith(nil)
			time.Sleep(access.RetryEvery + time.Second)
			Expect(i.HasSynced()).To(BeTrue())
			Expect(s.rights.Missing()).To(BeEmpty())
			Expect(s.changes.Load()).To(BeEquivalentTo(2))
		})
	})

	It("still lacks the right while the API server fails otherwise (law 2)", func() {
		play(func(ctx context.Context) {
			s, down := newServer(forbidden), apierrors.NewInternalError(errors.New("down"))
			time.AfterFunc(time.Hour, func() { s.answerWith(down) })
			_, err := access.Await(ctx, s.rights, rule, func() (bool, error) { return true, s.answer() })
			Expect(err).To(MatchError(down))
			Expect(s.rights.Lacks(rule)).To(BeTrue())
			Expect(s.changes.Load()).To(BeEquivalentTo(1))
		})
	})

	It("is not taken for one that never may after a single refusal (law 1)", func() {
		play(func(ctx context.Context) {
			s := newServer(forbidden)
			i := s.informer(ctx)
			time.Sleep(time.Second)
			s.answerWith(nil)
			time.Sleep(time.Minute)
			Expect(i.HasSynced()).To(BeTrue())
			Expect(s.changes.Load()).To(BeZero())
		})
	})

	It("reports a right that is withdrawn, and stops asking for it (law 2)", func() {
		play(func(ctx context.Context) {
			s := newServer(nil)
			i := s.informer(ctx)
			time.Sleep(time.Hour)
			Expect(i.HasSynced()).To(BeTrue())
			s.answerWith(forbidden)
			time.Sleep(24 * time.Hour)
			Expect(s.rights.Lacks(rule)).To(BeTrue())
			Expect(s.refused()).To(BeNumerically("<", 200))
		})
	})

	It("ends while its request waits (law 3)", func() {
		play(func(ctx context.Context) {
			s := newServer(forbidden)
			ctx, stop := context.WithCancel(ctx)
			i := s.informer(ctx)
			time.Sleep(time.Hour)
			stop()
			synctest.Wait()
			Expect(i.IsStopped()).To(BeTrue())
		})
	})
})

var _ = Describe("Any other refusal", func() {
	It("is the informer's to repeat (law 4)", func(ctx SpecContext) {
		busy := apierrors.NewTooManyRequests("busy", 1)
		rights := access.New(clock.RealClock{})
		lw := rights.ListWatch(rule, &cache.ListWatch{
			ListWithContextFunc:  func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, busy },
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, busy },
		}, nil)
		contextual := cache.ToListerWatcherWithContext(lw)
		_, err := contextual.ListWithContext(ctx, metav1.ListOptions{})
		Expect(err).To(MatchError(busy))
		_, err = contextual.WatchWithContext(ctx, metav1.ListOptions{})
		Expect(err).To(MatchError(busy))
		Expect(rights.Missing()).To(BeEmpty())
	})
})

var _ = Describe("A rule", func() {
	It("says what to add, and where", func() {
		Expect(rule.String()).To(Equal("Bounds do not come from the Worker. To change this, add the rule " +
			"{apiGroups: [extensions.gardener.cloud], resources: [workers], verbs: [list, watch]} in namespace shoot of the control cluster"))
		one := rule
		one.Namespace, one.Name = "", "shoot"
		Expect(one.String()).To(HaveSuffix("resources: [workers], resourceNames: [shoot], verbs: [list, watch]} in the control cluster"))
	})
})
