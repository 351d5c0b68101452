// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
)

var _ = DescribeTable("A Node is that of a Machine",
	func(label, machineID, nodeID string, is bool) {
		m := fixture.Machine("m", func(m *mcm.Machine) {
			m.Labels = map[string]string{mcm.NodeLabelKey: label}
			m.Spec.ProviderID = machineID
		})
		n := fixture.Node("ip-10-0-0-1", func(n *corev1.Node) { n.Spec.ProviderID = nodeID })
		Expect(pool.IsNodeOf(m, n)).To(Equal(is))
	},
	Entry("that names it and has its id", "ip-10-0-0-1", "aws:///eu-west-1/i-1", "aws:///eu-west-1/i-1", true),
	Entry("that has the region in its id where the Node has the zone", "ip-10-0-0-1", "aws:///eu-west-1/i-1", "aws:///eu-west-1a/i-1", true),
	Entry("unless the Machine's successor has the name", "ip-10-0-0-1", "aws:///eu-west-1/i-1", "aws:///eu-west-1a/i-2", false),
	Entry("unless ids without a scheme differ", "ip-10-0-0-1", "eu-1.i-1", "eu-1.i-2", false),
	Entry("while the Node has no id yet", "ip-10-0-0-1", "aws:///eu-west-1/i-1", "", true),
	Entry("while the Machine has no id yet", "ip-10-0-0-1", "", "aws:///eu-west-1a/i-1", true),
	Entry("while the Node has no id yet, and the Machine's has no scheme", "ip-10-0-0-1", "eu-1.i-1", "", true),
	Entry("while the Machine has no id yet, and the Node's has no scheme", "ip-10-0-0-1", "", "eu-1.i-1", true),
	Entry("where the ids have different schemes", "ip-10-0-0-1", "i-1", "aws:///eu-west-1a/i-2", true),
	Entry("not if the Machine names another", "ip-10-0-0-2", "aws:///eu-west-1/i-1", "aws:///eu-west-1a/i-1", false),
	Entry("not if the Machine names none", "", "aws:///eu-west-1/i-1", "aws:///eu-west-1a/i-1", false),
)
