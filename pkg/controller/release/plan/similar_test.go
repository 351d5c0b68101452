// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	. "github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	. "github.com/evenkeel/evenkeel/test/builders/release"
)

// uneven is a pool with six, one and three machines in three zones, and three in reserve in each.
func uneven(change ...func(*Pool)) *story {
	return tell().pool("a", 6, 3, 20, change...).pool("b", 1, 3, 20).pool("c", 3, 3, 20).full()
}

func inWorkerPool(name string) func(*Pool) { return func(p *Pool) { p.WorkerPool = name } }

func (s *story) notEven() *story {
	s.Settings.Even = false
	return s
}

var _ = DescribeTable("Of similar zones, the smallest releases first",
	expectPlan,
	Entry("one machine", "b+1(b-1)", "Released:1", uneven().waits(Pod("p", 4000))),
	Entry("until they are as even as they can be", "b+3(b-1 b-2 b-3) c+1(c-3)", "Released:4", uneven().waits(Pods(4, "p", 4000)...)),
	Entry("though another has more in reserve", "b+1(b-1)", "Released:1",
		tell().pool("a", 6, 9, 20).pool("b", 1, 1, 20).full().waits(Pod("p", 4000))),
	Entry("of equal ones, that which has more in reserve", "b+1(b-3)", "Released:1",
		tell().pool("a", 3, 1, 20).pool("b", 3, 2, 20).full().waits(Pod("p", 4000))),
	Entry("by replicas, not by the machines that serve", "b+1(b-3)", "Coming:3 Released:1",
		tell().pool("a", 1, 5, 20, replicas(4)).pool("b", 3, 2, 20).full().waits(Pods(4, "p", 4000)...)),
	Entry("within max", "b+1(b-1) c+2(c-3 c-4)", "Released:3",
		tell().pool("a", 6, 3, 20).pool("b", 1, 3, 2).pool("c", 3, 3, 20).full().waits(Pods(3, "p", 4000)...)),
	Entry("which does not matter to pods of a zone", "a+1(a-6)", "Released:1", uneven().waits(Pod("p", 4000, InZone("a")))),
	Entry("nor to pods of which another holds more", "a+1(a-6)", "Released:2", uneven().waits(Pod("p", 2000), Pod("q", 2000, InZone("a")))),
	Entry("unless this is switched off", "a+1(a-6)", "Released:1", uneven().notEven().waits(Pod("p", 4000))),
	Entry("but not of a pool with another name than that which has most in reserve", "c+1(c-3)", "Released:1",
		tell().pool("a", 6, 4, 20).pool("b", 1, 3, 20, inWorkerPool("x")).pool("c", 3, 3, 20).full().waits(Pod("p", 4000))),
	Entry("and not of pools with different names", "a+1(a-6)", "Released:1",
		tell().pool("a", 6, 3, 20, inWorkerPool("x")).pool("b", 1, 3, 20, inWorkerPool("y")).full().waits(Pod("p", 4000))),
	Entry("and not of another namespace", "a+1(a-6)", "Released:1", func() *story {
		s := tell().pool("a", 6, 3, 20).pool("b", 1, 3, 20).full().waits(Pod("p", 4000))
		s.Pools[1].Key = "other/b"
		return s
	}()),
	Entry("and not where its machines are dedicated by a taint", "a+1(a-6)", "Released:1",
		tell().pool("a", 6, 3, 20).pool("b", 1, 3, 20, func(p *Pool) {
			p.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoExecute}}
		}).full().waits(Pod("p", 4000))),
	Entry("and not where machines differ", "a+1(a-6)", "Released:1",
		tell().pool("a", 6, 3, 20).pool("b", 1, 3, 20, func(p *Pool) {
			p.Sample.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5")}
		}).full().waits(Pod("p", 4000))),
	Entry("and not where it is unknown what machines are like", "a+1(a-6)", "Released:1",
		tell().pool("a", 6, 3, 20).pool("b", 1, 3, 20, func(p *Pool) { p.Sample = nil }).full().waits(Pod("p", 4000))),
	Entry("also of machines that are dedicated to an owner, which count when the others are released", "a+1(a-3) b+1(b-1)", "Released:2",
		tell().pool("a", 2, 3, 20, dedicated("shop", 1)).pool("b", 1, 3, 20, dedicated("shop", 1)).full().waits(Pod("p", 4000, ofWeb), Pod("q", 4000))),
)
