// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/tracing"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
)

var _ = Describe("The controller", func() {
	none := machinetaint.Settings{}

	It("frees a Node before its Machine, and records events", func() {
		onItsOwn(2, 1, none, func(a *alone) {
			a.wrote(0)
			a.heard()
			since := len(a.Writes())
			a.patch(`{"spec":{"replicas":3}}`)
			Expect(a.wrote(since)[:2]).To(HaveExactElements("nodes c", "machines c"))
			Expect(a.heard()).To(ContainElements(
				Equal("Normal ReserveReleased Machine c left the reserve (Released)"),
				MatchRegexp(`^Normal ReserveReleased Released at 2000.* \(Released\); node c does not carry the reserve taint `+aboutMachine)))
			Expect(a.counted("evenkeel_reserve_releases_total")).To(BeEquivalentTo(1))
			Expect(a.counted("evenkeel_reserve_release_seconds")).To(BeEquivalentTo(1))
			node, err := a.core.CoreV1().Nodes().Get(context.Background(), "c", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(node.Spec.Taints).To(BeEmpty())
			Expect(node.Annotations).To(BeEmpty())
		})
	})

	It("frees the Node of a machine after its Machine where an earlier process may be deleting that", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			a.restart()
			since := len(a.Writes())
			a.patch(`{"spec":{"replicas":3}}`)
			Expect(a.wrote(since)[:2]).To(HaveExactElements("machines c", "nodes c"))
		})
	})

	It("records one event for each of many machines that it frees at once, and one for all of them", func() {
		onItsOwn(2, 40, none, func(a *alone) {
			a.wrote(0)
			a.heard()
			a.patch(`{"spec":{"replicas":42}}`)
			a.wrote(0)
			heard := a.heard()
			Expect(heard).To(ContainElement(MatchRegexp(`^Normal ReserveReleased Machines (\S+, ){9}\S+ and 30 more left the reserve \(Released\)$`)))
			about := 0
			for _, event := range heard {
				if strings.Contains(event, "kind=Machine,") {
					about++
				}
			}
			Expect(about).To(Equal(40))
			Expect(slices.DeleteFunc(heard, func(event string) bool { return strings.Contains(event, "SuccessfulCreate") })).To(HaveLen(about+2), "and two about the MachineDeployment's own state")
		})
	})

	It("does not wait for one machine to be freed before it frees the next", func() {
		onItsOwn(2, 4, none, func(a *alone) {
			a.patch(`{"metadata":{"annotations":{%q:"0:6:4"}}}`, api.BoundsAnnotation)
			a.wrote(0)
			asked := map[string]time.Duration{}
			begin := time.Now()
			a.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User != controllerUser || !r.Writes() {
					return 0, 0
				}
				what := strings.TrimSpace(r.Resource + " " + r.Name + " " + r.Subresource)
				if _, before := asked[what]; !before { // its state may be written once more
					asked[what] = time.Since(begin)
				}
				return 50 * time.Millisecond, 0
			})
			for replicas := 3; replicas <= 5; replicas++ {
				a.patch(`{"spec":{"replicas":%d}}`, replicas)
				time.Sleep(10 * time.Millisecond)
			}
			a.wrote(0)
			a.LatencyOf(nil)
			for i, machine := range []string{"c", "d", "e"} {
				raised := time.Duration(i) * 10 * time.Millisecond
				Expect(asked).To(HaveKeyWithValue("nodes "+machine, BeNumerically("~", raised, 5*time.Millisecond)))
				Expect(asked).To(HaveKeyWithValue("machines "+machine, BeNumerically("~", raised+50*time.Millisecond, 5*time.Millisecond)))
			}
		})
	})

	DescribeTable("frees a machine while another one enters the reserve:",
		func(reserve int, want ...string) {
			onItsOwn(2, reserve, none, func(a *alone) {
				Expect(a.core.CoreV1().Pods(fixture.Namespace).Delete(context.Background(), "on-b", metav1.DeleteOptions{})).To(Succeed())
				a.wrote(0)
				var asked []string
				begin := time.Now()
				a.LatencyOf(func(r sim.Request) (before, after time.Duration) {
					if r.User != controllerUser || !r.Writes() || r.Resource != "nodes" && r.Resource != "machines" || r.Subresource != "" || r.Verb == "create" {
						return 0, 0
					}
					asked = append(asked, fmt.Sprintf("%d %s %s", time.Since(begin).Milliseconds(), r.Resource, r.Name))
					return 50 * time.Millisecond, 0
				})
				a.reports("b", `{"currentStatus":{"phase":"Pending"}}`) // c serves in its place
				time.Sleep(220 * time.Millisecond)
				a.patch(`{"spec":{"replicas":3}}`)
				time.Sleep(20 * time.Millisecond)
				Expect(asked).To(Equal(want))
				a.LatencyOf(nil)
				a.wrote(0)
			})
		},
		Entry("the next one", 2, "20 nodes c", "70 machines c", "120 nodes b", "170 machines b", "220 nodes d"),
		Entry("that one if there is no other, once it has entered", 1, "20 nodes c", "70 machines c", "120 nodes b", "170 machines b", "220 nodes b"),
	)

	It("frees a machine as soon as it is told that replicas were raised, whatever a watch shows", func() {
		onItsOwn(2, 1, none, func(a *alone) {
			ctx := context.Background()
			a.wrote(0)
			a.Hold("machinedeployments", controllerUser)
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Patch(ctx, "pool", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			before := len(a.Writes())
			time.Sleep(time.Minute)
			Expect(a.Writes()[before:]).To(BeEmpty())
			recorder := tracetest.NewSpanRecorder()
			defer tracing.Record(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))()
			raised, span := tracing.Start(ctx, "raise")
			a.controller.ObserveUpdate(raised, d)
			time.Sleep(10 * time.Millisecond)
			Expect(recorder.Ended()).To(ContainElement(SatisfyAll(HaveField("Name()", "machinedeployment"),
				HaveField("Parent().SpanID()", span.SpanContext().SpanID()))), "the release is part of the trace of the raise")
			Expect(a.Writes()[before:]).To(ContainElements(HaveField("Resource", "nodes"), HaveField("Resource", "machines")))
			time.Sleep(time.Minute)
			Expect(a.Writes()[before:]).To(ContainElement(HaveField("Resource", "machinedeployments")), "also what can wait is decided on what was told")
			before = len(a.Writes())
			a.Release("machinedeployments", controllerUser)
			a.wrote(0)
			Expect(a.Writes()[before:]).NotTo(ContainElement(HaveField("Resource", Or(Equal("nodes"), Equal("machines")))))
		})
	})

	It("is not decided about again and again while a request to free a machine is under way", func() {
		var decisions atomic.Int64
		counting := machinetaint.Settings{Accounting: func(*api.MachineDeployment) api.Accounting { decisions.Add(1); return "" }}
		onItsOwn(2, 1, counting, func(a *alone) {
			a.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == controllerUser && r.Verb == "patch" && r.Resource == "nodes" {
					before = 30 * time.Second
				}
				return before, 0
			})
			before := decisions.Load()
			a.patch(`{"spec":{"replicas":3}}`)
			time.Sleep(29 * time.Second)
			Expect(decisions.Load() - before).To(BeNumerically("<", 100))
			time.Sleep(2 * time.Second)
			Expect(a.stored("c").Annotations).NotTo(HaveKey(api.ReserveAnnotation))
		})
	})

	It("takes from a Node only what it put there", func() {
		onItsOwn(2, 1, none, func(a *alone) {
			ctx := context.Background()
			_, err := a.core.CoreV1().Nodes().Patch(ctx, "c", types.StrategicMergePatchType,
				[]byte(`{"metadata":{"annotations":{"their":"own"}},"spec":{"taints":[{"key":"their","effect":"NoSchedule"},{"key":"`+api.ReserveTaintKey+`","effect":"NoSchedule"}]}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			a.wrote(0)
			a.patch(`{"spec":{"replicas":3}}`)
			a.wrote(0)
			node, err := a.core.CoreV1().Nodes().Get(ctx, "c", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(node.Spec.Taints).To(ConsistOf(HaveField("Key", "their")))
			Expect(node.Annotations).To(Equal(map[string]string{"their": "own"}))
		})
	})

	It("lets a machine serve that workload runs on, whatever its mark says", func() {
		onItsOwn(2, 1, none, func(a *alone) {
			a.wrote(0)
			since := len(a.Writes())
			_, err := a.core.CoreV1().Pods(fixture.Namespace).Create(context.Background(), fixture.Pod("stray", func(p *corev1.Pod) { p.Spec.NodeName = "c" }), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(a.wrote(since)).To(ContainElements("nodes c", "machines c"))
		})
	})
})

// brokenClock panics once when it is asked how long something took, as a release is after its Node was written.
type brokenClock struct {
	clock.RealClock
	repaired atomic.Bool
}

func (c *brokenClock) Since(t time.Time) time.Duration {
	if !c.repaired.Swap(true) {
		panic("a broken clock")
	}
	return c.RealClock.Since(t)
}

var _ = Describe("A panic while a machine is written", func() {
	It("is reported, and ends neither the process nor the care for the MachineDeployment", func() {
		timed(&brokenClock{}, sim.Machine, 1, 1, machinetaint.Settings{}, func(a *alone) {
			time.Sleep(time.Minute)
			a.patch(`{"spec":{"replicas":2}}`)
			time.Sleep(6 * time.Minute)
			Expect(a.heard()).To(ContainElement("Warning UnableToManage Controller panicked: a broken clock. Retrying in 1m; please report this bug"))
			m := a.stored("b")
			Expect(m.Annotations).NotTo(HaveKey(api.ReserveAnnotation), "it serves")
		})
	})
})
