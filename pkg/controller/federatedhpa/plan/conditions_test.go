// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
)

// released gives up the shares of these clusters while they are out of reach.
func released(names ...string) func(*Spec) {
	return func(s *Spec) { s.Unreachable = &v1alpha1.Unreachable{Released: names} }
}

// said is the message of a condition.
func said(v plan.View, kind string) string {
	return meta.FindStatusCondition(status(v, plan.New(v)).Conditions, kind).Message
}

// many are clusters with an autoscaler each, of which all are out of reach.
func many(n int) []plan.Cluster {
	var all []plan.Cluster
	for i := range n {
		all = append(all, has(fmt.Sprintf("c%02d", i), 1, 1, 1, away))
	}
	return all
}

var _ = Describe("Conditions", func() {
	DescribeTable("have a reason",
		func(kind, expected string, v plan.View) { Expect(condition(v, kind)).To(Equal(expected)) },
		Entry("a cluster is used", "Ready", "True UnderControl", view(Federated(1, 10), has("a", 1, 10, 3))),
		Entry("a cluster joins", "Ready", "True UnderControl", view(Federated(1, 10), none("a"))),
		Entry("the only cluster does not answer", "Ready", "False NoClusters", view(Federated(1, 10), but(none("a"), silent))),
		Entry("the only cluster is leaving", "Ready", "False NoClusters", view(Federated(1, 10), has("a", 1, 10, 3, unselected))),
		Entry("a cluster refuses", "Ready", "False ClustersRefused", view(Federated(2, 10), has("a", 1, 10, 3), but(none("b"), refusing))),
		Entry("a cluster that refuses is leaving", "Ready", "True UnderControl", view(Federated(2, 10), has("a", 1, 5, 3), has("b", 1, 5, 3, refusing, unselected))),
		Entry("all answer", "ClustersUnreachable", "False AllReached", view(Federated(1, 10), has("a", 1, 10, 3))),
		Entry("one does not answer and has no share", "ClustersUnreachable", "False AllReached", view(Federated(1, 10), has("a", 1, 10, 3), but(none("b"), silent))),
		Entry("one may still answer", "ClustersUnreachable", "False AllReached", remembers(view(Federated(1, 10), but(none("a"), starting)), "a", confirmed(1, 10))),
		Entry("one does not answer and may have a share", "ClustersUnreachable", "True OutOfReach", remembers(view(Federated(1, 10), but(none("a"), silent)), "a", confirmed(1, 10))),
		Entry("nothing changes", "Balanced", "True AtGoal", view(Federated(1, 10), has("a", 1, 10, 3))),
		Entry("a maximum rises", "Balanced", "False Moving", view(Federated(1, 10), has("a", 1, 9, 3))),
		Entry("an order may still take effect", "Balanced", "False Moving", remembers(view(Federated(1, 10), has("a", 1, 10, 3)), "a", outstanding(1, 10, "100"))),
		Entry("only a cluster whose share is lent has not answered", "Balanced", "True AtGoal", remembers(view(Federated(1, 10, released("a")), plan.Cluster{Name: "a"}, has("b", 1, 10, 3)), "a", outstanding(1, 10, "100"))),
		Entry("no cluster asks for more", "Limited", "False Enough", view(Federated(1, 10), has("a", 1, 10, 3))),
		Entry("one asks for more", "Limited", "True TooFewReplicas", view(Federated(1, 10), has("a", 1, 10, 10, wants(11)))),
		Entry("the maxima fit", "OverCommitted", "False Within", view(Federated(1, 10), has("a", 1, 10, 3))),
		Entry("a maximum is too high", "OverCommitted", "True MaximaExceedMaxReplicas", view(Federated(1, 10), has("a", 1, 11, 3))),
		Entry("the minima fit", "MinExceeded", "False Within", view(Federated(1, 10), has("a", 1, 10, 3))),
		Entry("there are more clusters than minReplicas", "MinExceeded", "True MinimaExceedMinReplicas", view(Federated(1, 10), has("a", 1, 5, 3), has("b", 1, 5, 3))),
		Entry("no cluster waits", "JoiningBlocked", "False NotNeeded", view(Federated(1, 10), has("a", 1, 10, 3))),
		Entry("a cluster waits", "JoiningBlocked", "True NoRoom", view(Federated(1, 10), has("a", 1, 10, 10), none("b"))),
	)

	DescribeTable("say which clusters, and how many replicas",
		func(kind, expected string, v plan.View) { Expect(said(v, kind)).To(Equal(expected)) },
		func(kind, expected string, _ plan.View) string { return kind + ": " + expected },
		Entry(nil, "Ready", "the hub manages all selected clusters", view(Federated(1, 10), has("a", 1, 10, 3))),
		Entry(nil, "Ready", "see status.clusters for b, c", view(Federated(2, 10), has("a", 1, 10, 3), but(none("b"), refusing), but(none("c"), refusing))),
		Entry(nil, "ClustersUnreachable", "these clusters do not answer and keep their bounds: b", view(Federated(2, 10), has("a", 1, 5, 3), has("b", 1, 5, 3, away))),
		Entry(nil, "Balanced", "bounds are being changed in b", view(Federated(2, 10), has("a", 1, 5, 3), has("b", 1, 6, 3))),
		Entry(nil, "Balanced", "bounds are being changed in a", view(Federated(3, 10), has("a", 1, 5, 3), has("b", 1, 5, 3))),
		Entry(nil, "Limited", "clusters request 5 more replicas than maxReplicas and their own limits allow", view(Federated(2, 10), has("a", 1, 5, 5, wants(7)), has("b", 1, 5, 5, wants(8)))),
		Entry(nil, "OverCommitted", "the clusters' maxima may add up to 7 more than maxReplicas; 0 of these belong to unreachable clusters whose share is lent", view(Federated(2, 10), has("a", 1, 8, 5), has("b", 1, 9, 5))),
		Entry(nil, "OverCommitted", "the clusters' maxima may add up to 7 more than maxReplicas; 7 of these belong to unreachable clusters whose share is lent", view(Federated(2, 10, released("b")), has("a", 1, 10, 5), has("b", 1, 7, 5, away))),
		Entry(nil, "MinExceeded", "the clusters' minima add up to 2 more than minReplicas", view(Federated(1, 10), none("a"), none("b"), none("c"))),
		Entry(nil, "JoiningBlocked", "other clusters use all of maxReplicas; these clusters wait: b, c", view(Federated(1, 10), has("a", 1, 10, 10), none("b"), none("c"))),
	)

	DescribeTable("name up to ten clusters",
		func(n int, expected string) {
			Expect(said(view(Federated(1, 20), many(n)...), "ClustersUnreachable")).To(HaveSuffix(expected))
		},
		Entry(nil, 2, "c00, c01"),
		Entry(nil, 10, "c00, c01, c02, c03, c04, c05, c06, c07, c08, c09"),
		Entry(nil, 11, "c00, c01, c02, c03, c04, c05, c06, c07, c08, c09 and 1 more"),
		Entry(nil, 13, "c00, c01, c02, c03, c04, c05, c06, c07, c08, c09 and 3 more"),
	)
})
