// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
)

func TestPlan(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "FederatedHPA plan")
}

// noon is when plans are made.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// none is a cluster that answers and has nothing.
func none(name string) plan.Cluster {
	return plan.Cluster{Name: name, Registered: true, Selected: true, Reachable: true, Since: noon, Absent: true}
}

// has is a cluster whose autoscaler has these bounds and runs as many as it desires.
func has(name string, lo, hi, desired int64, change ...func(*plan.Cluster)) plan.Cluster {
	c := none(name)
	c.Absent = false
	c.Local = &plan.Local{Bounds: plan.Bounds{Min: lo, Max: hi}, Version: "100", UID: name, Current: desired, Desired: desired, Demand: desired}
	c.Workload = plan.Workload{Known: true, Exists: true, Counted: true, Ready: desired, Requested: desired}
	for _, f := range change {
		f(&c)
	}
	return c
}

// wants more than the maximum.
func wants(n int64) func(*plan.Cluster) {
	return func(c *plan.Cluster) { c.Local.Limit, c.Local.Demand = v1alpha1.ByMax, n }
}

// wantsLess than the minimum.
func wantsLess(n int64) func(*plan.Cluster) {
	return func(c *plan.Cluster) { c.Local.Limit, c.Local.Demand = v1alpha1.ByMin, n }
}

func readyCondition(n int64) func(*plan.Cluster) {
	return func(c *plan.Cluster) { c.Workload.Ready = n }
}

func away(c *plan.Cluster) { c.Reachable = false }

func inactive(c *plan.Cluster) { c.Local.Inactive = plan.Hold{Reason: "FailedGetResourceMetric"} }

func view(o *v1alpha1.FederatedHorizontalPodAutoscaler, clusters ...plan.Cluster) plan.View {
	return plan.View{Now: noon, Object: o, Clusters: clusters}
}

// entry is a line of the ledger; it is made if need be.
func entry(v *plan.View, name string) *v1alpha1.ClusterStatus {
	all := &v.Object.Status.Clusters
	for i := range *all {
		if (*all)[i].Name == name {
			return &(*all)[i]
		}
	}
	*all = append(*all, v1alpha1.ClusterStatus{Name: name})
	return &(*all)[len(*all)-1]
}

func ago(d time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(-d)} }

// aims are what a plan means each cluster to have at most, as in 5/5; - is nothing.
func aims(p plan.Plan) string { return written(p, func(s plan.ClusterPlan) int64 { return s.Aim.Max }) }

// least are the minima that a plan means.
func least(p plan.Plan) string {
	return written(p, func(s plan.ClusterPlan) int64 { return s.Aim.Min })
}

func written(p plan.Plan, number func(plan.ClusterPlan) int64) string {
	var words []string
	for _, s := range p.Clusters {
		word := fmt.Sprint(number(s))
		if s.Aim.Max == 0 {
			word = "-"
		}
		words = append(words, word)
	}
	return strings.Join(words, "/")
}

// orders are what is sent now, as in "c1 1..5".
func orders(p plan.Plan) []string {
	all := []string{}
	for _, o := range p.Orders {
		if o.Operation == plan.Remove {
			all = append(all, o.Cluster+" gone")
			continue
		}
		all = append(all, fmt.Sprintf("%s %d..%d", o.Cluster, o.Min, o.Max))
	}
	return all
}

// status is that of a plan. Panics if the table of reasons does not explain it.
func status(v plan.View, p plan.Plan) v1alpha1.FederatedHorizontalPodAutoscalerStatus {
	s := plan.NewStatus(v, p)
	for _, c := range s.Conditions {
		if c.Status == metav1.ConditionUnknown && p.Stop == (plan.Hold{}) && v.Object.DeletionTimestamp == nil {
			panic(fmt.Sprintf("no table explains %s of condition %s", c.Reason, c.Type))
		}
	}
	for _, c := range s.Clusters {
		entry := reason.Clusters.Find(c.Reason)
		if c.Reason != "" && c.State != v1alpha1.Frozen && entry.Meaning == "" && !strings.HasPrefix(c.Reason, "Refused") {
			panic(fmt.Sprintf("no table explains %s of state %s", c.Reason, c.State))
		}
	}
	return s
}

// carried carries orders out at once, remembers the status, and repeats that until there is nothing to do. It returns the
// number of rounds.
func carried(v *plan.View) int {
	for round := range 20 {
		p := plan.New(*v)
		v.Object.Status = status(*v, p)
		if len(p.Orders) == 0 {
			return round
		}
		for _, o := range p.Orders {
			obey(v, o)
		}
	}
	Fail("the plan does not come to rest")
	return 0
}

// obey does in a cluster what an order says.
func obey(v *plan.View, o plan.Order) {
	for i := range v.Clusters {
		c := &v.Clusters[i]
		if c.Name != o.Cluster {
			continue
		}
		switch o.Operation {
		case plan.Remove:
			c.Local, c.Absent = nil, true
		case plan.Create:
			c.Local, c.Absent = &plan.Local{UID: c.Name, Version: "100"}, false
			fallthrough
		case plan.Change:
			version, err := strconv.Atoi(c.Local.Version)
			Expect(err).NotTo(HaveOccurred())
			c.Local.Version, c.Local.Bounds, c.Local.Drifted = strconv.Itoa(version+1), o.Bounds, false
			c.Local.Desired = max(o.Min, min(c.Local.Desired, o.Max))
			c.Local.Current = c.Local.Desired
			c.Local.Limit = limit(c.Local.Demand, o.Bounds)
			if c.Local.Limit == v1alpha1.ByMax {
				c.Local.Desired = o.Max
			}
			c.Workload.Requested = c.Local.Desired
			if !stuck[c.Name] {
				c.Workload.Ready = c.Local.Desired
			}
		}
	}
}

// stuck clusters get no more replicas ready than they have.
var stuck = map[string]bool{}

func limit(demand int64, b plan.Bounds) v1alpha1.LimitedBy {
	switch {
	case demand > b.Max:
		return v1alpha1.ByMax
	case demand < b.Min && demand > 0:
		return v1alpha1.ByMin
	}
	return ""
}
