// SPDX-License-Identifier: Apache-2.0

package overview_test

import (
	"fmt"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	. "github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

var _ = DescribeTable("It is wrong",
	func(build func(*world), want ...string) {
		w := newWorld()
		build(w)
		lines := said(New(w.Objects))
		Expect(lines).To(HaveLen(len(want)), "%v", lines)
		for i := range want {
			Expect(lines[i]).To(Equal(want[i]))
		}
	},
	Entry("not where all is well", func(w *world) {
		w.pool("a", 1, excess(1), ready("True", "Complete", "all", time.Hour))
		w.machine("a", "m")
		w.machine("a", "n", held(time.Hour))
	}),
	Entry("that machines have failed, in one line however many they are", func(w *world) {
		w.pool("a", 3)
		for i := range 200 {
			w.machine("a", fmt.Sprintf("m%03d", i), phase(mcm.MachineFailed), func(m *mcm.Machine) {
				m.Status.LastOperation.Description = "the cloud says\n  no"
			})
		}
	}, "machinedeployment/default/a: m000 failed: the cloud says no; 199 more -> kubectl -n default describe machine m000"),
	Entry("that a machine cannot be made, in the provider's words", func(w *world) {
		w.pool("a", 1)
		w.machine("a", "m", refused("ResourceExhausted", "Cloud provider message - machine codes error: code = [ResourceExhausted] message = [no capacity in zone a]. Retrying"))
	}, "machinedeployment/default/a: m failed: ResourceExhausted: no capacity in zone a -> kubectl -n default describe machine m"),
	Entry("that its spec is invalid, but not that no controller has reported on its reserve", func(w *world) {
		w.pool("a", 1, excess(1), condition(mcm.MachineDeploymentReplicaFailure, "True", "InvalidSpec", "spec.strategy.type must be\n Recreate", time.Hour))
		w.pool("b", 1, condition(mcm.MachineDeploymentReplicaFailure, "False", "", "it could not", time.Hour))
	}, "machinedeployment/default/a: machines cannot be created: spec.strategy.type must be Recreate -> kubectl -n default describe machinedeployment a"),
	Entry("that a rollout has stopped", func(w *world) {
		w.pool("a", 1, condition(mcm.MachineDeploymentProgressing, "False", "ProgressDeadlineExceeded", "it has timed out", time.Hour))
		w.pool("b", 1, condition(mcm.MachineDeploymentProgressing, "Unknown", "DeploymentPaused", "it is paused", time.Hour))
	}, "machinedeployment/default/a: the rollout makes no progress: it has timed out -> kubectl -n default describe machinedeployment a"),
	Entry("that a machine does not answer", func(w *world) {
		w.pool("a", 1)
		w.machine("a", "m", phase(mcm.MachineUnknown))
	}, "machinedeployment/default/a: m failed: its Node does not respond -> kubectl -n default describe machine m"),
	Entry("that a machine boots for too long, and one in reserve", func(w *world) {
		w.pool("a", 1)
		w.machine("a", "m", phase(mcm.MachinePending), created(DefaultBootPatience))
		w.machine("a", "n", phase(mcm.MachinePending), created(DefaultBootPatience), held(time.Minute))
		w.machine("a", "o", phase(mcm.MachinePending), created(DefaultBootPatience-time.Second))
		w.machine("a", "p", phase(mcm.MachineInPlaceUpdating), created(time.Hour))
	}, "machinedeployment/default/a: m does not become ready: has been booting for more than 15m -> kubectl -n default describe machine m",
		"machinedeployment/default/a: n in reserve does not become ready: has been booting for more than 15m -> kubectl -n default describe machine n"),
	Entry("that a machine hangs while it leaves", func(w *world) {
		w.pool("a", 1)
		w.machine("a", "m", phase(mcm.MachineTerminating), func(m *mcm.Machine) { at := ago(31 * time.Minute); m.DeletionTimestamp = &at })
	}, "machinedeployment/default/a: m hangs: has been leaving for more than 30m -> kubectl -n default describe machine m"),
	Entry("that replicas are above max", func(w *world) {
		w.pool("a", 7, bounds("1:5"))
	}, "machinedeployment/default/a: replicas 7 are above max 5 -> raise max in the bounds, or lower replicas"),
	Entry("that replicas are above max, once", func(w *world) {
		w.pool("a", 7, bounds("1:5:1"), ready("False", "AboveMax", "7 of 7", time.Minute))
	}, "machinedeployment/default/a: reserve AboveMax: 7 of 7 -> raise max in the bounds, or lower replicas"),
	Entry("that bounds are invalid, though no controller reports that", func(w *world) {
		w.pool("a", 1, bounds("5:1"))
	}, `machinedeployment/default/a: bounds "5:1" is invalid -> min must not be above max`),
	Entry("that bounds are invalid, as the controller reports", func(w *world) {
		w.pool("a", 1, bounds("many"), ready("False", "BoundsInvalid", "bounds: no", time.Minute))
	}, "machinedeployment/default/a: reserve BoundsInvalid: bounds: no -> write bounds as min:max:excess, for example 1:10:2"),
	Entry("that a reserve cannot be made, at once, and grows, but only for long", func(w *world) {
		w.pool("a", 1, excess(1), ready("False", "CannotBeMade", "0 of 1", time.Second))
		w.pool("b", 1, excess(1), ready("False", "Growing", "0 of 1", DefaultBootPatience-time.Second))
		w.pool("c", 1, excess(1), ready("False", "Growing", "0 of 1", DefaultBootPatience))
		w.pool("d", 1, excess(1), ready("False", "NeverHeardOf", "0 of 1", time.Second))
	}, "machinedeployment/default/a: reserve CannotBeMade: 0 of 1 -> check quota, capacity and the MachineClass, and the events of the provider: kubectl -n default describe machine",
		"machinedeployment/default/c: reserve Growing: 0 of 1 -> check why machines do not boot: kubectl -n default describe machine",
		"machinedeployment/default/d: reserve NeverHeardOf: 0 of 1 -> kubectl -n default describe machinedeployment d"),
	Entry("that no controller manages a reserve that is desired", func(w *world) {
		w.pool("a", 1, excess(1))
		w.pool("b", 1, excess(1), func(d *v1alpha1.MachineDeployment) { d.CreationTimestamp = ago(time.Minute) })
		w.pool("c", 1)
	}, "machinedeployment/default/a: an excess of 1 is desired, but no controller has reported on it -> check that machine-controller-manager runs with --controllers=*, or with mcm among them"),
	Entry("that a MachineDeployment is frozen", func(w *world) {
		w.pool("a", 1, func(d *v1alpha1.MachineDeployment) { d.Labels["freeze"] = "True" })
	}, "machinedeployment/default/a: frozen: machine-controller-manager creates no machines for it -> check the log of machine-controller-manager: there are too many machines, or an API server does not respond"),
	Entry("that zones are not even, unless that passes", func(w *world) {
		for name, reason := range map[string]string{"a": "PodsBound", "b": "Moving", "c": "Waiting"} {
			w.pool(name, 1, conditioned("ZonesBalanced", reason, "two more than pool-z2"))
		}
	}, "machinedeployment/default/a: zones are not even: two more than pool-z2 -> check node selectors, affinity and zonal volumes of the pods that the message names"),
	Entry("that a pool has no room for its excess", func(w *world) {
		w.pool("a", 1, conditioned("PoolExcessSpread", "NoRoom", "there is no room for 2 of the pool's 4: raise the max of bounds, or lower the excess"))
	}, "machinedeployment/default/a: pool's excess: there is no room for 2 of the pool's 4 -> raise the max of bounds, or lower the excess"),
	Entry("that rights are missing", func(w *world) {
		w.pool("a", 1, conditioned("RightsGranted", "Forbidden", "Hibernation is guessed"))
	}, "machinedeployment/default/a: rights are missing: Hibernation is guessed -> add the rules in the message to a Role, or accept the limitation"),
	Entry("worst first", func(w *world) {
		w.pool("a", 7, bounds("1:5"))
		w.pool("b", 1, excess(1), ready("False", "Unhealthy", "no", time.Second))
		w.pool("c", 1)
		w.machine("c", "m", phase(mcm.MachineFailed))
	}, "machinedeployment/default/c: m failed: phase Failed -> kubectl -n default describe machine m",
		"machinedeployment/default/b: reserve Unhealthy: no -> repair these machines: kubectl -n default get machines",
		"machinedeployment/default/a: replicas 7 are above max 5 -> raise max in the bounds, or lower replicas"),
)

var _ = DescribeTable("Pods that wait",
	func(build func(*world), want ...string) {
		w := newWorld()
		build(w)
		v := New(w.Objects)
		Expect(said(v)).To(Equal(want))
		Expect(v.PodsWaiting).To(BeNumerically(">", 0))
	},
	Entry("beside no reserve", func(w *world) {
		w.waiter("p")
	}, "pod/default/p: 1 pod cannot be scheduled, and no reserve machine is ready -> kubectl -n default describe pod p"),
	Entry("beside a reserve that is too small for them", func(w *world) {
		reserved(w)
		w.waiter("p", asking("5"))
		w.waiter("q", asking("6"))
	}, "pod/default/p: 2 pods cannot be scheduled, and no reserve machine has room for them (Full) -> kubectl -n default describe pod p"),
	Entry("beside a reserve whose Nodes cannot be read", func(w *world) {
		reserved(w)
		w.Nodes = nil
		w.waiter("p")
	}, "pod/default/p: 1 pod cannot be scheduled, and it is unknown whether the reserve has room for them -> kubectl -n default describe pod p"),
	Entry("beside machines that cannot be read", func(w *world) {
		w.MachinesUnknown = true
		w.waiter("p")
	}, "pod/default/p: 1 pod cannot be scheduled, and it is unknown whether the reserve has room for them -> kubectl -n default describe pod p"),
	Entry("beside a reserve that is partly dedicated, of which another Node cannot be read", func(w *world) {
		reserved(w, bounds("1:5:1"))
		w.machine("a", "l", held(time.Hour), noted(v1alpha1.DedicatedAnnotation, "shop/Deployment/web"))
		w.Nodes = w.Nodes[1:]
		w.waiter("p")
	}, "pod/default/p: 1 pod cannot be scheduled, and it is unknown whether the reserve has room for them -> kubectl -n default describe pod p"),
	Entry("beside a reserve that is dedicated to others", func(w *world) {
		reserved(w, bounds("1:5:1"))
		w.Machines[0].Annotations[v1alpha1.DedicatedAnnotation] = "shop/Deployment/web"
		w.waiter("p")
	}, "pod/default/p: 1 pod cannot be scheduled, and all ready reserve machines are dedicated to other pods -> kubectl -n default describe pod p"),
	Entry("beside a reserve that is partly dedicated to others", func(w *world) {
		reserved(w, bounds("1:5:1"))
		w.machine("a", "l", held(time.Hour), noted(v1alpha1.DedicatedAnnotation, "shop/Deployment/web"))
		w.waiter("p")
	}, "machinedeployment/default/a: 1 pod cannot be scheduled, and a reserve machine here has room for them -> wait: the machine is released soon; if not, check that machine-controller-manager runs with --controllers=*, or with release among them"),
	Entry("beside a reserve without bounds", func(w *world) {
		reserved(w)
		w.waiter("p")
		w.waiter("q")
	}, "machinedeployment/default/a: 2 pods cannot be scheduled, and a reserve machine here has room for them -> kubectl -n default scale machinedeployment a --replicas=2, or set the annotation bounds so that the controller does this"),
	Entry("beside a reserve without bounds that replicas include", func(w *world) {
		reserved(w, func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = 4 }, annotated(v1alpha1.AppliedExcessAnnotation, "2,counted=2,replicas=4"))
		w.waiter("p")
	}, "machinedeployment/default/a: 1 pod cannot be scheduled, and a reserve machine here has room for them -> kubectl -n default scale machinedeployment a --replicas=5, or set the annotation bounds so that the controller does this"),
	Entry("beside a reserve at max", func(w *world) {
		reserved(w, bounds("1:1:1"))
		w.waiter("p")
	}, "machinedeployment/default/a: 1 pod cannot be scheduled, and a reserve machine here has room for them, but replicas are at max 1 -> raise max in the bounds"),
	Entry("beside a reserve that is about to be released", func(w *world) {
		reserved(w, bounds("1:5:1"))
		w.waiter("p")
	}, "machinedeployment/default/a: 1 pod cannot be scheduled, and a reserve machine here has room for them -> wait: the machine is released soon; if not, check that machine-controller-manager runs with --controllers=*, or with release among them"),
)

var _ = It("Pods that leave, have a place in sight, or were not tried, do not wait", func() {
	w := newWorld()
	at := ago(0)
	w.waiter("a").DeletionTimestamp = &at
	w.waiter("b").Status.NominatedNodeName = "n"
	w.waiter("c").Status.Conditions[0].Reason = corev1.PodReasonSchedulingGated
	Expect(New(w.Objects).PodsWaiting).To(BeZero())
})

func conditioned(kind, reason, message string) func(*v1alpha1.MachineDeployment) {
	return func(d *v1alpha1.MachineDeployment) {
		d.Status.Conditions = append(d.Status.Conditions, mcm.MachineDeploymentCondition{
			Type: mcm.MachineDeploymentConditionType(kind), Status: mcm.ConditionFalse, Reason: reason, Message: message,
		})
	}
}

// reserved has a machine in reserve.
func reserved(w *world, change ...func(*v1alpha1.MachineDeployment)) {
	w.pool("a", 1, append(change, ready("True", "Complete", "all", time.Hour))...)
	w.machine("a", "m", held(time.Hour))
	n := w.Nodes[len(w.Nodes)-1]
	n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}}
}

func asking(cpu string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
}
