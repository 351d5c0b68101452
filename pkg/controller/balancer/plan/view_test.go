// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
)

// before is an instant before noon.
func before(age time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-age)) }

func podIn(phase corev1.PodPhase, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: before(time.Hour)}, Status: corev1.PodStatus{Phase: phase}}
	for _, c := range change {
		c(p)
	}
	return p
}

func conditioned(kind corev1.PodConditionType, status corev1.ConditionStatus, age time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: before(age)})
	}
}

// accepted has the kubelet have accepted a pod ten minutes ago.
func accepted(p *corev1.Pod) { p.Status.StartTime = ptr.To(before(10 * time.Minute)) }

// container adds one that has restarted so often.
func container(restarts int32, state, last corev1.ContainerState) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{RestartCount: restarts, State: state, LastTerminationState: last})
	}
}

var none corev1.ContainerState

func runs(age time.Duration) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: before(age)}}
}

// ended is a container that started that long ago.
func ended(age time.Duration) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: before(age), FinishedAt: before(age - time.Second)}}
}

// since is a replica that was created an hour ago, and started later.
func since(age time.Duration) Replica {
	return Replica{Born: noon.Add(-time.Hour), Running: true, StartedAt: noon.Add(-age)}
}

var _ = DescribeTable("A pod as a replica",
	func(pod *corev1.Pod, want Replica, counts bool) {
		r, ok := PodReplica(pod)
		Expect(ok).To(Equal(counts))
		Expect(r).To(Equal(want))
	},
	Entry("pending", podIn(corev1.PodPending), pending(time.Hour), true),
	Entry("running, without a start time", podIn(corev1.PodRunning), Replica{Born: noon.Add(-time.Hour), Running: true, StartedAt: noon.Add(-time.Hour)}, true),
	Entry("running since it started", podIn(corev1.PodRunning, func(p *corev1.Pod) { p.Status.StartTime = ptr.To(before(time.Minute)) }),
		Replica{Born: noon.Add(-time.Hour), Running: true, StartedAt: noon.Add(-time.Minute)}, true),
	Entry("running since its image was pulled", podIn(corev1.PodRunning, accepted, container(0, runs(time.Minute), none)), since(time.Minute), true),
	Entry("running since the last of its containers runs", podIn(corev1.PodRunning, accepted, container(0, runs(2*time.Minute), none), container(0, runs(time.Minute), none), container(0, runs(3*time.Minute), none)), since(time.Minute), true),
	Entry("running, with a container that has ended", podIn(corev1.PodRunning, accepted, container(0, ended(2*time.Minute), none), container(0, runs(3*time.Minute), none)), since(2*time.Minute), true),
	Entry("running, with a container that has started again", podIn(corev1.PodRunning, accepted, container(1, runs(time.Minute), ended(5*time.Minute))), since(5*time.Minute), true),
	Entry("running, with a container that is about to start again", podIn(corev1.PodRunning, accepted, container(0, none, ended(5*time.Minute))), since(5*time.Minute), true),
	Entry("running, with a container that is about to start for the third time", podIn(corev1.PodRunning, accepted, container(1, none, ended(time.Minute))), since(10*time.Minute), true),
	Entry("running, with a container that has started for the third time", podIn(corev1.PodRunning, accepted, container(2, runs(time.Minute), ended(5*time.Minute))), since(10*time.Minute), true),
	Entry("ready", podIn(corev1.PodRunning, conditioned(corev1.PodInitialized, corev1.ConditionFalse, time.Second), conditioned(corev1.PodReady, corev1.ConditionTrue, 2*time.Minute)),
		Replica{Born: noon.Add(-time.Hour), Running: true, Ready: true, StartedAt: noon.Add(-time.Hour), Since: noon.Add(-2 * time.Minute)}, true),
	Entry("not ready any more", podIn(corev1.PodRunning, conditioned(corev1.PodReady, corev1.ConditionFalse, 3*time.Minute)),
		Replica{Born: noon.Add(-time.Hour), Running: true, StartedAt: noon.Add(-time.Hour), Since: noon.Add(-3 * time.Minute)}, true),
	Entry("that has finished", podIn(corev1.PodSucceeded), Replica{}, false),
	Entry("that has failed", podIn(corev1.PodFailed), Replica{}, false),
	Entry("that is unknown", podIn(corev1.PodUnknown), Replica{}, false),
	Entry("that is leaving", podIn(corev1.PodRunning, func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(before(0)) }), Replica{}, false),
)

var _ = DescribeTable("A replica on its Node",
	func(r Replica, n NodeReadiness, want Replica) { Expect(r.OnNode(n)).To(Equal(want)) },
	Entry("of which nothing is known", running(time.Hour), NodeReadiness{}, running(time.Hour)),
	Entry("that has been ready for longer than it", running(time.Hour), node(true, 2*time.Hour), running(time.Hour)),
	Entry("that is ready again", running(time.Hour), node(true, time.Minute), Replica{Born: noon.Add(-time.Hour), Running: true, Ready: true, StartedAt: noon.Add(-time.Minute), Since: noon.Add(-time.Minute)}),
	Entry("that is ready again, while it is not", crashing(time.Hour), node(true, time.Minute), Replica{Born: noon.Add(-time.Hour), Running: true, StartedAt: noon.Add(-time.Minute), Since: noon.Add(-time.Hour)}),
	Entry("that is not ready, waits since then", running(time.Hour), node(false, time.Minute), Replica{Born: noon.Add(-time.Minute), Unreachable: true}),
	Entry("that was not ready before it was created, waits since it was", running(time.Minute), node(false, time.Hour), Replica{Born: noon.Add(-time.Minute), Unreachable: true}),
	Entry("that is not ready, has never started", pending(time.Hour), node(false, time.Minute), pending(time.Hour)),
)

func node(ready bool, since time.Duration) NodeReadiness {
	return NodeReadiness{Known: true, Ready: ready, Since: noon.Add(-since)}
}

var _ = DescribeTable("A Machine as a replica",
	func(phase string, updated time.Duration, code string, want Replica, counts bool) {
		m := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
			"currentStatus": map[string]any{"phase": phase, "lastUpdateTime": noon.Add(-updated).Format(time.RFC3339)},
			"lastOperation": map[string]any{"errorCode": code},
		}}}
		m.SetCreationTimestamp(before(time.Hour))
		r, ok := MachineReplica(m)
		Expect(ok).To(Equal(counts))
		for _, at := range []*time.Time{&r.Born, &r.Since, &r.StartedAt} {
			*at = at.UTC()
		}
		Expect(r).To(Equal(want))
	},
	Entry("running", "Running", time.Minute, "", Replica{Born: noon.Add(-time.Hour), Running: true, Ready: true, StartedAt: noon.Add(-time.Minute), Since: noon.Add(-time.Minute)}, true),
	Entry("being updated in place", "InPlaceUpdating", time.Minute, "", Replica{Born: noon.Add(-time.Hour), Running: true, StartedAt: noon.Add(-time.Minute), Since: noon.Add(-time.Minute)}, true),
	Entry("running, with an update before it was created", "Running", 2*time.Hour, "", Replica{Born: noon.Add(-time.Hour), Running: true, Ready: true, StartedAt: noon.Add(-time.Hour), Since: noon.Add(-2 * time.Hour)}, true),
	Entry("booting since it was created", "Pending", time.Minute, "", Replica{Born: noon.Add(-time.Hour)}, true),
	Entry("out of stock", "CrashLoopBackOff", time.Minute, "ResourceExhausted", Replica{Born: noon.Add(-time.Hour), OutOfStock: true}, true),
	Entry("failing for another reason", "CrashLoopBackOff", time.Minute, "Internal", Replica{Born: noon.Add(-time.Hour)}, true),
	Entry("unknown since it ran", "Unknown", time.Minute, "", Replica{Born: noon.Add(-time.Minute), Unreachable: true}, true),
	Entry("unknown, with an update before it was created", "Unknown", 2*time.Hour, "", Replica{Born: noon.Add(-time.Hour), Unreachable: true}, true),
	Entry("terminating", "Terminating", time.Minute, "", Replica{}, false),
)

var _ = Describe("A Machine", func() {
	at := func(status string) *unstructured.Unstructured {
		m := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"currentStatus": map[string]any{"phase": status}}}}
		m.SetCreationTimestamp(before(time.Hour))
		return m
	}

	It("that is being deleted is no replica, whatever its phase", func() {
		m := at("Running")
		_, counts := MachineReplica(m)
		Expect(counts).To(BeTrue())
		m.SetDeletionTimestamp(ptr.To(before(0)))
		_, counts = MachineReplica(m)
		Expect(counts).To(BeFalse())
	})

	It("that does not say since when it runs has run since it was created", func() {
		r, _ := MachineReplica(at("Running"))
		Expect(r.StartedAt).To(BeTemporally("==", noon.Add(-time.Hour)))
		Expect(r.Since).To(BeZero())
	})
})
