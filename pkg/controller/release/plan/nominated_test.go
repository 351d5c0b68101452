// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/reserve"
	. "github.com/evenkeel/evenkeel/test/builders/release"
)

// claimedFor has an owner's pods have claimed a machine that is dedicated to the owner.
func claimedFor(owner v1alpha1.Owner, name string) func(*Pool) {
	return machine(name, func(m *reserve.Machine) { m.Owner, m.Claimed = owner, true })
}

// nominatedFor adds a pod that waits, and is nominated for a node that cannot take it now.
func (s *story) nominatedFor(node string, p *corev1.Pod) *story {
	if s.Nominated == nil {
		s.Nominated = map[types.UID]string{}
	}
	s.Nominated[p.UID] = node
	return s.waits(p)
}

// nominations are in the form "shop/p a-1".
func nominations(all []Nomination) string {
	var words []string
	for _, n := range all {
		words = append(words, n.Pod.Name()+" "+n.Node)
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

var _ = DescribeTable("Claimed machines that have not opened yet (9)",
	func(wantRaises, wantNominations, wantPods string, s *story) {
		p := New(s.View)
		Expect(claims(p)).To(Equal(wantRaises))
		Expect(nominations(p.Nominations)).To(Equal(wantNominations))
		var pods []string
		for name, outcome := range p.Pods {
			pods = append(pods, name+" "+string(outcome))
		}
		slices.Sort(pods)
		Expect(strings.Join(pods, ", ")).To(Equal(wantPods))
	},
	Entry("are for their owner, whose pods are nominated again, and not for pods that have waited longer", "", "shop/p a-1", "default/q NoReserve, shop/p Coming",
		tell().pool("a", 1, 1, 10, dedicated("shop", 1), replicas(2), claimedFor("shop", "a-1")).full().waits(Pod("q", 4000), Pod("p", 4000, ofWeb))),
	Entry("keep their pods where these are nominated", "", "", "default/q NoReserve, shop/p Coming",
		tell().pool("a", 1, 1, 10, dedicated("shop", 1), replicas(2), claimedFor("shop", "a-1")).full().waits(Pod("q", 4000)).nominatedFor("a-1", Pod("p", 4000, ofWeb))),
	Entry("take a pod of their owner each", "", "shop/p a-1", "shop/p Coming, shop/q Coming",
		tell().pool("a", 1, 2, 10, dedicated("shop", 2), replicas(3), claimedFor("shop", "a-1"), claimedFor("shop", "a-2")).full().
			waits(Pod("p", 4000, ofWeb)).nominatedFor("a-2", Pod("q", 4000, ofWeb))),
	Entry("are the only ones that their pods are nominated for", "", "shop/p a-1", "shop/p Coming, shop/q Coming",
		tell().pool("a", 1, 2, 10, dedicated("shop", 1), replicas(3), claimedFor("shop", "a-1")).full().waits(Pod("p", 4000, ofWeb), Pod("q", 4000, ofWeb))),
	Entry("are not enough for more pods", "a+1(a-2) of these a-2", "", "shop/p Coming, shop/q Released",
		tell().pool("a", 1, 2, 10, dedicated("shop", 2), replicas(2), claimedFor("shop", "a-1")).full().
			nominatedFor("a-1", Pod("p", 4000, ofWeb)).waits(Pod("q", 4000, ofWeb))),
	Entry("have room left for other pods", "", "", "default/q Coming, default/r NoReserve, shop/p Coming",
		tell().pool("a", 1, 1, 10, dedicated("shop", 1), replicas(2), claimedFor("shop", "a-1")).full().
			waits(Pod("q", 1000), Pod("r", 2000)).nominatedFor("a-1", Pod("p", 2500, ofWeb))),
	Entry("keep no pod of others that is nominated", "", "shop/p a-1", "default/q NoReserve, shop/p Coming",
		tell().pool("a", 1, 1, 10, dedicated("shop", 1), replicas(2), claimedFor("shop", "a-1")).full().
			nominatedFor("a-1", Pod("q", 4000)).waits(Pod("p", 4000, ofWeb))),
	Entry("of a workload are not nominated for another workload of its namespace", "", "", "shop/p Coming",
		tell().pool("a", 1, 2, 10, dedicated("shop/Deployment/web", 1), dedicated("shop", 1), replicas(3), claimedFor("shop/Deployment/web", "a-1"), claimedFor("shop", "a-2")).full().
			nominatedFor("a-2", Pod("p", 4000, ofOther))),
	Entry("of a workload that no pod of it needs are for all", "", "", "shop/p Coming",
		tell().pool("a", 1, 1, 10, dedicated("shop/Deployment/web", 1), replicas(2), claimedFor("shop/Deployment/web", "a-1")).full().waits(Pod("p", 4000, ofOther))),
	Entry("are no longer claimed if replicas were lowered: they take no pod", "a+1(a-1) of these a-1", "", "shop/p Released",
		tell().pool("a", 1, 1, 10, dedicated("shop", 1), machine("a-1", func(m *reserve.Machine) { m.Owner = "shop" })).full().nominatedFor("a-1", Pod("p", 4000, ofWeb))),
	Entry("do not count if they are leaving", "", "", "shop/p NoReserve",
		tell().pool("a", 1, 1, 10, dedicated("shop", 1), replicas(2), claimedFor("shop", "a-1"), machine("a-1", leaves), func(p *Pool) { p.Sample = nil }).full().nominatedFor("a-1", Pod("p", 4000, ofWeb))),
)
