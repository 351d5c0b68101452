// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
	builders "github.com/evenkeel/evenkeel/test/builders/nodegroup"
)

var _ = Describe("A name that has left the annotation", func() {
	It("counts for a minute from when it was last there", func() {
		begun := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		after := func(seconds int) time.Time { return begun.Add(time.Duration(seconds) * time.Second) }
		r := &recentNames{}
		r.addNames(map[string]time.Time{"a": {}}, begun)
		r.addNames(map[string]time.Time{"a": {}, "b": {}}, after(50))
		r.addNames(nil, after(70))
		Expect(r.contains("a", after(109))).To(BeTrue())
		Expect(r.contains("a", after(110))).To(BeFalse())
		r.addNames(nil, after(110))
		Expect(r.last).To(BeEmpty())
	})
})

var _ = Describe("What is remembered", func() {
	gone := func(name string) bool { return name == "a" }

	It("of Nodes is forgotten group by group", func() {
		s, node := &lastNodes{}, &corev1.Node{}
		s.remember("a", templateNode{node, "class"})
		s.remember("b", templateNode{node, "class"})
		Expect([]*corev1.Node{s.nodeOf("a", "class"), s.nodeOf("b", "class")}).To(HaveEach(BeIdenticalTo(node)))
		Expect(s.nodeOf("a", "another")).To(BeNil())
		Expect(s.nodeOf("c", "")).To(BeNil())
		s.forgetIf(gone)
		Expect(s.last).To(And(HaveLen(1), HaveKey("b")))
	})

	It("of marks is forgotten machine by machine", func() {
		f := &machineTimes{}
		f.overdue("a", builders.Noon)
		f.overdue("b", builders.Noon)
		f.forgetIf(gone)
		Expect(f.since).To(Equal(map[string]time.Time{"b": builders.Noon}))
	})

	It("of the caller's loop is forgotten group by group", func() {
		s := &callerView{}
		a, b := builders.Bounded("1:5", 3), builders.Bounded("1:5", 4)
		a.Deployment.Name, b.Deployment.Name = "a", "b"
		s.startLoop(func() []plan.Group { return []plan.Group{a, b} })
		s.forgetIf(gone)
		Expect(s.groups).To(Equal(map[string]expected{"b": {replicas: 4, version: b.Deployment.ResourceVersion}}))
	})

	It("of names does not hold one that was never there", func() {
		Expect((&recentNames{}).contains("a", builders.Noon)).To(BeFalse())
	})
})

var _ = Describe("A gate", func() {
	It("is gone when all who waited for it have left, those who gave up included", func() {
		g := &groupLocks{}
		leave, err := g.acquire(context.Background(), "pool")
		Expect(err).NotTo(HaveOccurred())
		gone, giveUp := context.WithCancel(context.Background())
		giveUp()
		_, err = g.acquire(gone, "pool")
		Expect(code(err)).To(Equal(codes.Unavailable))
		leave()
		Expect(g.byGroup).To(BeEmpty())
	})
})
