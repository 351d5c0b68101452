// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"fmt"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
	builders "github.com/evenkeel/evenkeel/test/builders/nodegroup"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// failing makes the creation of the machine fail.
func failing(code string) func(*v1alpha1.Machine) {
	return func(m *v1alpha1.Machine) {
		m.Status.LastOperation = mcm.LastOperation{Type: mcm.MachineOperationCreate, State: mcm.MachineStateFailed, ErrorCode: code, Description: "no luck"}
	}
}

func priority(text string) func(*v1alpha1.Machine) {
	return builders.Annotated(machineutils.MachinePriority, text)
}

var doomed = builders.Annotated(machineutils.MarkedForDeletionTime, builders.NoonText)

func preserved(until time.Duration) func(*v1alpha1.Machine) {
	return func(m *v1alpha1.Machine) {
		m.Status.CurrentStatus.PreserveExpiryTime = &metav1.Time{Time: builders.Noon.Add(until)}
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
func memberOf(m *v1alpha1.Machine, node *corev1.Node, named bool) plan.Member {
	GinkgoHelper()
	d := builders.Deployment("1:5", 3)
	if named {
		d.Annotations[machineutils.TriggerDeletionByMCM] = m.Name + "~" + builders.NoonText
	}
	set := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "set", Namespace: ns, UID: "uid-set", OwnerReferences: world.OwnedBy("MachineDeployment", d)}}
	m.OwnerReferences = world.OwnedBy("MachineSet", set)
	objects := pool.Objects{Sets: []*v1alpha1.MachineSet{set}, Machines: []*v1alpha1.Machine{m}}
	if node != nil {
		m.Labels = map[string]string{mcm.NodeLabelKey: node.Name}
		objects.Nodes = append(objects.Nodes, node)
	}
	memory := &memory{source: pool.NewList(objects), clock: testingclock.NewFakePassiveClock(builders.Noon)}
	members := memory.members(memory.outline(plan.Group{Deployment: d}))
	Expect(members).To(HaveLen(1))
	return members[0]
}

var _ = Describe("A member", func() {
	registered := fixture.Node("m")
	DescribeTable("is told by what its Machine and its Node say",
		func(m *v1alpha1.Machine, node *corev1.Node, named bool, want, id string) {
			told := instance(memberOf(m, node, named))
			Expect(wording(told)).To(Equal(want))
			Expect(told.Id).To(Equal(id))
		},
		Entry("asked for", builders.Machine(""), nil, false, "Creating", "requested://m"),
		Entry("booting", builders.Machine(mcm.MachinePending), nil, false, "Creating", "requested://m"),
		Entry("registered", builders.Machine(mcm.MachinePending), registered, false, "Running", "virtual:///m"),
		Entry("registered, provider id to come", builders.Machine(mcm.MachinePending), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, false, "Running", "requested://m"),
		Entry("running", builders.Machine(mcm.MachineRunning), registered, false, "Running", "virtual:///m"),
		Entry("running, its Node taken away", builders.Machine(mcm.MachineRunning), nil, false, "Running", "requested://m"),
		Entry("not ready", builders.Machine(mcm.MachineUnknown), registered, false, "Running", "virtual:///m"),
		Entry("updated in place", builders.Machine(mcm.MachineInPlaceUpdating), registered, false, "Running", "virtual:///m"),
		Entry("no capacity", builders.Machine(mcm.MachineCrashLoopBackOff, failing("ResourceExhausted")), nil, false, "Creating ResourceExhausted/1", "requested://m"),
		Entry("no permission", builders.Machine(mcm.MachineCrashLoopBackOff, failing("PermissionDenied")), nil, false, "Creating PermissionDenied/99", "requested://m"),
		Entry("out of reach: tried again in seconds", builders.Machine(mcm.MachineCrashLoopBackOff, failing("Unavailable")), nil, false, "Creating", "requested://m"),
		Entry("an error without a code: tried again in seconds", builders.Machine(mcm.MachineCrashLoopBackOff, failing("")), nil, false, "Creating", "requested://m"),
		Entry("given up: replaced whatever happens", builders.Machine(mcm.MachineFailed, failing("ResourceExhausted")), nil, false, "Deleting", "requested://m"),
		Entry("failed, but preserved", builders.Machine(mcm.MachineFailed, preserved(time.Hour)), registered, false, "Running", "virtual:///m"),
		Entry("failed, preserved until now", builders.Machine(mcm.MachineFailed, preserved(0)), registered, false, "Deleting", "virtual:///m"),
		Entry("terminating", builders.Machine(mcm.MachineTerminating), registered, false, "Deleting", "virtual:///m"),
		Entry("deleted by hand", builders.Machine(mcm.MachineRunning, builders.Deleted), registered, false, "Deleting", "virtual:///m"),
		Entry("named for deletion", builders.Machine(mcm.MachineRunning), registered, true, "Deleting", "virtual:///m"),
		Entry("named by its priority and time", builders.Machine(mcm.MachineRunning, priority("1"), doomed), registered, false, "Deleting", "virtual:///m"),
		Entry("priority 1 alone: its writer may still change it", builders.Machine(mcm.MachineRunning, priority("1")), registered, false, "Running", "virtual:///m"),
		Entry("no capacity, and named: the caller asks no more", builders.Machine(mcm.MachineCrashLoopBackOff, failing("ResourceExhausted")), nil, true, "Deleting", "requested://m"),
		Entry("an old error of one that has run since", builders.Machine(mcm.MachineRunning, failing("ResourceExhausted")), nil, false, "Running", "requested://m"),
	)

	It("tells an error message that is no text as well as it can", func() {
		m := builders.Machine(mcm.MachineCrashLoopBackOff, failing("ResourceExhausted"))
		m.Status.LastOperation.Description = "caf\xe9"
		Expect(instance(memberOf(m, nil, false)).Status.ErrorInfo.ErrorMessage).To(Equal("caf?"))
	})

	It("tells an error message as far as the caller shows it: of longer ones, an answer has room for few", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 5)
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				c.machine("pool", name, mcm.MachineCrashLoopBackOff, failing("ResourceExhausted"), func(m *v1alpha1.Machine) {
					m.Status.LastOperation.Description = "no luck" + strings.Repeat("é", 1<<19)
				})
			}
			c.lull()
			all := c.listed("pool")
			Expect(all).To(HaveLen(5))
			Expect(all[0].Status.ErrorInfo.ErrorMessage).To(Equal("no luck" + strings.Repeat("é", 493)))
		})
	})
})

var _ = Describe("A group", func() {
	It("tells both bounds whatever they are", func() {
		told := message(builders.Bounded("0:7:cpu=16", 3))
		Expect([]any{told.Id, told.MinSize, told.MaxSize}).To(Equal([]any{"pool", int32(0), int32(7)}))
		Expect(told.Debug).To(Equal("MachineDeployment default/pool, bounds 0:7:cpu=16"))
		dedicated := builders.Bounded("1:9", 3)
		dedicated.Deployment.Annotations[v1alpha1.DedicatedAnnotation] = "shop=2 ci=1"
		Expect(message(dedicated).MaxSize).To(BeEquivalentTo(6))
	})
})

var _ = It("Machines that fail one after the other are reported with pauses, since the caller compares what is missing in the whole group", func() {
	play(func(c *cluster) {
		c.pool("pool", "4:9", 4)
		var minutes []int
		for minute := range 32 {
			if minute%8 == 0 {
				c.machine("pool", string(rune('a'+minute/8)), mcm.MachineCrashLoopBackOff, failing("ResourceExhausted"))
				c.lull()
			}
			if strings.Contains(fmt.Sprint(c.said("pool")), "ResourceExhausted") {
				minutes = append(minutes, minute)
			}
			time.Sleep(time.Minute)
		}
		Expect(minutes).To(Equal([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 30, 31}))
	})
})
