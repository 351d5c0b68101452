// SPDX-License-Identifier: Apache-2.0

package dryrun_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	. "github.com/evenkeel/evenkeel/internal/plugin/dryrun"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	balancerapi "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// inGroupOf has the waiting pod be one of a group that starts once it has this many.
func inGroupOf(least int32) func(*Objects, *corev1.Pod) {
	return func(o *Objects, waiting *corev1.Pod) {
		group := &schedulingv1alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "ring"}}
		group.Spec.SchedulingPolicy.Gang = &schedulingv1alpha2.GangSchedulingPolicy{MinCount: least}
		waiting.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group.Name}
		o.PodGroups = []*schedulingv1alpha2.PodGroup{group}
	}
}

// short is the end of one MachineDeployment in a line.
func short(e PoolEnd) string {
	trim := func(names []string) string {
		return strings.ReplaceAll(strings.Join(names, ""), e.Name+"-", "")
	}
	return fmt.Sprintf("R%d A%d serve %s reserve %s leave %s new %d+%d", e.Replicas, e.Applied, trim(e.Serve), trim(e.Reserve), trim(e.Leave), e.New.Serve, e.New.Reserve)
}

func bounds(text string) func(*api.MachineDeployment) {
	return func(d *api.MachineDeployment) { d.Annotations[api.BoundsAnnotation] = text }
}

var _ = Describe("A forecast", func() {
	DescribeTable("of a pool of three busy machines with two in reserve",
		func(fields, end string) {
			o := stringAt()
			pool(o, "p", 3, 2)
			f, text := told(*o, patched("MachineDeployment", "p", fields))
			Expect(f.End.Rest).To(BeTrue())
			Expect(short(f.End.Pools[0])).To(Equal(end), text)
			Expect(f.Notes).To(BeEmpty())
		},
		Entry("that stays as it is", "spec: {replicas: 3}", "R3 A2 serve abc reserve de leave  new 0+0"),
		Entry("one more: the oldest of the reserve serves, and one is made behind it", "spec: {replicas: 4}", "R4 A2 serve abcd reserve e leave  new 0+1"),
		Entry("four more", "spec: {replicas: 7}", "R7 A2 serve abcde reserve  leave  new 2+2"),
		Entry("one less: the oldest is deleted", "spec: {replicas: 2}", "R2 A2 serve bc reserve de leave a new 0+0"),
		Entry("less excess: the newest of the reserve is deleted", "spec: {excessReplicas: 1}", "R3 A1 serve abc reserve d leave e new 0+0"),
		Entry("no excess", "spec: {excessReplicas: 0}", "R3 A0 serve abc reserve  leave de new 0+0"),
		Entry("more excess", "spec: {excessReplicas: 4}", "R3 A4 serve abc reserve de leave  new 0+2"),
		Entry("more excess and more replicas", "spec: {replicas: 4, excessReplicas: 3}", "R4 A3 serve abcd reserve e leave  new 0+2"),
		Entry("bounds", `metadata: {name: p, annotations: {evenkeel.machine.sapcloud.io/bounds: "1:4:2"}}`, "R3 A1 serve abc reserve d leave e new 0+0"),
		Entry("one that serves is named", "metadata: {name: p, annotations: {node.machine.sapcloud.io/trigger-deletion-by-mcm: p-b~2026-11-21T12:00:00Z}}\nspec: {replicas: 2}",
			"R2 A2 serve ac reserve de leave b new 0+0"),
		Entry("one that serves is named without a time", "metadata: {name: p, annotations: {node.machine.sapcloud.io/trigger-deletion-by-mcm: p-b}}\nspec: {replicas: 2}",
			"R2 A2 serve ac reserve de leave b new 0+0"),
		Entry("one is named and replicas stay: it is replaced", "metadata: {name: p, annotations: {node.machine.sapcloud.io/trigger-deletion-by-mcm: p-b}}",
			"R3 A2 serve acd reserve e leave b new 0+1"),
		Entry("one is named after replicas were changed last: it waits for the next change",
			"metadata: {name: p, annotations: {node.machine.sapcloud.io/trigger-deletion-by-mcm: p-b~2026-11-21T12:00:00Z, machine.sapcloud.io/last-deployment-replica-change-by-scaler-time: 2026-11-21T11:00:00Z}}",
			"R3 A2 serve abcd reserve e leave  new 0+0"),
		Entry("one in reserve is named: replicas are given back", "metadata: {name: p, annotations: {node.machine.sapcloud.io/trigger-deletion-by-mcm: p-d~2026-11-21T12:00:00Z}}\nspec: {replicas: 2}",
			"R3 A2 serve abc reserve e leave d new 0+1"),
		Entry("drained", `metadata: {name: p, annotations: {evenkeel.machine.sapcloud.io/drain-reserve: "true"}}`, "R3 A0 serve abc reserve  leave de new 0+0"),
		Entry("another template, while it is paused", "spec: {paused: true, template: {spec: {class: {name: other}}}}", "R3 A2 serve abc reserve de leave  new 0+0"),
		Entry("another template", "spec: {template: {spec: {class: {name: other}}}}", "R3 A2 serve  reserve  leave abcde new 3+2"),
	)

	It("gives machines of another template what their MachineClass promises", func() {
		o := stringAt()
		pool(o, "p", 3, 2, bounds("1:9:cpu=8")) // machines of 4 CPUs
		o.Classes = []*mcm.MachineClass{fixture.MachineClass("large", func(c *mcm.MachineClass) {
			c.NodeTemplate = &mcm.NodeTemplate{Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourcePods: resource.MustParse("110")}}
		})}
		f, text := told(*o, patched("MachineDeployment", "p", "spec: {template: {spec: {class: {name: large}}}}"))
		Expect(f.End.Rest).To(BeTrue())
		Expect(f.End.Pools[0].Applied).To(Equal(1), text)
	})

	It("deletes the first of machines of one second by name", func() {
		o := stringAt()
		pool(o, "p", 3, 1)
		for _, m := range o.Machines {
			m.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour))
		}
		f, text := told(*o, patched("MachineDeployment", "p", "spec: {replicas: 2}"))
		Expect(short(f.End.Pools[0])).To(Equal("R2 A1 serve bc reserve d leave a new 0+0"), text)
	})

	It("prints nothing that a terminal would take for a command", func() {
		o := stringAt()
		pool(o, "p", 1, 0)
		add(o, "p-failing", "p-set", noon, false)
		failing := o.Machines[len(o.Machines)-1]
		failing.Spec.ProviderID, failing.Status.CurrentStatus.Phase = "", mcm.MachineCrashLoopBackOff
		failing.Status.LastOperation.ErrorCode = "No\x1b[2J\u202eroom"
		_, text := told(*o, "")
		Expect(text).To(ContainSubstring("creating a machine failed (No [2J room)"))
	})

	It("prints machines for workload also where replicas include the reserve", func() {
		o := stringAt()
		pool(o, "p", 3, 2, func(d *api.MachineDeployment) {
			d.Spec.Replicas, d.Annotations[api.AppliedExcessAnnotation] = 5, "2,counted=2,replicas=5"
		})
		f, text := told(*o, patched("MachineDeployment", "p", "spec: {replicas: 6}"))
		Expect(text).To(And(ContainSubstring("p: 4 of 4 machines serve, 2 in reserve"), Not(ContainSubstring("applied excess"))))
		Expect(f.End.Pools[0]).To(And(HaveField("Replicas", 6), HaveField("Counted", 2)))
	})

	It("of bounds first shrinks, then fills up", func() {
		o := stringAt()
		pool(o, "p", 4, 1, bounds("1:5:2"))
		f, text := told(*o, patched("MachineDeployment", "p", "spec: {replicas: 2}"))
		Expect(short(f.End.Pools[0])).To(Equal("R2 A2 serve cd reserve e leave ab new 0+1"), text)
	})

	It("of bounds in devices counts those of Nodes, and new machines as the others", func() {
		o := stringAt()
		pool(o, "p", 1, 0, bounds("0:9:devices.gpu=6"))
		o.Slices, o.DeviceClasses = published("p-a", 4), []*resourceapi.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}}
		f, text := told(*o, "")
		Expect(short(f.End.Pools[0])).To(Equal("R1 A2 serve a reserve  leave  new 0+2"), text)
		o.Unread = map[string]string{"resourceslices": "no rights to list them"}
		f, text = told(*o, "")
		Expect(short(f.End.Pools[0])).To(Equal("R1 A0 serve a reserve  leave  new 0+0"), text)
		Expect(text).To(ContainSubstring("devices.gpu: resourceslices could not be read: no rights to list them"))
	})

	It("of bounds in devices leaves machines as they are where DeviceClasses are not known", func() {
		o := stringAt()
		pool(o, "p", 1, 0, bounds("0:9:devices.gpu=6"))
		o.Slices, o.Unread = published("p-a", 4), map[string]string{"deviceclasses": "no rights to list them"}
		f, text := told(*o, "")
		Expect(short(f.End.Pools[0])).To(Equal("R1 A0 serve a reserve  leave  new 0+0"), text)
		Expect(text).To(ContainSubstring("devices.gpu: deviceclasses could not be read: no rights to list them"))
	})

	It("of a Reserve and of a pool's excess in devices counts those of Nodes", func() {
		o := stringAt()
		pool(o, "p", 1, 0)
		pool(o, "q", 1, 0, func(d *api.MachineDeployment) {
			d.Spec.Template.Spec.NodeTemplateSpec.Annotations = map[string]string{api.PoolExcessAnnotation: "devices.gpu=6"}
			d.Labels = map[string]string{"pool": "q"}
		})
		o.Slices, o.DeviceClasses = append(published("p-a", 4), published("q-a", 2)...), []*resourceapi.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}}
		o.Reserves = []*autoscaling.Reserve{{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "r"}, Spec: autoscaling.ReserveSpec{Pools: autoscaling.ReservePools{Names: []string{"p"}}, Amount: "devices.gpu=6"}}}
		f, text := told(*o, "")
		Expect(short(f.End.Pools[0])).To(Equal("R1 A2 serve a reserve  leave  new 0+2"), text)
		Expect(short(f.End.Pools[1])).To(Equal("R1 A3 serve a reserve  leave  new 0+3"), text)
	})

	It("of waiting pods releases a reserve machine to them, and creates another one", func() {
		o := stringAt()
		pool(o, "p", 2, 1, bounds("1:9:1"))
		o.Pods = append(o.Pods, fixture.Pod("late", func(p *corev1.Pod) {
			p.Spec.SchedulerName, p.Status.Phase = "default-scheduler", corev1.PodPending
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *o.Nodes[0].Status.Allocatable.Cpu()
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		}))
		f, text := told(*o, "")
		Expect(text).To(ContainSubstring("replicas 2 -> 3 (reserve machines can hold 1 waiting pod: default/late)"))
		Expect(short(f.End.Pools[0])).To(Equal("R3 A1 serve abc reserve  leave  new 0+1"), text)
	})

	DescribeTable("of a pod that waits considers", func(change func(o *Objects, waiting *corev1.Pod), replicas int) {
		o := stringAt()
		pool(o, "p", 2, 2, bounds("1:9:2"))
		waiting := fixture.Pod("late", func(p *corev1.Pod) {
			p.Spec.SchedulerName, p.Status.Phase = "default-scheduler", corev1.PodPending
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *o.Nodes[0].Status.Allocatable.Cpu()
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		})
		o.Pods = append(o.Pods, waiting)
		change(o, waiting)
		f, text := told(*o, "")
		Expect(f.End.Pools[0].Replicas).To(Equal(replicas), text)
	},
		Entry("nothing else", func(*Objects, *corev1.Pod) {}, 3),
		Entry("the DaemonSets that run beside it", func(o *Objects, waiting *corev1.Pod) {
			set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "agent", UID: "agent"}}
			set.Spec.Template.Spec = *waiting.Spec.DeepCopy()
			o.Daemons = []*appsv1.DaemonSet{set}
		}, 2),
		Entry("the pods that its ReplicaSet has yet to create", func(o *Objects, waiting *corev1.Pod) {
			runByReplicaSet(waiting)
			o.ReplicaSets = []*appsv1.ReplicaSet{{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "web", UID: "web"}, Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](2)}}}
		}, 4),
		Entry("the pods that its Job has yet to create", func(o *Objects, waiting *corev1.Pod) {
			waiting.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "build", UID: "build", Controller: ptr.To(true)}}
			o.Jobs = []*batchv1.Job{{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "build", UID: "build"}, Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](2), Completions: ptr.To[int32](2)}}}
		}, 4),
		Entry("a group that it starts alone", inGroupOf(1), 3),
		Entry("a group that others have yet to complete", inGroupOf(9), 2),
	)

	It("moves no pod to a machine that is cordoned", func() {
		o := stringAt()
		pool(o, "p", 2, 1, bounds("1:9:1"))
		runByReplicaSet(o.Pods...)
		o.Pods = o.Pods[1:]
		o.Pods[0].Spec.SchedulerName = "default-scheduler"
		goes := "metadata: {name: p, annotations: {node.machine.sapcloud.io/trigger-deletion-by-mcm: p-b~2026-11-21T12:00:00Z}}\nspec: {replicas: 1}"
		f, text := told(*o, patched("MachineDeployment", "p", goes))
		Expect(short(f.End.Pools[0])).To(Equal("R1 A1 serve a reserve c leave b new 0+0"), text)
		o.Nodes[0].Spec.Unschedulable = true
		f, text = told(*o, patched("MachineDeployment", "p", goes))
		Expect(short(f.End.Pools[0])).To(Equal("R2 A1 serve ac reserve  leave b new 0+1"), text)
	})

	It("creates no machines if none can be created, and reports that", func() {
		o := stringAt()
		pool(o, "p", 2, 0)
		o.Sets[0].Spec.Replicas = 3
		o.Deployments[0].Spec.Replicas = 3
		o.Machines = append(o.Machines, fixture.Machine("p-x", func(m *mcm.Machine) {
			m.OwnerReferences = ownedBy("MachineSet", "p-set")
			m.Status.CurrentStatus.Phase = mcm.MachineCrashLoopBackOff
			m.Status.LastOperation = mcm.LastOperation{Type: mcm.MachineOperationCreate, State: mcm.MachineStateFailed, ErrorCode: "ResourceExhausted"}
		}))
		f, _ := told(*o, patched("MachineDeployment", "p", "spec: {excessReplicas: 1}"))
		Expect(f.End.Pools[0].Applied).To(BeZero())
		Expect(f.End.Pools[0].Reason).To(Equal("CannotBeMade"))
		Expect(f.Notes).To(ConsistOf(ContainSubstring("creating a machine failed (ResourceExhausted)")))
	})

	It("of a frozen MachineDeployment continues to the time when it is no longer frozen, and reports that", func() {
		o := stringAt()
		pool(o, "p", 1, 0)
		o.Deployments[0].Labels = map[string]string{"freeze": "True"}
		o.Sets[0].Labels["freeze"] = "True"
		f, text := told(*o, patched("MachineDeployment", "p", "spec: {replicas: 4}"))
		Expect(short(f.End.Pools[0])).To(Equal("R4 A0 serve a reserve  leave  new 3+0"), text)
		Expect(f.Notes).To(BeEmpty(), "it is frozen no longer than until the next plan")

		By("once there are not too many any more")
		for i := range 6 {
			add(o, fmt.Sprintf("p-old-%d", i), "p-set", noon.Add(-time.Hour), false)
			gone := o.Machines[len(o.Machines)-1]
			gone.DeletionTimestamp, gone.Status.CurrentStatus.Phase = ptr.To(metav1.NewTime(noon)), mcm.MachineTerminating
		}
		f, text = told(*o, patched("MachineDeployment", "p", "spec: {replicas: 2}"))
		Expect(f.Notes).To(ConsistOf(ContainSubstring("is frozen, so no machines are created until enough of them have left")))
		Expect(short(f.End.Pools[0])).To(Equal("R2 A0 serve a reserve  leave old-0old-1old-2old-3old-4old-5 new 1+0"), text)
	})

	It("of one that is invalid is blocked, and says why", func() {
		o := stringAt()
		pool(o, "p", 2, 1, func(d *api.MachineDeployment) { d.Spec.Strategy.RollingUpdate = nil })
		f, text := told(*o, patched("MachineDeployment", "p", "spec: {replicas: 3}"))
		Expect(f.Plans[0]).To(And(HaveField("State", Blocked), HaveField("Steps", BeEmpty()), HaveField("Why", ContainSubstring("needs a maxSurge and a maxUnavailable"))))
		Expect(short(f.End.Pools[0])).To(Equal("R3 A1 serve ab reserve c leave  new 0+0"), text)
	})

	It("of machines that are updated in place ends where the agents of Nodes begin, and reports that", func() {
		o := stringAt()
		pool(o, "p", 2, 0, func(d *api.MachineDeployment) {
			limits := mcm.UpdateConfiguration{MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0))}
			d.Spec.Strategy = mcm.MachineDeploymentStrategy{Type: mcm.InPlaceUpdateMachineDeploymentStrategyType, InPlaceUpdate: &mcm.InPlaceUpdateMachineDeployment{UpdateConfiguration: limits, OrchestrationType: mcm.OrchestrationTypeAuto}}
		})
		f, text := told(*o, patched("MachineDeployment", "p", "spec: {template: {spec: {class: {name: other}}}}"))
		Expect(f.End.Rest).To(BeTrue())
		Expect(f.Notes).To(ConsistOf("MachineDeployment default/p updates its machines in place, which plan does not predict"))
		Expect(f.End.Pools[0].New.Serve).To(BeNumerically("<=", 1), text)
		f, _ = told(*o, patched("MachineDeployment", "p", "spec: {replicas: 3}"))
		Expect(f.Notes).To(BeEmpty(), "nothing is updated")
	})

	It("plays as many plans as it takes", func() {
		o := stringAt()
		pool(o, "p", 0, 0)
		f, text := told(*o, patched("MachineDeployment", "p", "spec: {replicas: 250}"))
		Expect(f.End.Rest).To(BeTrue())
		Expect(short(f.End.Pools[0])).To(Equal("R250 A0 serve  reserve  leave  new 250+0"), text)
	})

	DescribeTable("of one without a reserve is moving", func(change func(*Objects), why string) {
		o := stringAt()
		pool(o, "p", 2, 0)
		change(o)
		f, _ := told(*o, "")
		Expect(f.Plans[0]).To(And(HaveField("State", Moving), HaveField("Why", why), HaveField("Steps", BeEmpty())))
	},
		Entry("while a machine boots", func(o *Objects) { o.Machines[1].Status.CurrentStatus.Phase = mcm.MachinePending }, "machines are being created or deleted"),
		Entry("while a machine leaves", func(o *Objects) { o.Machines[1].DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }, "machines are being created or deleted"),
		Entry("if machines are to be created", func(o *Objects) { o.Machines = o.Machines[:1] }, "machines are being created or deleted"),
		Entry("if it lacks a finalizer", func(o *Objects) { o.Deployments[0].Finalizers = nil }, "MachineSets, machines or Nodes are being changed"),
	)

	It("shows machines that only change their role", func() {
		o := stringAt()
		pool(o, "p", 3, 1, func(d *api.MachineDeployment) {
			d.Spec.Replicas, d.Spec.ExcessReplicas = 2, ptr.To(int32(2))
			d.Annotations[api.AppliedExcessAnnotation], d.Annotations[api.WantedExcessAnnotation] = "2", "2"
		})
		o.Pods = o.Pods[:2]
		_, text := told(*o, "")
		Expect(text).To(And(ContainSubstring("put machine p-c into reserve (Retired)"), ContainSubstring("in reserve: p-c p-d")))
	})

	It("adopts machines that nothing has, and counts them as its own", func() {
		o := stringAt()
		pool(o, "p", 2, 0)
		o.Machines[1].OwnerReferences = nil
		f, text := told(*o, "")
		Expect(short(f.End.Pools[0])).To(Equal("R2 A0 serve ab reserve  leave  new 0+0"), text)
		Expect(f.Plans[0]).To(And(HaveField("State", Moving), HaveField("Steps", BeEmpty())))
		Expect(text).To(ContainSubstring("MachineDeployment default/p: 2 of 2 machines serve"))
	})

	It("spreads the excess of a pool, and splits growth where that is asked for", func() {
		o := stringAt()
		for _, name := range []string{"z1", "z2", "z3"} {
			pool(o, name, 1, 0, func(d *api.MachineDeployment) {
				d.Labels = map[string]string{"pool": "p"}
				d.Annotations = map[string]string{api.BalanceAnnotation: "ScaleUp", api.AppliedReplicasAnnotation: "1"}
			})
		}
		change := ""
		for _, name := range []string{"z1", "z2", "z3"} {
			change += "---\n" + patched("MachineDeployment", name, `spec: {template: {spec: {nodeTemplate: {metadata: {annotations: {evenkeel.machine.sapcloud.io/excess: "3"}}}}}}`)
		}
		f, text := told(*o, change)
		for _, e := range f.End.Pools {
			Expect(short(e)).To(Equal("R1 A1 serve a reserve  leave  new 0+1"), text)
		}
		f, text = told(*o, patched("MachineDeployment", "z1", "spec: {replicas: 4}"))
		sum := 0
		for _, e := range f.End.Pools {
			Expect(e.Replicas).To(Equal(2), text)
			sum += e.New.Serve
		}
		Expect(sum).To(Equal(3))
	})

	It("of a Balancer proceeds step by step", func() {
		o := shop(2, 2)
		f, text := told(*o, patched("Balancer", "shop", "spec: {replicas: 9}"))
		Expect(text).To(ContainSubstring("scale target a 2 -> "))
		Expect(f.End.Balancers).To(Equal([]SharesEnd{{Namespace: fixture.Namespace, Name: "shop", Was: map[string]int64{"a": 2, "b": 2}, Is: map[string]int64{"a": 5, "b": 4}}}))
		f, _ = told(*o, patched("Balancer", "shop", `spec: {policy: {policyName: priority, priorities: {targetOrder: [b, a]}}}`))
		Expect(f.End.Rest).To(BeTrue())
		Expect(f.End.Balancers[0].Is).To(Equal(map[string]int64{"a": 0, "b": 4}))
	})

	It("of a Balancer has others run what is on Nodes that are not ready", func() {
		o := shop(2, 2)
		o.Nodes = append(o.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "dark"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}}}})
		for _, p := range o.Own {
			if p.Labels["in"] == "a" {
				p.Spec.NodeName = "dark"
			}
		}
		fallback := patched("Balancer", "shop", "spec: {policy: {fallback: {startupTimeoutSeconds: 60}}}")
		f, _ := told(*o, fallback)
		Expect(f.End.Balancers[0].Is).To(Equal(map[string]int64{"a": 2, "b": 4}))
		o.Pods = []*corev1.Pod{}
		o.OwnNodes, o.Nodes = o.Nodes, nil
		f, _ = told(*o, fallback)
		Expect(f.End.Balancers[0].Is).To(Equal(map[string]int64{"a": 2, "b": 4}), "in a control cluster of its own")
	})

	It("of a Balancer over MachineDeployments makes these create machines", func() {
		o := stringAt()
		pool(o, "m1", 1, 0)
		pool(o, "m2", 1, 0)
		b := &balancerapi.Balancer{}
		Expect(yaml.Unmarshal([]byte(`{metadata: {name: both, namespace: default, uid: x}, spec: {replicas: 4, selector: {matchLabels: {a: b}}, policy: {policyName: even},
			targets: [{name: one, scaleTargetRef: {apiVersion: machine.sapcloud.io/v1alpha1, kind: MachineDeployment, name: m1}},
			          {name: two, scaleTargetRef: {apiVersion: machine.sapcloud.io/v1alpha1, kind: MachineDeployment, name: m2}}]}}`), b)).To(Succeed())
		o.Balancers = append(o.Balancers, b)
		f, text := told(*o, "")
		Expect(short(f.End.Pools[0])).To(Equal("R2 A0 serve a reserve  leave  new 1+0"), text)
		Expect(short(f.End.Pools[1])).To(Equal("R2 A0 serve a reserve  leave  new 1+0"), text)
	})

	It("creates a bounded number of pods and machines, whatever number is requested, and reports that", func() {
		f, text := told(*shop(2, 2), patched("Balancer", "shop", "spec: {replicas: 2147483647}"))
		Expect(text).To(ContainSubstring("more replicas than plan can predict"))
		Expect(f.End.Balancers[0].Is["a"]).To(BeNumerically(">", 2_000))

		o := stringAt()
		pool(o, "p", 1, 0)
		f, text = told(*o, patched("MachineDeployment", "p", "spec: {replicas: 2147483647}"))
		Expect(text).To(ContainSubstring("MachineDeployment default/p requests more replicas than plan can predict"))
		Expect(f.End.Pools[0].New.Serve).To(Equal(2_000))
		Expect(f.End.Rest).To(BeTrue(), "it does not go on")
	})

	It("creates a bounded number of machines of a new template, too", func() {
		o := stringAt()
		pool(o, "p", 1, 0)
		f, text := told(*o, patched("MachineDeployment", "p", "spec: {replicas: 20000, template: {spec: {class: {name: other}}}}"))
		Expect(text).To(ContainSubstring("MachineDeployment default/p requests more replicas than plan can predict"))
		Expect(f.End.Pools[0].New.Serve).To(BeNumerically("<=", 2_000))
	})

	It("changes nothing of what it was given", func() {
		o := stringAt()
		pool(o, "p", 3, 2)
		all := func() string {
			text, err := json.Marshal([]any{o.Deployments, o.Sets, o.Machines, o.Nodes, o.Pods})
			Expect(err).NotTo(HaveOccurred())
			return string(text)
		}
		before := all()
		told(*o, patched("MachineDeployment", "p", "spec: {replicas: 1, excessReplicas: 5}"))
		Expect(all()).To(Equal(before))
	})

	It("of what is at rest is that nothing changes", func() {
		o := shop(1, 1)
		pool(o, "p", 2, 1)
		f, text := told(*o, "")
		Expect(text).To(Equal("2 objects are at rest.\nNothing changes.\n"))
		Expect(f.Plans).To(HaveLen(2))
	})
})

// shop is a Balancer over two Deployments whose pods run.
func shop(a, b int) *Objects {
	GinkgoHelper()
	o := stringAt()
	o.Workloads = map[schema.GroupVersionResource][]*unstructured.Unstructured{}
	resource := appsv1.SchemeGroupVersion.WithResource("deployments")
	for name, n := range map[string]int{"a": a, "b": b} {
		d := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal(fmt.Appendf(nil, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, namespace: default, resourceVersion: "1", generation: 1}, status: {observedGeneration: 1},
			spec: {replicas: %d, selector: {matchLabels: {in: %s}}, template: {metadata: {labels: {in: %s, app: shop}}}}}`, name, n, name, name), &d.Object)).To(Succeed())
		for _, field := range [][]string{{"spec", "replicas"}, {"metadata", "generation"}, {"status", "observedGeneration"}} {
			value, _, _ := unstructured.NestedFloat64(d.Object, field...)
			Expect(unstructured.SetNestedField(d.Object, int64(value), field...)).To(Succeed())
		}
		o.Workloads[resource] = append(o.Workloads[resource], d)
		for i := range n {
			started := metav1.NewTime(noon.Add(-time.Hour))
			o.Pods = append(o.Pods, fixture.Pod(fmt.Sprintf("%s-%d", name, i), func(p *corev1.Pod) {
				p.Labels = map[string]string{"in": name, "app": "shop"}
				p.CreationTimestamp, p.Status.StartTime, p.Status.Phase = started, &started, corev1.PodRunning
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: started}}
			}))
		}
	}
	o.Own = o.Pods
	balancer := &balancerapi.Balancer{}
	Expect(yaml.Unmarshal(fmt.Appendf(nil, `{metadata: {name: shop, namespace: default, uid: x}, spec: {replicas: %d, selector: {matchLabels: {app: shop}}, policy: {policyName: even},
		targets: [{name: a, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}, {name: b, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: b}}]}}`, a+b), balancer)).To(Succeed())
	o.Balancers = append(o.Balancers, balancer)
	return o
}

// published are the slices of a Node with so many devices.
func published(node string, devices int) []*resourceapi.ResourceSlice {
	s := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}}
	s.Spec = resourceapi.ResourceSliceSpec{Driver: "gpu.example.com", NodeName: &node, Pool: resourceapi.ResourcePool{Name: node, ResourceSliceCount: 1}}
	for i := range devices {
		s.Spec.Devices = append(s.Spec.Devices, resourceapi.Device{Name: fmt.Sprint("gpu-", i)})
	}
	return []*resourceapi.ResourceSlice{s}
}
