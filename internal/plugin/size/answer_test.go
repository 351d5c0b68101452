// SPDX-License-Identifier: Apache-2.0

package size_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/demand"
	"github.com/evenkeel/evenkeel/internal/plugin/size"
	"github.com/evenkeel/evenkeel/internal/sizing"
	"github.com/evenkeel/evenkeel/test/synthetic"
)

// asked is the question for a week of office hours.
func asked(changes ...func(*size.Question)) size.Question {
	q := size.Question{
		Trace: synthetic.Weeks[0].Trace(1, 1), Name: "office", Goal: sizing.Goal{Percentile: 99, Wait: 5 * time.Second, Zone: time.UTC},
		Setup: sizing.Setup{
			Machine: corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("110")},
			Boot:    []time.Duration{2 * time.Minute, 3 * time.Minute}, Release: 300 * time.Millisecond,
			Autoscaler: &sizing.Autoscaler{Up: 10 * time.Second, Down: 10 * time.Minute},
			From:       synthetic.Monday, To: synthetic.Until(1), BootPatience: 15 * time.Minute,
		},
	}
	for _, change := range changes {
		change(&q)
	}
	return q
}

// day is the first Monday with these pods, created at eight.
func day(pods ...demand.Pods) func(*size.Question) {
	return func(q *size.Question) {
		q.Trace, q.Setup.To = nil, q.Setup.From.AddDate(0, 0, 1)
		for _, p := range pods {
			p.Created, p.Lasts = synthetic.Monday.Add(8*time.Hour), time.Hour
			q.Trace = append(q.Trace, p)
		}
	}
}

func found(q size.Question) size.Answer {
	GinkgoHelper()
	a, err := size.Find(q)
	Expect(err).NotTo(HaveOccurred())
	return a
}

var _ = Describe("An answer", func() {
	It("has a Reserve with the schedules, for the MachineDeployment", func() {
		a := found(asked(func(q *size.Question) { q.Pool, q.Setup.Max = size.Pool{Namespace: "shop", Name: "pool-z1"}, 100 }))
		Expect(a.Schedule).NotTo(BeNil())
		Expect(a.Reserve.Spec.Schedules).To(Equal(a.Schedule.Schedules))
		Expect(a.Reserve.Spec.Replicas).To(BeEquivalentTo(a.Schedule.Machines))
		Expect(a.Reserve.YAML()).To(And(
			HavePrefix("apiVersion: autoscaling.evenkeel.dev/v1alpha1\nkind: Reserve\nmetadata:\n  name: office\n  namespace: shop\nspec:\n  pools:\n    names:\n    - pool-z1\n"),
			Not(ContainSubstring("status")), Not(ContainSubstring("creationTimestamp")),
		))
		Expect(a.Notes).To(BeEmpty())
	})

	It("selects the worker pool if one is named", func() {
		a := found(asked(func(q *size.Question) { q.Pool.Name, q.WorkerPool = "shoot-z1", "workers" }))
		Expect(a.Reserve.Spec.Pools.WorkerPools).To(Equal([]string{"workers"}))
		Expect(a.Reserve.Spec.Pools.Names).To(BeEmpty())
	})

	It("has a Reserve with a number if no schedule is cheaper", func() {
		a := found(asked(day(demand.Pods{CPU: 3000, Count: 2})))
		Expect(a.Schedule).To(BeNil())
		Expect(a.Reserve.Spec.Replicas).To(BeEquivalentTo(2))
		Expect(a.Reserve.Spec.Schedules).To(BeEmpty())
		Expect(a.Reserve.Spec.Pools.Names).To(Equal([]string{size.Unnamed}))
	})

	It("has none if none is necessary", func() {
		a := found(asked(day(demand.Pods{CPU: 3000, Count: 2}), func(q *size.Question) { q.Goal.Wait = time.Hour }))
		Expect(a.Amount.Machines).To(BeZero())
		Expect(a.Reserve).To(BeNil())
	})

	It("has none if nothing is enough", func() {
		a := found(asked(day(demand.Pods{CPU: 3000, Count: 2}), func(q *size.Question) { q.Setup.Max = 1 }))
		Expect(a.Amount).To(BeNil())
		Expect(a.Reserve).To(BeNil())
	})

	It("compares with the amount of today", func() {
		a := found(asked(day(demand.Pods{CPU: 3000, Count: 2}), func(q *size.Question) { q.Current = ptr.To(9) }))
		Expect(a.Points[len(a.Points)-1].Machines).To(Equal(9))
	})

	DescribeTable("notes what limits it", func(note string, changes ...func(*size.Question)) {
		Expect(found(asked(changes...)).Notes).To(ContainElement(ContainSubstring(note)))
	},
		Entry(nil, "omitted: 1 pod with larger requests than a machine can hold", day(demand.Pods{CPU: 3000, Count: 2}, demand.Pods{CPU: 9000, Count: 1})),
		Entry(nil, "the trace covers less than a week", day(demand.Pods{CPU: 3000, Count: 2})),
		Entry(nil, "all machines boot in the same time", func(q *size.Question) { q.Setup.Boot = q.Setup.Boot[:1] }),
		Entry(nil, "MachineDeployment pool has no bounds, so instant release does not raise its replicas", func(q *size.Question) {
			q.Pool = size.Pool{Namespace: "shop", Name: "pool"}
		}),
		Entry(nil, "the requests of DaemonSets are unknown", func(q *size.Question) { q.Pool.DaemonsUnknown = true }),
		Entry(nil, "MachineDeployment pool itself requests 9 by spec.excessReplicas", func(q *size.Question) {
			q.Pool = size.Pool{Name: "pool", Own: 9, Where: "spec.excessReplicas"}
		}),
	)
})

var _ = DescribeTable("A saving is in percent of the cost", func(of, than float64, want int) {
	Expect(size.Saving(sizing.Point{Outcome: sizing.Outcome{ReserveHours: of}}, sizing.Point{Outcome: sizing.Outcome{ReserveHours: than}})).To(Equal(want))
},
	Entry("a half", 50.0, 100.0, 50), Entry("none", 100.0, 100.0, 0), Entry("of nothing", 0.0, 0.0, 0), Entry("rounded", 1.0, 3.0, 67),
)
