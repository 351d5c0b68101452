// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// aboutMachine ends an event about a Machine.
const aboutMachine = `involvedObject\{kind=Machine,apiVersion=machine.sapcloud.io/v1alpha1\}$`

var _ = Describe("The controller", func() {
	none := machinetaint.Settings{}

	It("writes the status of a reserve at rest, and then nothing", func() {
		onItsOwn(2, 2, none, func(a *alone) {
			Expect(a.heard()).To(ConsistOf(ContainSubstring("Normal ReserveHeld 2 of 2 machines serve, 2 of 2 in reserve, 2 of these ready")))
			Expect(a.counted("evenkeel_reserve_machines")).To(BeEquivalentTo(2))
			selector, err := metav1.LabelSelectorAsSelector(a.deployment().Spec.Selector)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.deployment().Status.Selector).To(Equal(selector.String()))
			since := len(a.Writes())
			time.Sleep(24 * time.Hour)
			Expect(a.wrote(since)).To(BeEmpty())
		})
	})

	It("writes nothing at all where there is no excess", func() {
		onItsOwn(3, 0, none, func(a *alone) {
			a.patch(`{"metadata":{"annotations":{"their":"own"}}}`)
			Expect(a.wrote(0)).To(HaveEach("machinesets pool-1"), "which gets the annotation, too")
			Expect(a.heard()).To(BeEmpty())
		})
	})

	It("says on a Machine that the taint is on its Node as soon as that has registered", func() {
		onItsOwn(2, 1, none, func(a *alone) {
			ctx := context.Background()
			state := func() string {
				m := a.stored("c")
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
			Expect(a.wrote(since)).To(ConsistOf("machines c", "machinesets pool-1 status", "machinedeployments pool status"))
			m := a.stored("c")
			Expect(m.Annotations).To(HaveKeyWithValue(api.ReserveStateAnnotation, HaveSuffix("node c carries the reserve taint")))
		})
	})

	It("writes the status at most once a second while machines change, and then the final one", func() {
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
			Expect(slices.DeleteFunc(a.wrote(since), isOther)).To(HaveLen(4), "at once, with another reason, after a second, and at the end")
			Expect(a.deployment().Status.ReadyExcessReplicas).To(BeZero())
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
		both := machinetaint.Settings{Effects: []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}}
		onItsOwn(2, 1, both, func(a *alone) {
			a.wrote(0)
			node, err := a.core.CoreV1().Nodes().Get(context.Background(), "c", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(node.Spec.Taints).To(ConsistOf(HaveField("Effect", corev1.TaintEffectNoSchedule), HaveField("Effect", corev1.TaintEffectNoExecute)))
			m := a.stored("c")
			Expect(m.Spec.NodeTemplateSpec.Spec.Taints).To(HaveLen(2))
		})
	})

	DescribeTable("gives a reserve up when it is to drain", func(drain bool, annotation string) {
		onItsOwn(2, 1, machinetaint.Settings{Drain: drain}, func(a *alone) {
			a.patch(`{"metadata":{"annotations":{"evenkeel.machine.sapcloud.io/drain-reserve":%q}}}`, annotation)
			a.wrote(0)
			_, err := a.stock.MachineV1alpha1().Machines(fixture.Namespace).Get(context.Background(), "c", metav1.GetOptions{})
			Expect(err).To(Satisfy(apierrors.IsNotFound))
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Annotations).NotTo(HaveKey(api.AppliedExcessAnnotation))
			Expect(d.Spec.ExcessReplicas).To(HaveValue(BeEquivalentTo(1)), "the wish stays")
			Expect(d.Status.Conditions).NotTo(ContainElement(HaveField("Type", api.ReserveReady)))
		})
	},
		Entry("everywhere", true, "false"),
		Entry("here", false, "true"),
	)

	It("takes a reserve up again when it is not to drain any more", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
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

var _ = Describe("The controller", func() {
	none := machinetaint.Settings{}

	It("does not overwrite, from a store that is late, what a user has set meanwhile", func() {
		onItsOwn(2, 1, none, func(a *alone) {
			a.wrote(0)
			a.Lag("machinedeployments", sim.Constantly(100*time.Millisecond), controllerUser)
			a.patch(`{"spec":{"excessReplicas":null,"reserveWitness":null}}`)
			time.Sleep(50 * time.Millisecond)
			a.patch(`{"spec":{"excessReplicas":0}}`)
			a.wrote(0)
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Spec.ExcessReplicas).To(HaveValue(BeEquivalentTo(0)))
		})
	})

	It("restores a field that a client that does not know it has dropped, and leaves an explicit 0", func() {
		onItsOwn(2, 1, none, func(a *alone) {
			a.wrote(0)
			a.heard()
			a.stockScales(3)
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

	It("takes a field that a user has removed for 0", func() {
		onItsOwn(2, 1, none, func(a *alone) {
			a.wrote(0)
			a.stockScales(3)
			a.wrote(0)
			a.heard()
			a.patch(`{"spec":{"excessReplicas":null}}`)
			a.wrote(0)
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Spec.ExcessReplicas).To(BeNil())
			Expect(d.Spec.ReserveWitness).To(BeFalse())
			Expect(d.Annotations).NotTo(HaveKey(api.WantedExcessAnnotation))
			Expect(a.heard()).To(ContainElement("Normal ExcessRemoved spec.excessReplicas was removed, so no excess is requested"))
			Expect(a.counted("evenkeel_reserve_restorations_total")).To(BeEquivalentTo(1), "the one before")
		})
	})

	It("restores a field whoever removes it where the API server drops its witness, and says so", func() {
		onServer(pruning("excessReplicas"), 2, 1, none, func(a *alone) {
			for range 2 {
				a.wrote(0)
				d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(d.Spec.ExcessReplicas).To(HaveValue(BeEquivalentTo(1)))
				Expect(d.Status.Conditions).To(ContainElement(HaveField("Message", ContainSubstring("does not store spec.reserveWitness"))))
				since := len(a.Writes())
				time.Sleep(24 * time.Hour)
				Expect(a.wrote(since)).To(BeEmpty())
				a.patch(`{"spec":{"excessReplicas":null}}`)
			}
			a.wrote(0)
			Expect(a.counted("evenkeel_reserve_restorations_total")).To(BeEquivalentTo(2))
		})
	})

	It("reports the numbers of machines where the API server drops the selector", func() {
		kinds := pruning("excessReplicas", "reserveWitness")
		for _, kind := range kinds {
			if kind.Known != nil {
				kind.Known.Status = append(kind.Known.Status, "excessReplicas", "readyExcessReplicas")
			}
		}
		onServer(kinds, 2, 2, none, func(a *alone) {
			a.wrote(0)
			Expect(a.deployment().Status.ExcessReplicas).To(BeEquivalentTo(2))
			since := len(a.Writes())
			a.patch(`{"metadata":{"annotations":{"a-user":"was-here"}}}`)
			Expect(a.wrote(since)).To(Equal([]string{"machinesets pool-1"}), "which gets the annotation, too")
			a.deleteSlowly("d")
			a.wrote(0)
			Expect(a.deployment().Status.ExcessReplicas).To(BeEquivalentTo(1))
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

	DescribeTable("writes what the API server dropped once it has the CustomResourceDefinitions of this release, and", func(change func(a *alone)) {
		kinds := pruning()
		onServer(kinds, 2, 2, none, func(a *alone) {
			a.wrote(0)
			Expect(a.deployment().Status).To(And(HaveField("ExcessReplicas", BeZero()), HaveField("Selector", BeEmpty())))
			install(kinds)
			change(a)
			a.wrote(0)
			d := a.deployment()
			Expect(d.Spec).To(And(HaveField("ExcessReplicas", HaveValue(BeEquivalentTo(2))), HaveField("ReserveWitness", BeTrue())))
			Expect(d.Status).To(And(HaveField("ExcessReplicas", BeNumerically(">", 0)), HaveField("Selector", Not(BeEmpty()))))
			Expect(machinetaint.Condition(d).Message).NotTo(ContainSubstring("does not store"))
			since := len(a.Writes())
			time.Sleep(24 * time.Hour)
			Expect(a.wrote(since)).To(BeEmpty())
		})
	},
		Entry("a user has set the field again", func(a *alone) { a.patch(`{"spec":{"excessReplicas":2}}`) }),
		Entry("there is something else to report", func(a *alone) { a.deleteSlowly("d") }),
	)

	It("takes the witness of the field for stored once it shows, though the API server dropped it", func() {
		kinds := pruning("excessReplicas")
		for _, kind := range kinds {
			if kind.Known != nil {
				kind.Known.Status = append(kind.Known.Status, "excessReplicas", "readyExcessReplicas", "selector")
			}
		}
		onServer(kinds, 2, 1, none, func(a *alone) {
			a.wrote(0)
			Expect(a.deployment().Spec.ReserveWitness).To(BeFalse())
			install(kinds)
			a.patch(`{"spec":{"reserveWitness":true}}`)
			a.wrote(0)
			Expect(a.deployment().Spec.ReserveWitness).To(BeTrue())
			Expect(machinetaint.Condition(a.deployment()).Message).NotTo(ContainSubstring("does not store"))
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
})

var _ = Describe("A reserve of a MachineDeployment that has no replicas, and would include it", func() {
	It("comes and goes with the replicas of all others, though nothing else happens", func() {
		onItsOwn(0, 0, machinetaint.Settings{}, func(a *alone) {
			world.Create(a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace), poolOf("other"))
			scale := func(replicas int) {
				_, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Patch(context.Background(), "other", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			a.patch(`{"spec":{"excessReplicas":2},"metadata":{"annotations":{%q:"Inclusive"}}}`, api.AccountingAnnotation)
			time.Sleep(time.Hour)
			Expect(a.applied()).To(BeEmpty(), "the cluster hibernates")
			scale(1)
			time.Sleep(time.Minute)
			Expect(a.applied()).To(Equal("2"))
			time.Sleep(time.Hour)
			scale(0)
			time.Sleep(time.Minute)
			Expect(a.applied()).To(BeEmpty())
		})
	})
})

// install has the API server store all fields of MachineDeployments.
func install(kinds []sim.Resource) {
	for _, kind := range kinds {
		if known := kind.Known; known != nil {
			known.Spec, known.Status = append(known.Spec, "excessReplicas", "reserveWitness"), append(known.Status, "excessReplicas", "readyExcessReplicas", "selector")
		}
	}
}

func poolOf(name string) *api.MachineDeployment {
	d := &api.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: fixture.Namespace}}
	d.Spec.Template.Spec.Class.Name = "class-" + name
	return d
}
