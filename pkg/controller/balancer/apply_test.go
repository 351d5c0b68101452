// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// ledger is what Deployments were asked for, and when a Balancer's status was written, which ends a sync.
type ledger struct {
	mu      sync.Mutex
	entries []entry
	streams []watch.Interface
}

type entry struct {
	version  uint64
	at       time.Time
	target   string // empty for a status
	replicas int32
}

func (c *cluster) follow() *ledger {
	GinkgoHelper()
	l := &ledger{}
	deployments, err := c.user.AppsV1().Deployments(ns).Watch(context.Background(), metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	balancers, err := c.ours.BalancerV1alpha1().Balancers(ns).Watch(context.Background(), metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	l.streams = []watch.Interface{deployments, balancers}
	for _, stream := range l.streams {
		go func() {
			for event := range stream.ResultChan() {
				l.note(event.Object)
			}
		}()
	}
	return l
}

func (l *ledger) note(object runtime.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := entry{at: time.Now()}
	switch o := object.(type) {
	case *appsv1.Deployment:
		e.target, e.replicas = o.Name, *o.Spec.Replicas
		e.version, _ = strconv.ParseUint(o.ResourceVersion, 10, 64)
	case *v1alpha1.Balancer:
		e.version, _ = strconv.ParseUint(o.ResourceVersion, 10, 64)
	}
	l.entries = append(l.entries, e)
}

// kept fails where all together were ever asked for less, or where a sync raised after it had lowered. In virtual time
// all writes of a sync have the same time, but not only those.
func (l *ledger) kept(floor int32) {
	for _, stream := range l.streams {
		stream.Stop()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.SortFunc(l.entries, func(a, b entry) int { return cmp.Compare(a.version, b.version) })
	asked, lowered, moves := map[string]int32{}, time.Time{}, 0
	for _, e := range l.entries {
		was, known := asked[e.target]
		if e.target == "" {
			lowered = time.Time{}
			continue
		}
		if asked[e.target] = e.replicas; !known || was == e.replicas {
			continue
		}
		moves++
		if e.replicas < was {
			lowered = e.at
		} else if lowered.Equal(e.at) {
			Fail(fmt.Sprintf("%s was raised from %d to %d after a lowering", e.target, was, e.replicas))
		}
		if all := added(asked); all < floor {
			Fail(fmt.Sprintf("%v are %d, below %d", asked, all, floor))
		}
	}
	if moves == 0 {
		Fail("nothing has moved")
	}
}

func added(asked map[string]int32) (all int32) {
	for _, n := range asked {
		all += n
	}
	return all
}

// runs fails as soon as fewer pods run, for a while.
func (c *cluster) runs(floor int, during time.Duration) {
	for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(250 * time.Millisecond) {
		if n := c.running(); n < floor {
			Fail(fmt.Sprintf("only %d pods run", n))
		}
	}
}

// mover is a story of eight replicas that go from a to others, by a transition, while change is made of the Balancer.
func mover(seed uint64, t *v1alpha1.Transition, floor int32, change func(*v1alpha1.Balancer)) storm.Scenario {
	return storm.Scenario{
		Options: sim.Options{Seed: seed, Resources: served},
		Story: func(w *storm.World) {
			c := adopt(w)
			c.deploy("a", 8)
			c.deploy("b", 0)
			c.deploy("c", 0)
			b := object("shop", 8, builders.InOrder("a", "b", "c"), "a", "b", "c")
			b.Spec.Transition = t
			c.create(b)
			time.Sleep(10 * time.Second)
			w.Start("balancer", controller(Options{}))
			c.settle()
			l := c.follow()
			c.change("shop", change)
			c.runs(int(floor), 90*time.Second)
			c.settle()
			l.kept(floor)
		},
		End: func(w *storm.World) any { return (&cluster{World: w}).sizes("a", "b", "c") },
	}
}

var _ = Describe("Raises before lowerings, wherever the controller is killed:", func() {
	pace := func(surge, unavailable int32) *v1alpha1.Transition {
		return &v1alpha1.Transition{MaxSurge: ptr.To(intstr.FromInt32(surge)), MaxUnavailable: ptr.To(intstr.FromInt32(unavailable))}
	}

	DescribeTable("what runs never falls below what is wanted, less what may be unavailable, when",
		func(t *v1alpha1.Transition, floor int32, change func(*v1alpha1.Balancer)) {
			Expect(storm.CrashPoints(suite, mover(4, t, floor, change), "balancer")).To(Succeed())
		},
		Entry("they move while there come to be more", pace(4, 1), int32(7), func(b *v1alpha1.Balancer) {
			b.Spec.Policy, b.Spec.Replicas = builders.InOrder("c", "b", "a"), ptr.To[int32](10)
		}),
		Entry("they move while there come to be fewer", pace(4, 0), int32(5), func(b *v1alpha1.Balancer) {
			b.Spec.Policy, b.Spec.Replicas = builders.Even(), ptr.To[int32](5)
		}),
		Entry("one is drained", pace(4, 2), int32(6), func(b *v1alpha1.Balancer) {
			b.Spec.Targets[0].State = v1alpha1.Drained
		}),
	)
})

// page is the error page of a proxy, as client-go hands it over.
func page(code int) error {
	return apierrors.NewGenericServerResponse(code, "put", schema.GroupResource{Resource: "deployments"}, "a", "<html>", 0, true)
}

var _ = DescribeTable("A target is left alone", func(err error, alone bool) {
	Expect(Refused(err)).To(Equal(alone))
},
	Entry("where its write is forbidden", apierrors.NewForbidden(schema.GroupResource{}, "a", errors.New("no")), true),
	Entry("where a policy rejects it", apierrors.NewInvalid(schema.GroupKind{}, "a", nil), true),
	Entry("not where a proxy forbids it", page(403), false),
	Entry("not where a proxy finds fault with it", page(400), false),
	Entry("not where it is gone", apierrors.NewNotFound(schema.GroupResource{}, "a"), false),
	Entry("not where it has changed", apierrors.NewConflict(schema.GroupResource{}, "a", errors.New("changed")), false),
	Entry("not where credentials are missing for now", apierrors.NewUnauthorized("who"), false),
	Entry("not where there are too many requests", apierrors.NewTooManyRequests("later", 1), false),
	Entry("not where the server took too long", &apierrors.StatusError{ErrStatus: metav1.Status{Code: 408}}, false),
	Entry("not where the storage failed", apierrors.NewInternalError(errors.New("no")), false),
	Entry("not where no answer came", errors.New("EOF"), false),
)
