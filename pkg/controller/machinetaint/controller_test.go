// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/fixture"
	"github.com/evenkeel/evenkeel/internal/sim"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
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
			a.taint.ObserveUpdate(d)
			time.Sleep(10 * time.Millisecond)
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
		both := machinetaint.Options{Settings: machinetaint.Settings{Effects: []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}}}
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
		onItsOwn(2, 1, machinetaint.Options{Settings: machinetaint.Settings{Drain: drain}}, func(a *alone) {
			a.patch(`{"metadata":{"annotations":{"evenkeel.machine.sapcloud.io/drain-reserve":%q}}}`, annotation)
			a.wrote(0)
			m, err := a.stock.MachineV1alpha1().Machines(fixture.Namespace).Get(context.Background(), "c", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(m.Annotations).To(HaveKeyWithValue("machinepriority.machine.sapcloud.io", "2"))
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Annotations).NotTo(HaveKey(api.AppliedExcessAnnotation))
			Expect(d.Spec.ExcessReplicas).To(HaveValue(BeEquivalentTo(1)), "the wish stays")
			Expect(d.Status.Conditions).To(ContainElement(HaveField("Reason", string(machinetaint.Draining))))
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

var _ = Describe("What the controller is asked by the lens", func() {
	key := types.NamespacedName{Namespace: fixture.Namespace, Name: "pool"}

	It("a machine is born in reserve where excess is applied and enough serve", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			mark := a.taint.ReserveMark(view.Creation{Deployment: key})
			Expect(mark).NotTo(BeNil())
			Expect(mark.Taints).To(ConsistOf(corev1.Taint{Key: api.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}))
			Expect(mark.Annotations).To(HaveLen(2))
			a.patch(`{"spec":{"replicas":5}}`)
			a.wrote(0)
			Expect(a.taint.ReserveMark(view.Creation{Deployment: key})).To(BeNil(), "three serve and five are wanted")
			inFlight := []view.InProgress{{Name: "x"}, {Name: ""}}
			Expect(a.taint.ReserveMark(view.Creation{Deployment: key, InProgress: inFlight})).NotTo(BeNil(), "with those on their way it is five")
			Expect(a.taint.ReserveMark(view.Creation{Deployment: key, InProgress: []view.InProgress{{Name: "a"}, {Name: "b"}}})).To(BeNil(), "which the store shows already")
			Expect(a.taint.Seen(a.Writes()[0].ResourceVersion)).To(BeTrue())
			Expect(a.taint.Seen("999999")).To(BeFalse())
		})
	})

	It("serves from birth where no excess is applied", func() {
		onItsOwn(2, 0, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			Expect(a.taint.ReserveMark(view.Creation{Deployment: key})).To(BeNil())
			Expect(a.taint.ReserveMark(view.Creation{Deployment: types.NamespacedName{Namespace: "x", Name: "y"}})).To(BeNil())
		})
	})

	It("no machine of the reserve is created while those that leave take its place up to max (I1)", func() {
		onItsOwn(4, 2, machinetaint.Options{}, func(a *alone) {
			a.patch(`{"metadata":{"annotations":{%q:"1:6:1"}}}`, api.BoundsAnnotation)
			a.wrote(0)
			a.deleteSlowly("f")
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Annotations).To(HaveKeyWithValue(api.AppliedExcessAnnotation, "1,max=6"))

			By("raising replicas, while the controller is late to lower the excess")
			a.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == controllerUser && r.Writes() {
					before = time.Hour
				}
				return before, 0
			})
			ask := func() error { return a.taint.Superfluous(view.Creation{Deployment: key, Machine: &mcmapi.Machine{}}) }
			a.patch(`{"spec":{"replicas":5}}`)
			time.Sleep(time.Second)
			Expect(ask()).To(Satisfy(apierrors.IsConflict), "five are there, and one leaves")
			a.patch(`{"spec":{"replicas":6}}`)
			time.Sleep(time.Second)
			Expect(ask()).To(Satisfy(apierrors.IsConflict), "workload waits for a machine of the reserve that leaves")
			_, err = a.stock.MachineV1alpha1().Machines(fixture.Namespace).Patch(context.Background(), "f", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(ask()).To(Succeed())

			By("deleting a machine that serves, which may take hours to drain")
			a.deleteSlowly("a")
			Expect(ask()).To(Succeed(), "workload does not wait for that one")
		})
	})

	It("no machine is created in the place of one of the reserve whose deletion the controller has yet to see (I1)", func() {
		onItsOwn(5, 1, machinetaint.Options{}, func(a *alone) {
			a.patch(`{"spec":{"excessReplicas":0},"metadata":{"annotations":{%q:"1:6"}}}`, api.BoundsAnnotation)
			time.Sleep(time.Hour) // until nothing is remembered of it, as in a process that has just started
			Expect(a.applied()).To(BeEmpty())
			ask := func() error { return a.taint.Superfluous(view.Creation{Deployment: key, Machine: &mcmapi.Machine{}}) }
			a.Hold("machines", controllerUser)
			a.deleteSlowly("f")
			a.patch(`{"spec":{"replicas":6}}`)
			time.Sleep(time.Second)
			Expect(ask()).To(MatchError(ContainSubstring("5 machines stay and 1 leave, and there are to be 6")))
			a.Release("machines", controllerUser)
			time.Sleep(time.Second)
			Expect(ask()).To(Satisfy(apierrors.IsConflict))
			a.Hold("machines", lensUser)
			_, err := a.stock.MachineV1alpha1().Machines(fixture.Namespace).Patch(context.Background(), "f", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(ask()).To(Succeed(), "it is gone, whatever machine-controller-manager's store shows")
		})
	})

	DescribeTable("a machine whose deletion the controller has yet to see is one of the reserve if its priority is that of a victim (I1)", func(priority int, there bool, created bool) {
		onItsOwn(5, 0, machinetaint.Options{}, func(a *alone) {
			a.patch(`{"metadata":{"annotations":{%q:"1:6"}}}`, api.BoundsAnnotation)
			set, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Get(context.Background(), "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			if there {
				a.machine(set, false)
			}
			a.wrote(0)
			a.Hold("machines", controllerUser)
			if !there {
				a.machine(set, false)
			}
			_, err = a.stock.MachineV1alpha1().Machines(fixture.Namespace).Patch(context.Background(), "f", types.MergePatchType,
				fmt.Appendf(nil, `{"metadata":{"annotations":{"machinepriority.machine.sapcloud.io":"%d"}}}`, priority), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			a.deleteSlowly("f")
			a.patch(`{"spec":{"replicas":6}}`)
			time.Sleep(time.Second)
			Expect(a.taint.Superfluous(view.Creation{Deployment: key, Machine: &mcmapi.Machine{}}) == nil).To(Equal(created))
		})
	},
		Entry("a victim that did not have its mark before", 2, true, false),
		Entry("a victim that was not there before", 2, false, false),
		Entry("one that serves", 3, true, true),
		Entry("one that serves and was not there before", 3, false, true),
		Entry("one that is named", 1, true, true),
	)

	It("no machine is created for a rollout that only the controller still sees", func() {
		onItsOwn(4, 2, machinetaint.Options{}, func(a *alone) {
			ctx, sets := context.Background(), a.stock.MachineV1alpha1().MachineSets(fixture.Namespace)
			ask := func() error { return a.taint.Superfluous(view.Creation{Deployment: key, Machine: &mcmapi.Machine{}}) }
			a.wrote(0)
			Expect(ask()).To(Satisfy(apierrors.IsConflict))
			set, err := sets.Get(ctx, "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			next := &mcmapi.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "pool-2", Namespace: set.Namespace, Labels: set.Labels, OwnerReferences: set.OwnerReferences}, Spec: set.Spec}
			next.Spec.Replicas = 1
			_, err = sets.Create(ctx, next, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(ask()).To(Succeed())
			a.Hold("machinesets", controllerUser)
			_, err = sets.Patch(ctx, "pool-2", types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(ask()).To(Satisfy(apierrors.IsConflict))
		})
	})

	DescribeTable("machines that leave take the place of new ones up to max (I1)", func(staying, leaving, leavingReserve, workload int, full bool) {
		const limit = 6
		Expect(machinetaint.Full(staying, leaving, leavingReserve, workload, limit)).To(Equal(full))
	},
		Entry("none leaves, and there is room", 5, 0, 0, 4, false),
		Entry("none leaves, and there is no room", 6, 0, 0, 4, true),
		Entry("none leaves, and workload has what it needs", 6, 0, 0, 6, true),
		Entry("none leaves, and workload needs the last one", 5, 0, 0, 6, false),
		Entry("room for one more of the reserve", 4, 1, 1, 4, false),
		Entry("no room for one more of the reserve", 5, 1, 1, 4, true),
		Entry("nor where the one that leaves serves", 5, 1, 0, 4, true),
		Entry("nor where workload has exactly what it needs", 5, 1, 0, 5, true),
		Entry("workload waits for a machine of the reserve", 5, 1, 1, 6, true),
		Entry("workload does not wait for one that serves", 5, 1, 0, 6, false),
		Entry("workload waits for those of the reserve alone", 4, 2, 1, 6, false),
		Entry("workload beyond max waits for none", 5, 1, 1, 7, false),
	)

	It("no machine is created beyond what machine-controller-manager is shown, also before the controller sees that", func() {
		onItsOwn(4, 2, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ask := func() error { return a.taint.Superfluous(view.Creation{Deployment: key, Machine: &mcmapi.Machine{}}) }
			a.Hold("machinedeployments", controllerUser)
			a.patch(`{"spec":{"replicas":6}}`) // nothing adds the excess to what is shown here
			time.Sleep(time.Second)
			Expect(ask()).To(Satisfy(apierrors.IsConflict))
			a.patch(`{"spec":{"replicas":7}}`)
			time.Sleep(time.Second)
			Expect(ask()).To(Succeed())
		})
	})

	It("no machine is created beyond max before the excess falls to it (I1)", func() {
		onItsOwn(4, 2, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			Expect(a.applied()).To(Equal("2"))
			a.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == controllerUser && r.Writes() {
					before = time.Hour
				}
				return before, 0
			})
			ask := func() error { return a.taint.Superfluous(view.Creation{Deployment: key, Machine: &mcmapi.Machine{}}) }
			a.patch(`{"spec":{"replicas":6},"metadata":{"annotations":{%q:"1:6"}}}`, api.BoundsAnnotation)
			time.Sleep(time.Second)
			Expect(ask()).To(Satisfy(apierrors.IsConflict), "six are there, and eight are shown")
			a.patch(`{"spec":{"replicas":7}}`)
			time.Sleep(time.Second)
			Expect(ask()).To(Succeed(), "workload beyond max waits for none")
		})
	})

	It("no machine is created in place of one that was named, in the moment before the excess is applied for which there was no room (I3)", func() {
		onItsOwn(6, 0, machinetaint.Options{}, func(a *alone) {
			a.patch(`{"metadata":{"annotations":{%q:"1:6:2"}}}`, api.BoundsAnnotation)
			a.wrote(0)
			a.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == controllerUser && r.Writes() {
					before = time.Hour
				}
				return before, 0
			})
			ask := func() error { return a.taint.Superfluous(view.Creation{Deployment: key, Machine: &mcmapi.Machine{}}) }
			Expect(a.stock.MachineV1alpha1().Machines(fixture.Namespace).Delete(context.Background(), "a", metav1.DeleteOptions{})).To(Succeed())
			time.Sleep(time.Second)
			Expect(ask()).To(Succeed(), "workload needs it")
			a.patch(`{"spec":{"replicas":5}}`)
			time.Sleep(time.Second)
			Expect(ask()).To(Satisfy(apierrors.IsConflict))
			Expect(a.applied()).To(BeEmpty())
		})
	})

	It("a machine that leaves holds nothing back where there is no reserve", func() {
		onItsOwn(5, 0, machinetaint.Options{}, func(a *alone) {
			a.patch(`{"metadata":{"annotations":{%q:"1:6"}}}`, api.BoundsAnnotation)
			a.wrote(0)
			a.deleteSlowly("a")
			Expect(a.taint.Superfluous(view.Creation{Deployment: key, Machine: &mcmapi.Machine{}, InProgress: []view.InProgress{{}}})).To(Succeed())
		})
	})

	It("no machine is created that was decided for an excess that has just been reduced to nothing", func() {
		onItsOwn(4, 2, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ask := func() error { return a.taint.Superfluous(view.Creation{Deployment: key, Machine: &mcmapi.Machine{}}) }
			a.patch(`{"spec":{"excessReplicas":0}}`)
			time.Sleep(time.Second)
			Expect(a.applied()).To(BeEmpty())
			Expect(ask()).To(Satisfy(apierrors.IsConflict))
			a.patch(`{"metadata":{"annotations":{%q:"1:6"}}}`, api.BoundsAnnotation)
			time.Sleep(time.Hour)
			Expect(ask()).To(Satisfy(apierrors.IsConflict), "while machines of the reserve are there")
			for _, name := range []string{"e", "f"} {
				Expect(a.stock.MachineV1alpha1().Machines(fixture.Namespace).Delete(context.Background(), name, metav1.DeleteOptions{})).To(Succeed())
			}
			a.wrote(0)
			Expect(ask()).To(Succeed(), "without a reserve, that is left to machine-controller-manager")
		})
	})

	It("a MachineSet shrinks only by decision on the excess applied now", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			set, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Get(context.Background(), "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			ask := func(replicas int32, decidedFor string) error {
				after := set.DeepCopy()
				after.Spec.Replicas, after.Annotations = replicas, map[string]string{"deployment.kubernetes.io/desired-replicas": decidedFor}
				ended, err := a.taint.Guards().Shrink(after)
				if err == nil {
					ended(after, nil)
				}
				return err
			}
			Expect(ask(2, "2")).To(Satisfy(apierrors.IsConflict))
			Expect(ask(3, "2")).To(Succeed(), "that is no shrink")
			Expect(ask(2, "3")).To(Succeed(), "a rollout")
		})
	})

	It("a MachineSet does not grow by what was decided before the excess fell, nor does that fall below what is created", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			set, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Get(context.Background(), "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			grow := func(decidedFor string) (func(*mcmapi.MachineSet, error), error) {
				after := set.DeepCopy()
				after.Spec.Replicas, after.Annotations = 4, map[string]string{"deployment.kubernetes.io/desired-replicas": decidedFor}
				return a.taint.Guards().Shrink(after)
			}
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			ended, err := grow("3")
			Expect(err).NotTo(HaveOccurred())
			_, err = a.taint.Reduce(d, 2, 3)
			Expect(err).To(Satisfy(apierrors.IsConflict), "four may be asked for")
			ended(nil, apierrors.NewConflict(mcmapi.Resource("machinesets"), "pool-1", nil))
			above, err := a.taint.Reduce(d, 5, 9)
			Expect(err).NotTo(HaveOccurred())
			_, err = grow("4")
			Expect(err).To(Satisfy(apierrors.IsConflict), "three are shown by now")
			above(apierrors.NewConflict(mcmapi.Resource("machinedeployments"), "pool", nil))
			reduced, err := a.taint.Reduce(d, 2, 3)
			Expect(err).NotTo(HaveOccurred())
			_, err = grow("3")
			Expect(err).To(Satisfy(apierrors.IsConflict))
			reduced(errors.New("the connection broke"))
			a.patch(`{"metadata":{"annotations":{%q:null}},"spec":{"excessReplicas":0,"replicas":2}}`, api.AppliedExcessAnnotation)
			time.Sleep(time.Second) // both stores show that
			_, err = grow("4")
			Expect(err).To(Satisfy(apierrors.IsConflict), "what was read then may be written now")
			time.Sleep(3 * time.Minute)
			_, err = grow("4")
			Expect(err).NotTo(HaveOccurred())
		})
	})

	It("a MachineSet grows for replicas that so far only machine-controller-manager has been shown, also after the excess fell", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			set, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Get(context.Background(), "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			grow := func() error {
				after := set.DeepCopy()
				after.Spec.Replicas, after.Annotations = 6, map[string]string{"deployment.kubernetes.io/desired-replicas": "6"}
				_, err := a.taint.Guards().Shrink(after)
				return err
			}
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			reduced, err := a.taint.Reduce(d, 3, 3)
			Expect(err).NotTo(HaveOccurred())
			reduced(nil)
			Expect(grow()).To(Satisfy(apierrors.IsConflict))
			a.Hold("machinedeployments", controllerUser)
			a.patch(`{"spec":{"replicas":5}}`)
			time.Sleep(time.Second)
			Expect(grow()).To(Succeed())
		})
	})

	DescribeTable("a MachineSet does not grow again in a rollout before its last growth is counted",
		func(want bool, counted, replicas, old, present int32, surge string, excess int) {
			onItsOwn(3, excess, machinetaint.Options{}, func(a *alone) {
				a.wrote(0)
				ctx, sets := context.Background(), a.stock.MachineV1alpha1().MachineSets(fixture.Namespace)
				a.patch(`{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":%s,"maxUnavailable":1}}}}`, surge)
				first, err := sets.Patch(ctx, "pool-1", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, old), metav1.PatchOptions{})
				Expect(err).NotTo(HaveOccurred())
				_, err = sets.Patch(ctx, "pool-1", types.MergePatchType, fmt.Appendf(nil, `{"status":{"replicas":%d}}`, present), metav1.PatchOptions{}, "status")
				Expect(err).NotTo(HaveOccurred())
				second := &mcmapi.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "pool-2", OwnerReferences: first.OwnerReferences}, Spec: first.Spec}
				second.Spec.Replicas = 2
				_, err = sets.Create(ctx, second, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				second, err = sets.Patch(ctx, "pool-2", types.MergePatchType, fmt.Appendf(nil, `{"status":{"replicas":%d}}`, counted), metav1.PatchOptions{}, "status")
				Expect(err).NotTo(HaveOccurred())
				time.Sleep(time.Second)
				after := second.DeepCopy()
				after.Spec.Replicas, after.Annotations = replicas, map[string]string{"deployment.kubernetes.io/desired-replicas": fmt.Sprint(3 + excess)}
				_, err = a.taint.Guards().Shrink(after)
				if want {
					Expect(err).NotTo(HaveOccurred())
				} else {
					Expect(err).To(MatchError(ContainSubstring("are not counted yet")))
					Expect(err).To(Satisfy(apierrors.IsConflict))
				}
			})
		},
		Entry("beyond the total", false, int32(1), int32(3), int32(3), int32(3), "0", 2),
		Entry("beyond the total and the surge", false, int32(1), int32(4), int32(3), int32(3), "1", 2),
		Entry("beyond the total and a surge in percent", false, int32(1), int32(4), int32(3), int32(3), `"20%"`, 2),
		Entry("beyond the total, with a machine that leaves", false, int32(1), int32(3), int32(2), int32(3), "0", 2),
		Entry("beyond the total, with a machine that is still to be created", false, int32(1), int32(3), int32(3), int32(2), "0", 2),
		Entry("but within the surge", true, int32(1), int32(3), int32(3), int32(3), "1", 2),
		Entry("but within a surge in percent", true, int32(1), int32(3), int32(3), int32(3), `"20%"`, 2),
		Entry("but within the total", true, int32(1), int32(3), int32(2), int32(2), "0", 2),
		Entry("but its status counts them all", true, int32(2), int32(3), int32(3), int32(3), "0", 2),
		Entry("but there is no other", true, int32(1), int32(6), int32(0), int32(0), "0", 2),
		Entry("but without a reserve", true, int32(1), int32(3), int32(3), int32(3), "0", 0),
	)

	It("a MachineSet that is being resized may still ask for what it did", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ctx := context.Background()
			set, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Get(ctx, "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			set.Spec.Replicas = 2
			_, err = a.taint.Guards().Shrink(set)
			Expect(err).NotTo(HaveOccurred())
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(ctx, "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			_, err = a.taint.Reduce(d, 2, 2)
			Expect(err).To(Satisfy(apierrors.IsConflict))
			_, err = a.taint.Reduce(d, 2, 3)
			Expect(err).NotTo(HaveOccurred())
		})
	})

	It("a MachineSet may still ask for what an earlier resize of unknown outcome asked for", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ctx := context.Background()
			set, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Get(ctx, "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(ctx, "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			resize := func(replicas int32) (ended func(*mcmapi.MachineSet, error)) {
				after := set.DeepCopy()
				after.Spec.Replicas = replicas
				ended, err := a.taint.Guards().Shrink(after)
				Expect(err).NotTo(HaveOccurred())
				return ended
			}
			resize(4)(nil, errors.New("the connection broke"))
			resize(2)
			_, err = a.taint.Reduce(d, 2, 3)
			Expect(err).To(Satisfy(apierrors.IsConflict), "the first may have taken effect, and the second is under way")
			_, err = a.taint.Reduce(d, 2, 4)
			Expect(err).NotTo(HaveOccurred())
		})
	})

	It("a MachineSet no longer asks for what a resize of unknown outcome asked for, once no request can be under way", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ctx := context.Background()
			set, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Get(ctx, "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(ctx, "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			set.Spec.Replicas = 4
			ended, err := a.taint.Guards().Shrink(set)
			Expect(err).NotTo(HaveOccurred())
			ended(nil, errors.New("the connection broke"))
			reduce := func() error { _, err := a.taint.Reduce(d, 2, 3); return err }
			time.Sleep(119 * time.Second)
			Expect(reduce()).To(Satisfy(apierrors.IsConflict))
			time.Sleep(2 * time.Second)
			Expect(reduce()).To(Succeed())
		})
	})

	It("a machine does not go while it leaves the reserve", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ask := func() error { _, _, err := a.taint.Guards().Remove(fixture.Namespace, "c"); return err }
			_, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Patch(context.Background(), "pool-1", types.MergePatchType, []byte(`{"spec":{"replicas":2}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			a.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == controllerUser && r.Verb == "patch" && r.Resource == "nodes" {
					return 0, time.Second
				}
				return 0, 0
			})
			a.patch(`{"spec":{"replicas":3}}`)
			time.Sleep(500 * time.Millisecond)
			Expect(ask()).To(Satisfy(apierrors.IsConflict))
			time.Sleep(time.Minute)
			Expect(ask()).To(Satisfy(apierrors.IsConflict), "it serves now, and is needed")
			a.patch(`{"spec":{"template":{"spec":{"class":{"name":"other"}}}}}`)
			a.wrote(0)
			Expect(ask()).To(Succeed(), "a rollout replaces it, at its new version")
		})
	})

	It("a machine is not put in reserve where replicas grow before the one that takes its place has left it", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ctx, machines := context.Background(), a.stock.MachineV1alpha1().Machines(fixture.Namespace)
			set, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Get(ctx, "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			booting := a.machine(set, false)
			_, err = machines.Patch(ctx, booting, types.MergePatchType, []byte(`{"status":{"currentStatus":{"phase":"Pending"}}}`), metav1.PatchOptions{}, "status")
			Expect(err).NotTo(HaveOccurred())
			Expect(a.core.CoreV1().Nodes().Delete(ctx, booting, metav1.DeleteOptions{})).To(Succeed())
			a.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == controllerUser && r.Verb == "patch" && r.Resource == "nodes" {
					return time.Second, 0
				}
				return 0, 0
			})
			since := len(a.Writes())
			a.patch(`{"spec":{"replicas":3}}`)
			time.Sleep(500 * time.Millisecond)
			a.patch(`{"spec":{"replicas":4}}`)
			Expect(a.wrote(since)).NotTo(ContainElement(ContainSubstring("machines " + booting)))
			m, err := machines.Get(ctx, "c", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(m.Annotations).NotTo(HaveKey(api.ReserveAnnotation), "the one that takes its place")
		})
	})

	It("a machine that serves goes only at the version that was seen, after a reduction of the excess that may be the reason (I3)", func() {
		onItsOwn(3, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ctx, machines := context.Background(), a.stock.MachineV1alpha1().Machines(fixture.Namespace)
			ask := func() (version string) {
				version, ended, err := a.taint.Guards().Remove(fixture.Namespace, "a")
				Expect(err).NotTo(HaveOccurred())
				ended(apierrors.NewConflict(mcmapi.Resource("machines"), "a", nil))
				return version
			}
			a.patch(`{"spec":{"excessReplicas":0}}`)
			time.Sleep(time.Second)
			Expect(a.applied()).To(BeEmpty())
			Expect(machines.Delete(ctx, "d", metav1.DeleteOptions{})).To(Succeed())
			_, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Patch(ctx, "pool-1", types.MergePatchType, []byte(`{"spec":{"replicas":2}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			a.patch(`{"spec":{"replicas":2}}`)
			time.Sleep(time.Second)
			m, err := machines.Get(ctx, "a", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(ask()).To(Equal(m.ResourceVersion))
			time.Sleep(3 * time.Minute)
			Expect(ask()).To(BeEmpty(), "that is left to machine-controller-manager")
		})
	})

	It("a machine that serves does not go in addition to one that was named (I3)", func() {
		onItsOwn(3, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			a.patch(`{"spec":{"replicas":2},"metadata":{"annotations":{%q:"a~%s"}}}`, machineutils.TriggerDeletionByMCM, time.Now().UTC().Format(time.RFC3339))
			_, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Patch(context.Background(), "pool-1", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			ask := func(name string) error { _, _, err := a.taint.Guards().Remove(fixture.Namespace, name); return err }
			Expect(ask("b")).To(Satisfy(apierrors.IsConflict), "two serve without a, and two are needed")
			Expect(ask("a")).To(Succeed())
		})
	})

	DescribeTable("a machine in reserve that was named goes once replicas are restored for it, though more than these serve", func(late func(a *alone) (end func())) {
		onItsOwn(3, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ask := func() error {
				_, ended, err := a.taint.Guards().Remove(fixture.Namespace, "d")
				if err == nil {
					ended(apierrors.NewConflict(mcmapi.Resource("machines"), "d", nil))
				}
				return err
			}
			end := late(a)
			a.patch(`{"spec":{"replicas":1},"metadata":{"annotations":{%q:"d~%s"}}}`, machineutils.TriggerDeletionByMCM, time.Now().UTC().Format(time.RFC3339))
			time.Sleep(time.Second)
			Expect(a.deployment().Spec.Replicas).To(Equal(int32(1)))
			_, err := a.stock.MachineV1alpha1().Machines(fixture.Namespace).Patch(context.Background(), "d", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"1",%q:"now"}}}`, machineutils.MachinePriority, machineutils.MarkedForDeletionTime), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(ask()).To(Satisfy(apierrors.IsConflict))
			end()
			time.Sleep(time.Minute)
			Expect(a.deployment().Spec.Replicas).To(Equal(int32(2)))
			Expect(ask()).To(Succeed())
		})
	},
		Entry("while the controller does not see its name", func(a *alone) func() {
			a.Hold("machinedeployments", controllerUser)
			return func() { a.Release("machinedeployments", controllerUser) }
		}),
		Entry("while it cannot restore them", func(a *alone) func() {
			down := true
			a.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if down && r.User == controllerUser && r.Verb == "patch" && r.Resource == "machinedeployments" {
					return 10 * time.Second, 0
				}
				return 0, 0
			})
			return func() { down = false }
		}),
	)

	It("a machine in reserve that was named goes at once from a frozen MachineSet, which must lose machines", func() {
		onItsOwn(3, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ctx, machines, sets := context.Background(), a.stock.MachineV1alpha1().Machines(fixture.Namespace), a.stock.MachineV1alpha1().MachineSets(fixture.Namespace)
			ask := func() error { _, _, err := a.taint.Guards().Remove(fixture.Namespace, "d"); return err }
			a.Hold("machinedeployments", controllerUser)
			a.patch(`{"spec":{"replicas":1},"metadata":{"annotations":{%q:"d~%s"}}}`, machineutils.TriggerDeletionByMCM, time.Now().UTC().Format(time.RFC3339))
			_, err := machines.Patch(ctx, "d", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"1",%q:"now"}}}`, machineutils.MachinePriority, machineutils.MarkedForDeletionTime), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(ask()).To(Satisfy(apierrors.IsConflict))
			_, err = sets.Patch(ctx, "pool-1", types.MergePatchType, []byte(`{"metadata":{"labels":{"freeze":"True"}}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(ask()).To(Succeed())
			a.Release("machinedeployments", controllerUser)
		})
	})

	It("a machine that serves does not go before those in reserve where all annotations were lost", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			a.Hold("machines", controllerUser, lensUser)
			a.patch(`{"spec":{"excessReplicas":null},"metadata":{"annotations":null}}`)
			time.Sleep(10 * time.Millisecond)
			ask := func(name string) error { _, _, err := a.taint.Guards().Remove(fixture.Namespace, name); return err }
			Expect(ask("a")).To(Satisfy(apierrors.IsConflict))
			Expect(ask("c")).To(Satisfy(apierrors.IsConflict), "three are still wanted")
			_, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Patch(context.Background(), "pool-1", types.MergePatchType,
				[]byte(`{"metadata":{"annotations":{"deployment.kubernetes.io/desired-replicas":"2"}},"spec":{"replicas":2}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(ask("a")).To(Satisfy(apierrors.IsConflict))
			Expect(ask("c")).To(Satisfy(apierrors.IsConflict), "the excess falls only when it is seen that c goes first")
			a.Release("machines", controllerUser, lensUser)
			time.Sleep(time.Second)
			Expect(ask("c")).To(Succeed())
		})
	})

	It("counts a machine out from when its removal begins until the store shows it, unless that was refused", func() {
		onItsOwn(4, 1, machinetaint.Options{}, func(a *alone) {
			a.patch(`{"spec":{"template":{"spec":{"class":{"name":"other"}}}}}`) // a rollout replaces all of them
			a.wrote(0)
			resize := func(replicas int) {
				_, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Patch(context.Background(), "pool-1", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{})
				Expect(err).NotTo(HaveOccurred())
				time.Sleep(time.Second)
			}
			resize(4)
			a.Hold("machines", controllerUser, lensUser)
			remove := a.taint.Guards().Remove
			_, ended, err := remove(fixture.Namespace, "a")
			Expect(err).NotTo(HaveOccurred())
			ended(apierrors.NewConflict(mcmapi.Resource("machines"), "a", nil))
			_, ended, err = remove(fixture.Namespace, "b")
			Expect(err).NotTo(HaveOccurred(), "the first was refused")
			Expect(a.stock.MachineV1alpha1().Machines(fixture.Namespace).Delete(context.Background(), "b", metav1.DeleteOptions{})).To(Succeed())
			ended(nil)
			_, _, err = remove(fixture.Namespace, "c")
			Expect(err).To(Satisfy(apierrors.IsConflict), "one of five has gone, though the store does not show it")
			_, _, err = remove(fixture.Namespace, "b")
			Expect(err).NotTo(HaveOccurred(), "it is the one that goes")
			resize(3)
			_, ended, err = remove(fixture.Namespace, "c")
			Expect(err).NotTo(HaveOccurred())
			ended(errors.New("the connection broke"))
			_, _, err = remove(fixture.Namespace, "d")
			Expect(err).To(Satisfy(apierrors.IsConflict), "the third may have gone")
			time.Sleep(3 * time.Minute)
			_, ended, err = remove(fixture.Namespace, "d")
			Expect(err).NotTo(HaveOccurred(), "it would have been seen by now")
			ended(apierrors.NewGenericServerResponse(http.StatusNotFound, "delete", mcmapi.Resource("machines"), "d", "no such page", 0, true))
			_, _, err = remove(fixture.Namespace, "e")
			Expect(err).To(Satisfy(apierrors.IsConflict), "a proxy does not know whether the fourth has gone")
			time.Sleep(3 * time.Minute)
			_, _, err = remove(fixture.Namespace, "e")
			Expect(err).NotTo(HaveOccurred(), "it would have been seen by now, too")
			a.Release("machines", controllerUser, lensUser)
		})
	})

	It("a machine stays while its MachineSet asks for what was decided before the excess was applied, unless that is frozen", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ask := func(replicas int, decidedFor, frozen string) error {
				_, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Patch(context.Background(), "pool-1", types.MergePatchType, fmt.Appendf(nil,
					`{"metadata":{"annotations":{"deployment.kubernetes.io/desired-replicas":%q},"labels":{"freeze":%q}},"spec":{"replicas":%d}}`, decidedFor, frozen, replicas), metav1.PatchOptions{})
				Expect(err).NotTo(HaveOccurred())
				time.Sleep(time.Second)
				_, ended, err := a.taint.Guards().Remove(fixture.Namespace, "a")
				if err == nil {
					ended(apierrors.NewConflict(mcmapi.Resource("machines"), "a", nil))
				}
				return err
			}
			Expect(ask(2, "2", "")).To(Satisfy(apierrors.IsConflict))
			Expect(ask(2, "3", "")).To(Satisfy(apierrors.IsConflict), "both that serve are needed, and the third is in reserve")
			Expect(ask(2, "2", "True")).To(Succeed(), "it is written again only when it has lost machines")
			a.patch(`{"spec":{"template":{"spec":{"class":{"name":"other"}}}}}`)
			Expect(ask(2, "3", "")).To(Succeed(), "a rollout replaces it")
		})
	})

	It("a machine goes whose MachineSet is being deleted", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ctx, sets := context.Background(), a.stock.MachineV1alpha1().MachineSets(fixture.Namespace)
			ask := func() error { _, _, err := a.taint.Guards().Remove(fixture.Namespace, "a"); return err }
			Expect(ask()).To(Satisfy(apierrors.IsConflict))
			_, err := sets.Patch(ctx, "pool-1", types.MergePatchType, []byte(`{"metadata":{"finalizers":["machine.sapcloud.io/machine-controller-manager"]}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(sets.Delete(ctx, "pool-1", metav1.DeleteOptions{})).To(Succeed())
			time.Sleep(time.Second)
			Expect(ask()).To(Succeed())
		})
	})

	It("of the machines that serve only those go that workload does not need, one after the other", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			a.Hold("machines", lensUser)
			a.patch(`{"spec":{"replicas":1}}`)
			_, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Patch(context.Background(), "pool-1", types.MergePatchType,
				[]byte(`{"metadata":{"annotations":{"deployment.kubernetes.io/desired-replicas":"2"}},"spec":{"replicas":1}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			_, ended, err := a.taint.Guards().Remove(fixture.Namespace, "a")
			Expect(err).NotTo(HaveOccurred(), "two serve")
			ended(nil)
			_, _, err = a.taint.Guards().Remove(fixture.Namespace, "b")
			Expect(err).To(Satisfy(apierrors.IsConflict), "the first goes, though no store shows it")
			_, _, err = a.taint.Guards().Remove(fixture.Namespace, "a")
			Expect(err).NotTo(HaveOccurred(), "it is the one that goes, and is asked for again")
			a.Release("machines", lensUser)
		})
	})

	It("a machine goes only while there are more than its MachineSet asks for, or by itself", func() {
		onItsOwn(2, 3, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ask := func(name string) error { _, _, err := a.taint.Guards().Remove(fixture.Namespace, name); return err }
			Expect(ask("a")).To(Satisfy(apierrors.IsConflict))
			m, err := a.stock.MachineV1alpha1().Machines(fixture.Namespace).Get(context.Background(), "a", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			m.Status.CurrentStatus.Phase = mcmapi.MachineFailed
			_, err = a.stock.MachineV1alpha1().Machines(fixture.Namespace).UpdateStatus(context.Background(), m, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(ask("a")).To(Succeed())
			_, err = a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Patch(context.Background(), "pool-1", types.MergePatchType, []byte(`{"spec":{"replicas":4}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(ask("b")).To(Satisfy(apierrors.IsConflict), "it serves, and a does not")
			Expect(ask("d")).To(Succeed())
			Expect(ask("e")).To(Satisfy(apierrors.IsConflict), "one of five is on its way")
		})
	})
})
