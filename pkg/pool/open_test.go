// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
)

var _ = DescribeTable("A marked machine may still get pods",
	func(mark string, phase mcm.MachinePhase, node *corev1.Node, open bool) {
		m := fixture.Machine("m")
		m.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
		m.Status.CurrentStatus.Phase = phase
		if mark != "" {
			m.Annotations = map[string]string{machine.ReserveAnnotation: mark}
		}
		Expect(pool.Machine{Object: m, Node: node}.Open()).To(Equal(open))
	},
	Entry("no, if it is not marked", "", mcm.MachinePending, nil, false),
	Entry("no, before its Node is seen, if it was created in reserve", `{"since":"2026-01-01T12:00:00Z"}`, mcm.MachinePending, nil, false),
	Entry("also if its creation took a second", `{"since":"2026-01-01T11:59:59Z"}`, mcm.MachinePending, nil, false),
	Entry("also if the clock of its creator was ahead of the API server's", `{"since":"2026-01-01T12:00:10Z"}`, mcm.MachinePending, nil, false),
	Entry("before its Node is seen, if it was created to serve", `{"since":"2026-01-01T12:00:11Z"}`, mcm.MachinePending, nil, true),
	Entry("also if it is said to run already", `{"since":"2026-01-01T12:00:11Z"}`, mcm.MachineRunning, nil, true),
	Entry("not if its Node is gone since it is unhealthy", `{"since":"2026-01-01T12:00:11Z"}`, mcm.MachineUnknown, nil, false),
	Entry("before its Node is seen, if the mark cannot be read", "yesterday", mcm.MachinePending, nil, true),
	Entry("no, once its Node is seen", `{"since":"2026-01-01T12:00:11Z"}`, mcm.MachineRunning, fixture.Node("m"), false),
)
