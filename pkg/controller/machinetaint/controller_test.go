// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/fixture"
	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/internal/tracing"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
)

// aboutMachine ends an event about a Machine.
const aboutMachine = `involvedObject\{kind=Machine,apiVersion=machine.sapcloud.io/v1alpha1\}$`

var _ = Describe("The controller", func() {
	none := machinetaint.Options{}

	It("writes the status of a reserve at rest, and then nothing", func() {
		onItsOwn(2, 2, none, func(a *alone) {
			Expect(a.wrote(0)).To(Equal([]string{"machinedeployments pool status"}))
			Expect(a.heard()).To(ConsistOf(ContainSubstring("Normal ReserveHeld 2 of 2 machines serve, 2 of 2 in reserve, 2 of these ready")))
			Expect(a.counted("evenkeel_reserve_machines")).To(BeEquivalentTo(2))
			since := len(a.Writes())
			time.Sleep(24 * time.Hour)
			Expect(a.wrote(since)).To(BeEmpty())
		})
	})

	It("writes nothing at all where there is no excess", func() {
		onItsOwn(3, 0, none, func(a *alone) {
			a.patch(`{"spec":{"replicas":2}}`)
			Expect(a.wrote(0)).To(BeEmpty())
			Expect(a.heard()).To(BeEmpty())
		})
	})

	It("frees a Node before its Machine, and tells", func() {
		onItsOwn(2, 1, none, func(a *alone) {
			a.wrote(0)
			a.heard()
			since := len(a.Writes())
			a.patch(`{"spec":{"replicas":3}}`)
			Expect(a.wrote(since)).To(HaveExactElements("nodes c", "machines c", "machinedeployments pool status"))
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

	It("frees the Node of a machine that was to go after its Machine, since an earlier process may be deleting that", func() {
		onItsOwn(2, 1, none, func(a *alone) {
			a.wrote(0)
			a.patch(`{"spec":{"excessReplicas":0}}`)
			a.wrote(0)
			since := len(a.Writes())
			a.patch(`{"spec":{"replicas":3}}`)
			Expect(a.wrote(since)[:2]).To(HaveExactElements("machines c", "nodes c"))
		})
	})

	It("says on a Machine that the taint is on its Node as soon as that has registered", func() {
		onItsOwn(2, 1, none, func(a *alone) {
			ctx := context.Background()
			state := func() string {
				m, err := a.stock.MachineV1alpha1().Machines(fixture.Namespace).Get(ctx, "c", metav1.GetOptions{})
				Expect(err).NotTo(HaveOccurred())
				return m.Annotations[api.ReserveStateAnnotation]
			}
			a.wrote(0)
			a.heard()
			held := state()
			Expect(a.core.CoreV1().Nodes().Delete(ctx, "c", metav1.DeleteOptions{})).To(Succeed())
			a.wrote(0)
			Expect(state()).To(BeEmpty())
			Expect(a.heard()).NotTo(ContainElement(MatchRegexp(aboutMachine)))
			since := len(a.Writes())
			_, err := a.core.CoreV1().Nodes().Create(ctx, fixture.Node("c", func(n *corev1.Node) { n.Spec.ProviderID = "sim:///c" }), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(a.wrote(since)).To(HaveExactElements("nodes c", "machines c"))
			Expect(state()).To(Equal(held))
			Expect(a.heard()).To(ContainElement(MatchRegexp("^Normal ReserveHeld " + held + " " + aboutMachine)))
		})
	})

	It("writes a Machine that becomes ready in reserve once", func() {
		onItsOwn(2, 1, none, func(a *alone) {
			ctx := context.Background()
			Expect(a.core.CoreV1().Nodes().Delete(ctx, "c", metav1.DeleteOptions{})).To(Succeed())
			a.reports("c", `{"currentStatus":{"phase":"Pending"}}`)
			a.wrote(0)
			since := len(a.Writes())
			_, err := a.core.CoreV1().Nodes().Create(ctx, fixture.Node("c", func(n *corev1.Node) { n.Spec.ProviderID = "sim:///c" }), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(a.wrote(since)).To(And(ContainElement("nodes c"), Not(ContainElement("machines c"))))
			since = len(a.Writes())
			a.reports("c", `{"currentStatus":{"phase":"Running"}}`)
			Expect(a.wrote(since)).To(ConsistOf("machines c", "machinedeployments pool status"))
			m, err := a.stock.MachineV1alpha1().Machines(fixture.Namespace).Get(ctx, "c", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(m.Annotations).To(And(
				HaveKeyWithValue("machinepriority.machine.sapcloud.io", "5"),
				HaveKeyWithValue(api.ReserveStateAnnotation, HaveSuffix("node c carries the reserve taint"))))
		})
	})

	It("writes the status once a second at most while machines change, and then as it is", func() {
		onItsOwn(2, 4, none, func(a *alone) {
			a.wrote(0)
			since, machines := len(a.Writes()), []string{"c", "d", "e", "f"}
			for _, phase := range []string{"Pending", "Running", "Pending"} {
				for _, name := range machines {
					a.reports(name, fmt.Sprintf(`{"currentStatus":{"phase":%q}}`, phase))
					time.Sleep(105 * time.Millisecond) // the last one comes between two times at which the status may be written
				}
			}
			isOther := func(write string) bool { return write != "machinedeployments pool status" }
			Expect(slices.DeleteFunc(a.wrote(since), isOther)).To(HaveLen(3), "at once, after a second, and at the end")
			Expect(a.deployment().Status.ReadyExcessReplicas).To(BeZero())
		})
	})

	It("replaces no machine that was deleted for lower replicas which it has yet to see", func() {
		onItsOwn(3, 1, none, func(a *alone) {
			a.wrote(0)
			a.Hold("machinedeployments", controllerUser)
			since := len(a.Writes())
			a.patch(`{"spec":{"replicas":2}}`)
			time.Sleep(time.Second)
			_, err := a.stock.MachineV1alpha1().Machines(fixture.Namespace).Patch(context.Background(), "b", types.MergePatchType, fmt.Appendf(nil,
				`{"metadata":{"annotations":{%q:"1",%q:"2000-01-01T00:00:00Z"}}}`, machineutils.MachinePriority, machineutils.MarkedForDeletionTime), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(a.wrote(since)).To(BeEmpty())
			a.Release("machinedeployments", controllerUser)
			Expect(a.wrote(since)).To(ConsistOf("machinedeployments pool status"))
		})
	})

	It("keeps a machine in reserve while it has yet to see that one is deleted, though the excess has been reduced (6)", func() {
		onItsOwn(2, 1, none, func(a *alone) {
			a.wrote(0)
			a.Hold("machines", controllerUser)
			a.deleteSlowly("a")
			a.patch(`{"spec":{"excessReplicas":0}}`)
			a.wrote(0)
			Expect(a.applied()).To(Equal("1"), "machine-controller-manager would delete c, though workload is about to need it")
			a.Release("machines", controllerUser)
			a.wrote(0)
			Expect(a.heard()).To(ContainElement(ContainSubstring("Machine c left the reserve (Released)")))
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
			Expect(len(heard)).To(BeNumerically("<", 45))
		})
	})

	It("frees what is needed next before it writes what can wait", func() {
		onItsOwn(2, 3, none, func(a *alone) {
			a.patch(`{"metadata":{"annotations":{%q:"0:5:3"}}}`, api.BoundsAnnotation)
			a.wrote(0)
			var asked []string
			a.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User != controllerUser || !r.Writes() {
					return 0, 0
				}
				asked = append(asked, strings.TrimSpace(r.Resource+" "+r.Name+" "+r.Subresource))
				return 50 * time.Millisecond, 0
			})
			a.patch(`{"spec":{"replicas":3}}`)
			time.Sleep(250 * time.Millisecond) // Node and Machine are written
			a.patch(`{"spec":{"replicas":4}}`)
			a.wrote(0)
			a.LatencyOf(nil)
			Expect(asked[:5]).To(HaveExactElements("nodes c", "machines c", "nodes d", "machines d", "machinedeployments pool"))
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
				asked[strings.TrimSpace(r.Resource+" "+r.Name+" "+r.Subresource)] = time.Since(begin)
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
			a.taint.ObserveUpdate(raised, d)
			time.Sleep(10 * time.Millisecond)
			Expect(recorder.Ended()).To(ContainElement(SatisfyAll(HaveField("Name()", "machinetaint"),
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

	It("takes from a Node only what it put there", func() {
		onItsOwn(2, 1, none, func(a *alone) {
			ctx := context.Background()
			_, err := a.core.CoreV1().Nodes().Patch(ctx, "c", types.StrategicMergePatchType,
				[]byte(`{"metadata":{"annotations":{"their":"own","cluster-autoscaler.kubernetes.io/scale-down-disabled-by-mcm":"true"}},"spec":{"taints":[{"key":"their","effect":"NoSchedule"},{"key":"`+api.ReserveTaintKey+`","effect":"NoSchedule"}]}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			a.wrote(0)
			a.patch(`{"spec":{"replicas":3}}`)
			a.wrote(0)
			node, err := a.core.CoreV1().Nodes().Get(ctx, "c", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(node.Spec.Taints).To(ConsistOf(HaveField("Key", "their")))
			Expect(node.Annotations).To(Equal(map[string]string{"their": "own",
				"cluster-autoscaler.kubernetes.io/scale-down-disabled-by-mcm": "true", api.ScaleDownDisabledAnnotation: "true"}), "a rollout wants it kept")
		})
	})

	It("does not restore from a store that is late what somebody has set meanwhile", func() {
		onItsOwn(2, 1, none, func(a *alone) {
			a.wrote(0)
			a.Lag("machinedeployments", sim.Constantly(100*time.Millisecond), controllerUser, lensUser)
			a.patch(`{"spec":{"excessReplicas":null}}`)
			time.Sleep(50 * time.Millisecond)
			a.patch(`{"spec":{"excessReplicas":0}}`)
			a.wrote(0)
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Spec.ExcessReplicas).To(HaveValue(BeEquivalentTo(0)))
		})
	})

	It("restores a field that has vanished, and leaves an explicit 0", func() {
		onItsOwn(2, 1, none, func(a *alone) {
			a.wrote(0)
			a.heard()
			a.patch(`{"spec":{"excessReplicas":null}}`)
			a.wrote(0)
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Spec.ExcessReplicas).To(HaveValue(BeEquivalentTo(1)))
			Expect(a.heard()).To(ContainElement(ContainSubstring("Normal ExcessRestored spec.excessReplicas was removed and has been restored to 1")))
			Expect(a.counted("evenkeel_reserve_restorations_total")).To(BeEquivalentTo(1))
			a.patch(`{"spec":{"excessReplicas":0}}`)
			a.wrote(0)
			d, err = a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Spec.ExcessReplicas).To(HaveValue(BeEquivalentTo(0)))
			Expect(d.Annotations).NotTo(HaveKey(api.WantedExcessAnnotation))
		})
	})

	It("works from what it remembers where the API server drops the field, and says so", func() {
		onServer(pruning(), 2, 1, none, func(a *alone) {
			a.wrote(0)
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Spec.ExcessReplicas).To(BeNil())
			Expect(d.Annotations).To(HaveKeyWithValue(api.AppliedExcessAnnotation, "1"))
			Expect(d.Status.Conditions).To(ContainElement(HaveField("Message", ContainSubstring("does not store spec.excessReplicas"))))
			since := len(a.Writes())
			time.Sleep(24 * time.Hour)
			Expect(a.wrote(since)).To(BeEmpty())
		})
	})

	It("keeps no excess of former bounds where the API server drops the field", func() {
		onServer(pruning(), 2, 0, none, func(a *alone) {
			excess := func() map[string]string {
				a.wrote(0)
				d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
				Expect(err).NotTo(HaveOccurred())
				return d.Annotations
			}
			a.patch(`{"metadata":{"annotations":{%q:"1:5:2"}}}`, api.BoundsAnnotation)
			Expect(excess()).To(HaveKeyWithValue(api.AppliedExcessAnnotation, "2,max=5"))
			a.patch(`{"metadata":{"annotations":{%q:null}}}`, api.BoundsAnnotation)
			Expect(excess()).NotTo(Or(HaveKey(api.AppliedExcessAnnotation), HaveKey(api.WantedExcessAnnotation)))
		})
	})

	It("lets a machine serve that workload runs on, whatever its mark says", func() {
		onItsOwn(2, 1, none, func(a *alone) {
			a.wrote(0)
			since := len(a.Writes())
			_, err := a.core.CoreV1().Pods(fixture.Namespace).Create(context.Background(), fixture.Pod("stray", func(p *corev1.Pod) { p.Spec.NodeName = "c" }), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(a.wrote(since)).To(HaveExactElements("nodes c", "machines c", "machinedeployments pool status"))
		})
	})

	It("leaves a machine in reserve with pods that tolerate its taint, or do not count", func() {
		onItsOwn(2, 1, none, func(a *alone) {
			a.wrote(0)
			since := len(a.Writes())
			for name, change := range map[string]func(*corev1.Pod){
				"tolerant": func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} },
				"daemon":   func(p *corev1.Pod) { p.OwnerReferences = ownedBy("DaemonSet", "daemon", "1") },
				"mirror":   func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} },
				"finished": func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
			} {
				ctx, pods := context.Background(), a.core.CoreV1().Pods(fixture.Namespace)
				made, err := pods.Create(ctx, fixture.Pod(name, change), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				change(made)
				made, err = pods.UpdateStatus(ctx, made, metav1.UpdateOptions{})
				Expect(err).NotTo(HaveOccurred())
				made.Spec.NodeName = "c"
				_, err = pods.Update(ctx, made, metav1.UpdateOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			Expect(a.wrote(since)).To(BeEmpty())
		})
	})

	It("adds NoExecute where that is asked for", func() {
		both := machinetaint.Options{Settings: plan.Settings{Effects: []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}}}
		onItsOwn(2, 1, both, func(a *alone) {
			a.wrote(0)
			node, err := a.core.CoreV1().Nodes().Get(context.Background(), "c", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(node.Spec.Taints).To(ConsistOf(HaveField("Effect", corev1.TaintEffectNoSchedule), HaveField("Effect", corev1.TaintEffectNoExecute)))
			m, err := a.stock.MachineV1alpha1().Machines(fixture.Namespace).Get(context.Background(), "c", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(m.Spec.NodeTemplateSpec.Spec.Taints).To(HaveLen(2))
		})
	})

	DescribeTable("gives a reserve up when it is to drain", func(drain bool, annotation string) {
		onItsOwn(2, 1, machinetaint.Options{Settings: plan.Settings{Drain: drain}}, func(a *alone) {
			a.patch(`{"metadata":{"annotations":{"evenkeel.machine.sapcloud.io/drain-reserve":%q}}}`, annotation)
			a.wrote(0)
			m, err := a.stock.MachineV1alpha1().Machines(fixture.Namespace).Get(context.Background(), "c", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(m.Annotations).To(HaveKeyWithValue("machinepriority.machine.sapcloud.io", "2"))
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Annotations).NotTo(HaveKey(api.AppliedExcessAnnotation))
			Expect(d.Spec.ExcessReplicas).To(HaveValue(BeEquivalentTo(1)), "the wish stays")
			Expect(d.Status.Conditions).To(ContainElement(HaveField("Reason", string(plan.Draining))))
		})
	},
		Entry("everywhere", true, "false"),
		Entry("here", false, "true"),
	)

	It("takes a reserve up again when it is not to drain any more", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.patch(`{"metadata":{"annotations":{%q:"true"}}}`, api.DrainReserveAnnotation)
			a.wrote(0)
			a.patch(`{"metadata":{"annotations":{%q:"false"}}}`, api.DrainReserveAnnotation)
			a.wrote(0)
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Annotations).To(HaveKeyWithValue(api.AppliedExcessAnnotation, "1"))
			Expect(d.Annotations).To(HaveKeyWithValue(api.WantedExcessAnnotation, "1"))
		})
	})
})

// deleteSlowly deletes a Machine that a finalizer holds.
func (a *alone) deleteSlowly(name string) {
	GinkgoHelper()
	machines := a.stock.MachineV1alpha1().Machines(fixture.Namespace)
	_, err := machines.Patch(context.Background(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":["machine.sapcloud.io/machine-controller-manager"]}}`), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
	Expect(machines.Delete(context.Background(), name, metav1.DeleteOptions{})).To(Succeed())
	a.wrote(0)
}
