// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
