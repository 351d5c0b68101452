// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"maps"
	"os"
	"regexp"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	. "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
	. "github.com/evenkeel/evenkeel/test/builders/nodegroup"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// ignoring is the flag for a label in which groups may differ.
var ignoring = regexp.MustCompile(`--balancing-ignore-label=([^\s` + "`" + `]+)`)

// flagged are the labels that a file has cluster-autoscaler ignore.
func flagged(file string) []string {
	GinkgoHelper()
	text, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	var all []string
	for _, found := range ignoring.FindAllSubmatch(text, -1) {
		all = append(all, string(found[1]))
	}
	return all
}

const example = "../../../../examples/autoscaler/cluster-autoscaler.yaml"

// ignored are the labels in which groups may differ for a cluster-autoscaler that runs as the example has it: its own and those of its flags.
func ignored() []string {
	GinkgoHelper()
	return append(flagged(example),
		"kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
		"failure-domain.beta.kubernetes.io/region", "beta.kubernetes.io/fluentd-ds-ready", "kops.k8s.io/instancegroup")
}

// taken is a template as cluster-autoscaler takes it from a group that has no Node of its own: it adds three labels under their former
// names. From a Node it takes what is there and no more.
func taken(template *corev1.Node) map[string]string {
	labels := maps.Clone(template.Labels)
	for former, label := range map[string]string{
		corev1.LabelInstanceType: corev1.LabelInstanceTypeStable, corev1.LabelFailureDomainBetaZone: corev1.LabelTopologyZone,
		corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
	} {
		if value, ok := labels[label]; ok {
			labels[former] = value
		}
	}
	return labels
}

// counted are those labels that must be equal.
func counted(labels map[string]string) map[string]string {
	ignored := ignored()
	labels = maps.Clone(labels)
	maps.DeleteFunc(labels, func(label, _ string) bool { return slices.Contains(ignored, label) })
	return labels
}

// registered is a Node with the labels of its kubelet, of kube-controller-manager and of machine-controller-manager.
func registered(n *corev1.Node) {
	n.Labels = map[string]string{
		"kubernetes.io/hostname": "z-12345", "node.gardener.cloud/machine-name": "z-12345", "worker": "a",
		"kubernetes.io/os": "linux", "beta.kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "beta.kubernetes.io/arch": "amd64",
		"topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "local", "node.kubernetes.io/instance-type": "virtual.large",
	}
}

// inCloud adds what a cloud controller manager gives a Node.
func inCloud(n *corev1.Node) {
	registered(n)
	n.Labels["beta.kubernetes.io/instance-type"] = "virtual.large"
	n.Labels["failure-domain.beta.kubernetes.io/zone"], n.Labels["failure-domain.beta.kubernetes.io/region"] = "z1", "local"
}

var _ = DescribeTable("A group without Nodes is balanced with those that have some, by cluster-autoscaler's rule for labels and the flags of the example",
	func(labelled func(*corev1.Node), lent bool) {
		busy := Model{Group: "pool-z1", Class: Class("z1"), Node: fixture.Node("z-12345", labelled)}
		empty := Model{Group: "pool-z2", Class: Class("z2")}
		busy.Extra.Labels, empty.Extra.Labels = map[string]string{"worker": "a"}, map[string]string{"worker": "a"}
		var others []Model
		if lent {
			others = append(others, busy)
		}
		template, ok := NewTemplate(empty, others, nil)
		Expect(ok).To(BeTrue())
		Expect(counted(taken(template))).To(Equal(counted(busy.Node.Labels)))
		Expect(counted(busy.Node.Labels)).To(HaveKey("node.kubernetes.io/instance-type"))
	},
	Entry("in a cloud", inCloud, true),
	Entry("where Nodes do not have the former label of the instance type", registered, true),
	Entry("in a cloud, by the class alone", inCloud, false),
	Entry("elsewhere, by the class alone", registered, false),
)

var _ = It("tells users of each label that the example ignores", func() {
	Expect(flagged("../../../../docs/autoscaler.md")).To(ConsistOf(flagged(example)))
})
