// SPDX-License-Identifier: Apache-2.0

package dryrun_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/evenkeel/evenkeel/internal/plugin/dryrun"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
	federatedhpaplan "github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
)

// federated is a preview of one object over clusters a and b.
func federated(change func(*federatedhpa.Preview)) federatedhpa.Preview {
	p := federatedhpa.Preview{View: federatedhpaplan.View{
		Object:   &autoscaling.FederatedHorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "shop"}},
		Clusters: []federatedhpaplan.Cluster{{Name: "a", Registered: true, Reachable: true}, {Name: "b", Registered: true, Reachable: true}},
	}}
	p.Plan.Clusters = []federatedhpaplan.ClusterPlan{
		{Name: "a", Confirmed: federatedhpaplan.Bounds{Min: 1, Max: 5}, Aim: federatedhpaplan.Bounds{Min: 1, Max: 5}},
		{Name: "b"},
	}
	change(&p)
	return p
}

var _ = Describe("A forecast of a federated autoscaler", func() {
	DescribeTable("shows its state",
		func(change func(*federatedhpa.Preview), lines ...string) {
			f := Forecast{End: End{Rest: true}}
			f.AddFederated([]federatedhpa.Preview{federated(change)})
			text := &strings.Builder{}
			Expect(f.Print(text, true)).To(Succeed())
			Expect(text.String()).To(Equal(strings.Join(lines, "\n") + "\n"))
		},
		Entry("at rest", func(*federatedhpa.Preview) {}, "FederatedHorizontalPodAutoscaler n/shop: at rest", "Nothing changes."),
		Entry("moving", func(p *federatedhpa.Preview) {
			p.Plan.Clusters[1].Aim = federatedhpaplan.Bounds{Min: 1, Max: 3}
			p.Plan.Orders = []federatedhpaplan.Order{{Cluster: "b", Operation: federatedhpaplan.Create, Bounds: federatedhpaplan.Bounds{Min: 1, Max: 2}}}
		}, "FederatedHorizontalPodAutoscaler n/shop: moving", "  bounds in cluster b none -> 1-2 (create)", "",
			"In the end, if nothing else changes:", "FederatedHorizontalPodAutoscaler n/shop: b none -> 1-3"),
		Entry("waiting for another cluster", func(p *federatedhpa.Preview) { p.Plan.Clusters[0].Aim.Max = 4 },
			"FederatedHorizontalPodAutoscaler n/shop: moving (bounds are lowered in one cluster before they are raised in another)", "",
			"In the end, if nothing else changes:", "FederatedHorizontalPodAutoscaler n/shop: a 1-5 -> 1-4"),
		Entry("stopped", func(p *federatedhpa.Preview) {
			p.Plan.Stop = federatedhpaplan.Hold{Reason: "Conflict", Message: "x is older"}
		},
			"FederatedHorizontalPodAutoscaler n/shop: blocked (x is older)", "Nothing changes."),
		Entry("paused", func(p *federatedhpa.Preview) { p.View.Object.Spec.Paused = true },
			"FederatedHorizontalPodAutoscaler n/shop: blocked (spec.paused is set)", "Nothing changes."),
		Entry("short of room", func(p *federatedhpa.Preview) { p.Plan.Missing = 7 },
			"FederatedHorizontalPodAutoscaler n/shop: blocked (clusters request 7 more replicas than their limits and maxReplicas allow)", "Nothing changes."),
		Entry("with a cluster out of reach", func(p *federatedhpa.Preview) { p.View.Clusters[1].Reachable = false },
			"FederatedHorizontalPodAutoscaler n/shop: at rest (unreachable: b)", "Nothing changes."),
	)
})
