// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"fmt"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/evenkeel/evenkeel/internal/fixture"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
)

// failing says that making the machine failed.
func failing(code string) func(*v1alpha1.Machine) {
	return func(m *v1alpha1.Machine) {
		m.Status.LastOperation = mcm.LastOperation{Type: mcm.MachineOperationCreate, State: mcm.MachineStateFailed, ErrorCode: code, Description: "no luck"}
	}
}

func annotated(key, value string) func(*v1alpha1.Machine) {
	return func(m *v1alpha1.Machine) { metav1.SetMetaDataAnnotation(&m.ObjectMeta, key, value) }
}

func priority(text string) func(*v1alpha1.Machine) {
	return annotated(machineutils.MachinePriority, text)
}

var (
	inReserve = annotated(v1alpha1.ReserveAnnotation, `{"since":"2026-03-01T12:00:00Z"}`)
	doomed    = annotated(machineutils.MarkedForDeletionTime, noonText)
	deleted   = func(m *v1alpha1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: noon} }
)

func preserved(until time.Duration) func(*v1alpha1.Machine) {
	return func(m *v1alpha1.Machine) {
		m.Status.CurrentStatus.PreserveExpiryTime = &metav1.Time{Time: noon.Add(until)}
	}
}

// wording describes an instance, as in "Creating ResourceExhausted/1".
func wording(i *pb.Instance) string {
	text := map[pb.InstanceStatus_InstanceState]string{1: "Running", 2: "Creating", 3: "Deleting"}[i.Status.InstanceState]
	if e := i.Status.ErrorInfo; e != nil {
		text += fmt.Sprintf(" %s/%d", e.ErrorCode, e.InstanceErrorClass)
	}
	return text
}

// memberOf reads a Machine and its Node, if there is one. Named reports whether its MachineDeployment names it for deletion.
func memberOf(m *v1alpha1.Machine, node *corev1.Node, named bool) Member {
	GinkgoHelper()
	d := deployment("1:5", 3)
	if named {
		d.Annotations[machineutils.TriggerDeletionByMCM] = m.Name + "~" + noonText
	}
	set := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "set", Namespace: ns, UID: "uid-set", OwnerReferences: []metav1.OwnerReference{ownedBy("MachineDeployment", d)}}}
	m.OwnerReferences = []metav1.OwnerReference{ownedBy("MachineSet", set)}
	objects := pool.Objects{Sets: []*v1alpha1.MachineSet{set}, Machines: []*v1alpha1.Machine{m}}
	if node != nil {
		m.Labels = map[string]string{mcm.NodeLabelKey: node.Name}
		objects.Nodes = append(objects.Nodes, node)
	}
	memory := &memory{source: pool.NewList(objects), clock: testingclock.NewFakePassiveClock(noon)}
	members := memory.members(memory.outline(Group{Deployment: d}))
	Expect(members).To(HaveLen(1))
	return members[0]
}

var _ = Describe("A member", func() {
	registered := fixture.Node("m")
	DescribeTable("is told by what its Machine and its Node say",
		func(m *v1alpha1.Machine, node *corev1.Node, named bool, want, id string) {
			told := memberOf(m, node, named).instance()
			Expect(wording(told)).To(Equal(want))
			Expect(told.Id).To(Equal(id))
		},
		Entry("asked for", machineIn(""), nil, false, "Creating", "requested://m"),
		Entry("booting", machineIn(mcm.MachinePending), nil, false, "Creating", "requested://m"),
		Entry("registered", machineIn(mcm.MachinePending), registered, false, "Running", "virtual:///m"),
		Entry("registered, provider id to come", machineIn(mcm.MachinePending), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, false, "Running", "requested://m"),
		Entry("running", machineIn(mcm.MachineRunning), registered, false, "Running", "virtual:///m"),
		Entry("running, its Node taken away", machineIn(mcm.MachineRunning), nil, false, "Running", "requested://m"),
		Entry("not ready", machineIn(mcm.MachineUnknown), registered, false, "Running", "virtual:///m"),
		Entry("updated in place", machineIn(mcm.MachineInPlaceUpdating), registered, false, "Running", "virtual:///m"),
		Entry("no capacity", machineIn(mcm.MachineCrashLoopBackOff, failing("ResourceExhausted")), nil, false, "Creating ResourceExhausted/1", "requested://m"),
		Entry("no permission", machineIn(mcm.MachineCrashLoopBackOff, failing("PermissionDenied")), nil, false, "Creating PermissionDenied/99", "requested://m"),
		Entry("out of reach: tried again in seconds", machineIn(mcm.MachineCrashLoopBackOff, failing("Unavailable")), nil, false, "Creating", "requested://m"),
		Entry("an error without a code: tried again in seconds", machineIn(mcm.MachineCrashLoopBackOff, failing("")), nil, false, "Creating", "requested://m"),
		Entry("given up: replaced whatever happens", machineIn(mcm.MachineFailed, failing("ResourceExhausted")), nil, false, "Deleting", "requested://m"),
		Entry("failed, but preserved", machineIn(mcm.MachineFailed, preserved(time.Hour)), registered, false, "Running", "virtual:///m"),
		Entry("failed, preserved until now", machineIn(mcm.MachineFailed, preserved(0)), registered, false, "Deleting", "virtual:///m"),
		Entry("terminating", machineIn(mcm.MachineTerminating), registered, false, "Deleting", "virtual:///m"),
		Entry("deleted by hand", machineIn(mcm.MachineRunning, deleted), registered, false, "Deleting", "virtual:///m"),
		Entry("named for deletion", machineIn(mcm.MachineRunning), registered, true, "Deleting", "virtual:///m"),
		Entry("named by its priority and time", machineIn(mcm.MachineRunning, priority("1"), doomed), registered, false, "Deleting", "virtual:///m"),
		Entry("priority 1 alone: whoever wrote it may think again", machineIn(mcm.MachineRunning, priority("1")), registered, false, "Running", "virtual:///m"),
		Entry("no capacity, and named: the caller asks no more", machineIn(mcm.MachineCrashLoopBackOff, failing("ResourceExhausted")), nil, true, "Deleting", "requested://m"),
		Entry("an old error of one that has run since", machineIn(mcm.MachineRunning, failing("ResourceExhausted")), nil, false, "Running", "requested://m"),
	)

	It("is in reserve by the mark of its Machine, readable or not", func() {
		Expect(memberOf(machineIn(mcm.MachineRunning, inReserve), registered, false).Serves()).To(BeFalse())
		Expect(memberOf(machineIn(mcm.MachineRunning, annotated(v1alpha1.ReserveAnnotation, "?")), registered, false).Serves()).To(BeFalse())
		Expect(memberOf(machineIn(mcm.MachineRunning, annotated(v1alpha1.ReserveAnnotation, "")), registered, false).Serves()).To(BeTrue(), "an empty mark is none, for all who read it")
		Expect(memberOf(machineIn(mcm.MachineRunning), registered, false).Serves()).To(BeTrue())
	})

	It("is counted by machine-controller-manager until it terminates", func() {
		for phase, counted := range map[mcm.MachinePhase]bool{"": true, mcm.MachineRunning: true, mcm.MachineFailed: true, mcm.MachineTerminating: false} {
			Expect(memberOf(machineIn(phase, deleted), nil, true).Counted()).To(Equal(counted), string(phase))
		}
	})

	It("tells an error message that is no text as well as it can", func() {
		m := machineIn(mcm.MachineCrashLoopBackOff, failing("ResourceExhausted"))
		m.Status.LastOperation.Description = "caf\xe9"
		Expect(memberOf(m, nil, false).instance().Status.ErrorInfo.ErrorMessage).To(Equal("caf?"))
	})
})

var _ = Describe("A group", func() {
	It("tells both bounds whatever they are", func() {
		told := group("0:7:cpu=16", 3).message()
		Expect([]any{told.Id, told.MinSize, told.MaxSize}).To(Equal([]any{"pool", int32(0), int32(7)}))
		Expect(told.Debug).To(Equal("MachineDeployment default/pool, bounds 0:7:cpu=16"))
	})

	It("leaves machines that are dedicated out of max, and never less than there is", func() {
		dedicated := func(g Group) Group {
			g.Deployment.Annotations[v1alpha1.DedicatedAnnotation] = "shop=2 ci=1"
			return g
		}
		Expect(dedicated(group("1:9", 3)).message().MaxSize).To(BeEquivalentTo(6))
		Expect(dedicated(group("1:9", 8)).message().MaxSize).To(BeEquivalentTo(8))
		Expect(dedicated(group("1:2", 1)).message().MaxSize).To(BeEquivalentTo(1))
		_, err := NewRaise(dedicated(group("1:9", 5)), 5, 2)
		Expect(code(err)).To(Equal(codes.OutOfRange))
	})

	It("counts replicas below zero as none", func() {
		Expect(group("1:5", -3).Replicas()).To(BeZero())
	})
})
