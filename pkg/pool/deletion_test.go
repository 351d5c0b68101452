// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

func annotated(pairs ...string) metav1.ObjectMeta {
	o := metav1.ObjectMeta{Annotations: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		o.Annotations[pairs[i]] = pairs[i+1]
	}
	return o
}

const (
	trigger   = machineutils.TriggerDeletionByMCM
	priority  = machineutils.MachinePriority
	condemned = machineutils.MarkedForDeletionTime
)

var _ = DescribeTable("A MachineDeployment names", func(text string, want map[string]time.Time) {
	Expect(pool.Named(&mcm.MachineDeployment{ObjectMeta: annotated(trigger, text)})).To(Equal(want))
},
	Entry("no machine", "", map[string]time.Time{}),
	Entry("with and without a time", "a~2026-03-01T12:00:00Z,b", map[string]time.Time{"a": noon, "b": {}}),
	Entry("no machine with a malformed time, or without a name", "a~noon,~2026-03-01T12:00:00Z,,b~,c", map[string]time.Time{"c": {}}),
)

var _ = DescribeTable("A MachineDeployment is frozen", func(labels map[string]string, want bool) {
	Expect(pool.Frozen(&mcm.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Labels: labels}})).To(Equal(want))
},
	Entry("not by itself", nil, false),
	Entry("by machine-controller-manager's label", entries("freeze", "True"), true),
	Entry("not by another value of that label", entries("freeze", "False"), false),
	Entry("not by another label", entries("frozen", "True"), false),
)

var _ = DescribeTable("A machine", func(o metav1.ObjectMeta, ranked int, condemned bool) {
	m := &mcm.Machine{ObjectMeta: o}
	Expect(pool.Priority(m)).To(Equal(ranked))
	Expect(pool.Condemned(m)).To(Equal(condemned))
},
	Entry("without a priority has the usual one", annotated(), 3, false),
	Entry("has the priority of a deletion", annotated(priority, "1"), 1, false),
	Entry("has that priority and is condemned", annotated(priority, "1", condemned, "2026-03-01T12:00:00Z"), 1, true),
	Entry("was condemned and has another priority since", annotated(priority, "2", condemned, "2026-03-01T12:00:00Z"), 2, false),
	Entry("has a priority that cannot be parsed", annotated(priority, "first"), 3, false),
	Entry("in reserve has none that an earlier version wrote when it was ready", annotated(priority, "5", machine.ReserveAnnotation, "marked"), 3, false),
	Entry("in reserve has none that an earlier version wrote before it was deleted", annotated(priority, "2", machine.ReserveAnnotation, "marked"), 3, false),
	Entry("in reserve has one of a client", annotated(priority, "4", machine.ReserveAnnotation, "marked"), 4, false),
	Entry("that serves has one of a client", annotated(priority, "5"), 5, false),
)

var _ = DescribeTable("A machine whose last operation is", func(last mcm.LastOperation, code codes.Code, failed bool) {
	m := &mcm.Machine{Status: mcm.MachineStatus{LastOperation: last}}
	gotCode, gotFailed := pool.Failure(m)
	Expect(gotFailed).To(Equal(failed))
	Expect(gotCode).To(Equal(code))
},
	Entry("none", mcm.LastOperation{}, codes.OK, false),
	Entry("a creation without capacity", creation("ResourceExhausted", mcm.MachineStateFailed), codes.ResourceExhausted, true),
	Entry("a creation under way", creation("ResourceExhausted", mcm.MachineStateProcessing), codes.OK, false),
	Entry("a creation that has succeeded since", creation("ResourceExhausted", mcm.MachineStateSuccessful), codes.OK, false),
	Entry("a creation that failed inside the provider", creation("Internal", mcm.MachineStateFailed), codes.Internal, true),
	Entry("a health check that failed", mcm.LastOperation{Type: mcm.MachineOperationHealthCheck, State: mcm.MachineStateFailed, ErrorCode: "ResourceExhausted"}, codes.OK, false),
	Entry("a creation that is tried again at once", creation("Unavailable", mcm.MachineStateFailed), codes.OK, false),
	Entry("a creation that timed out", creation("DeadlineExceeded", mcm.MachineStateFailed), codes.OK, false),
	Entry("a creation that was aborted", creation("Aborted", mcm.MachineStateFailed), codes.OK, false),
	Entry("a creation without permission", creation("PermissionDenied", mcm.MachineStateFailed), codes.PermissionDenied, true),
	Entry("a creation that lacks something", creation("NotFound", mcm.MachineStateFailed), codes.NotFound, true),
	Entry("a creation that is out of range", creation("OutOfRange", mcm.MachineStateFailed), codes.OutOfRange, true),
	Entry("a creation that failed without a code", creation("", mcm.MachineStateFailed), codes.OK, false),
	Entry("a deletion that failed", mcm.LastOperation{Type: mcm.MachineOperationDelete, State: mcm.MachineStateFailed, ErrorCode: "Internal"}, codes.OK, false),
)

func creation(code string, state mcm.MachineState) mcm.LastOperation {
	return mcm.LastOperation{Type: mcm.MachineOperationCreate, State: state, ErrorCode: code}
}

const changed = machineutils.LastDeploymentReplicaChangeByScalerTime

var _ = DescribeTable("Naming a machine writes", func(fewer bool, before []string, want map[string]string) {
	Expect(pool.NameForDeletion(&mcm.MachineDeployment{ObjectMeta: annotated(before...)}, []string{"m"}, fewer, noon)).To(Equal(want))
},
	Entry("the name alone where fewer machines run", true, []string{changed, "2026-03-01T11:00:00Z"}, map[string]string{trigger: "m~2026-03-01T12:00:00Z"}),
	Entry("a name that is later than the last change, whatever clock that came from", true, []string{changed, "2026-03-01T13:00:00Z"}, map[string]string{trigger: "m~2026-03-01T13:00:01Z"}),
	Entry("a name that is later than the last change, though that has parts of a second", true, []string{changed, "2026-03-01T12:00:00.999999999Z"}, map[string]string{trigger: "m~2026-03-01T12:00:01Z"}),
	Entry("a name that is later than a change in the same second", true, []string{changed, "2026-03-01T12:00:00Z"}, map[string]string{trigger: "m~2026-03-01T12:00:01Z"}),
	Entry("a time that has passed where the last one cannot be read", true, []string{changed, "noon"}, map[string]string{trigger: "m~2026-03-01T12:00:00Z", changed: "2026-03-01T11:59:59Z"}),
	Entry("a time that has passed where there is none", true, nil, map[string]string{trigger: "m~2026-03-01T12:00:00Z", changed: "2026-03-01T11:59:59Z"}),
	Entry("the time, too, where as many run", false, []string{changed, "2026-03-01T11:00:00Z"}, map[string]string{trigger: "m~2026-03-01T12:00:00Z", changed: "2026-03-01T12:00:00Z"}),
	Entry("a time that does not go back", false, []string{changed, "2026-03-01T13:00:00Z"}, map[string]string{trigger: "m~2026-03-01T13:00:00Z", changed: "2026-03-01T13:00:00Z"}),
	Entry("the names that are there, too", true, []string{changed, "2026-03-01T11:00:00Z", trigger, "l~2026-03-01T11:00:01Z"}, map[string]string{trigger: "l~2026-03-01T11:00:01Z,m~2026-03-01T12:00:00Z"}),
)

var _ = It("Naming a machine writes the second that has begun, in UTC, wherever the clock is", func() {
	clock := noon.Add(700 * time.Millisecond).In(time.FixedZone("CET", 3600))
	to := pool.NameForDeletion(&mcm.MachineDeployment{ObjectMeta: annotated()}, []string{"m"}, false, clock)
	Expect(to).To(Equal(map[string]string{trigger: "m~2026-03-01T12:00:00Z", changed: "2026-03-01T12:00:00Z"}))
})

var _ = It("Naming a machine half a second after the last change writes a later second where fewer run, since times are whole seconds", func() {
	d := &mcm.MachineDeployment{ObjectMeta: annotated(changed, "2026-03-01T12:00:00Z")}
	Expect(pool.NameForDeletion(d, []string{"m"}, true, noon.Add(time.Second/2))).To(Equal(map[string]string{trigger: "m~2026-03-01T12:00:01Z"}))
})

var _ = DescribeTable("A machine that is named and stays", func(named, last string, after time.Duration, want map[string]string, soon time.Duration) {
	d := &mcm.MachineDeployment{ObjectMeta: annotated(trigger, "m~"+named, changed, last)}
	to, due := pool.Remind(d, func(name string) bool { return name == "m" }, noon.Add(after))
	Expect(to).To(Equal(want))
	if soon == 0 {
		Expect(due).To(BeZero())
	} else {
		Expect(due).To(Equal(noon.Add(soon)))
	}
},
	Entry("is left alone at first", "2026-03-01T12:00:00Z", "2026-03-01T11:00:00Z", 9*time.Second, nil, 10*time.Second),
	Entry("is deleted after a while", "2026-03-01T12:00:00Z", "2026-03-01T11:00:00Z", 10*time.Second, map[string]string{changed: "2026-03-01T12:00:10Z"}, time.Duration(0)),
	Entry("is deleted by its time already", "2026-03-01T12:00:00Z", "2026-03-01T12:00:00Z", time.Hour, nil, time.Duration(0)),
	Entry("is not there any more", "2026-03-01T11:00:00Z,other~2026-03-01T12:00:00Z", "2026-03-01T11:30:00Z", time.Hour, nil, time.Duration(0)),
	Entry("is none of that name", "2026-03-01T12:00:00Z,other", "2026-03-01T13:00:00Z", time.Hour, nil, time.Duration(0)),
)

var _ = Describe("Several machines that are named and stay", func() {
	names := []string{"g", "f", "e", "d", "c", "b", "a"}
	at := func(i int) string { return noon.Add(time.Duration(i) * time.Second).Format(time.RFC3339) }
	everyone := func(string) bool { return true }
	var items []string
	for i, name := range names {
		items = append(items, name+"~"+at(i+1))
	}
	d := &mcm.MachineDeployment{ObjectMeta: annotated(trigger, strings.Join(items, ","), changed, at(0))}

	It("are due one after the other, the first named first", func() {
		for range 20 { // names are read into a map, whose order is another each time
			to, due := pool.Remind(d, everyone, noon.Add(time.Second))
			Expect(to).To(BeNil())
			Expect(due).To(Equal(noon.Add(time.Second + pool.Overdue)))
		}
	})

	It("are waited for while others are overdue", func() {
		to, due := pool.Remind(d, everyone, noon.Add(3*time.Second+pool.Overdue))
		Expect(to).To(Equal(map[string]string{changed: "2026-03-01T12:00:13Z"}))
		Expect(due).To(Equal(noon.Add(4*time.Second + pool.Overdue)))
	})

	It("are named by one write, in the order of their names", func() {
		to := pool.NameForDeletion(&mcm.MachineDeployment{ObjectMeta: annotated(changed, at(-1))}, []string{"b", "a"}, true, noon)
		Expect(to).To(Equal(map[string]string{trigger: "a~2026-03-01T12:00:00Z,b~2026-03-01T12:00:00Z"}))
	})
})

var _ = It("The time of a change never goes back, and machines that are named because fewer run are named later", func() {
	rapid.Check(GinkgoT(), func(t *rapid.T) {
		d := &mcm.MachineDeployment{ObjectMeta: annotated()}
		last := time.Time{}
		for range rapid.IntRange(1, 6).Draw(t, "writes") {
			now := noon.Add(time.Duration(rapid.IntRange(-200, 200).Draw(t, "clock")) * time.Second / 2)
			fewer := rapid.Bool().Draw(t, "fewer")
			for key, value := range pool.NameForDeletion(d, []string{"m"}, fewer, now) {
				d.Annotations[key] = value
			}
			at, err := time.Parse(time.RFC3339, d.Annotations[changed])
			if err != nil || at.Before(last) {
				t.Fatalf("%s after %s", d.Annotations[changed], last)
			}
			if named := pool.Named(d)["m"]; named.After(at) != fewer {
				t.Fatalf("named at %s, changed at %s, fewer %t", named, at, fewer)
			}
			last = at
		}
	})
})
