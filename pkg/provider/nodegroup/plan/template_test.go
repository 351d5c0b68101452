// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"maps"
	"math"
	"os"
	"regexp"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
	"github.com/evenkeel/evenkeel/pkg/similar"
	. "github.com/evenkeel/evenkeel/test/builders/nodegroup"
	"github.com/evenkeel/evenkeel/test/fixture"
)

func amounts(pairs ...string) corev1.ResourceList {
	all := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		all[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return all
}

// extraIn is what a MachineDeployment adds in a zone.
func extraIn(zone string) v1alpha1.NodeTemplateSpec {
	extra := v1alpha1.NodeTemplateSpec{}
	extra.Labels = map[string]string{"worker": "a", "topology.ebs.csi.aws.com/zone": zone}
	extra.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
	return extra
}

// seen is a Node as it is found in a cluster: what one machine has for itself and what is being done to it included.
func seen(zone string) *corev1.Node {
	return fixture.Node("z-12345", func(n *corev1.Node) {
		n.Labels = map[string]string{
			"kubernetes.io/hostname": "z-12345", "node.gardener.cloud/machine-name": "z-12345", "node.machine.sapcloud.io/selected-for-update": "true",
			"topology.kubernetes.io/zone": zone, "failure-domain.beta.kubernetes.io/zone": zone, "topology.ebs.csi.aws.com/zone": zone,
			"beta.kubernetes.io/arch": "amd64", "kubernetes.io/arch": "amd64", "node.kubernetes.io/instance-type": "virtual.large", "worker": "a",
		}
		n.Spec.Taints = []corev1.Taint{
			{Key: v1alpha1.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}, {Key: "ToBeDeletedByClusterAutoscaler", Effect: corev1.TaintEffectNoSchedule},
		}
		n.Spec.Unschedulable = true
		n.Status.Allocatable = amounts("cpu", "3800m", "memory", "14Gi", "pods", "110")
		n.Status.Conditions[0].Status = corev1.ConditionUnknown
	})
}

func modelIn(zone string, node *corev1.Node) Model {
	return Model{Group: "pool-" + zone, Class: Class(zone), Extra: extraIn(zone), Node: node}
}

func ready(n *corev1.Node) corev1.ConditionStatus {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return ""
}

var _ = Describe("A template", func() {
	It("is like a Node of the group, made fresh", func() {
		node, ok := NewTemplate(modelIn("z1", seen("z1")), nil, nil)
		Expect(ok).To(BeTrue())
		Expect(node.Labels).To(Equal(map[string]string{
			"kubernetes.io/hostname": "pool-z1-template", "worker": "a", "beta.kubernetes.io/arch": "amd64", "kubernetes.io/arch": "amd64",
			"topology.kubernetes.io/zone": "z1", "failure-domain.beta.kubernetes.io/zone": "z1", "topology.ebs.csi.aws.com/zone": "z1",
			"node.kubernetes.io/instance-type": "virtual.large",
		}))
		Expect(node.Spec.Taints).To(Equal(extraIn("z1").Spec.Taints))
		Expect(node.Spec.Unschedulable).To(BeFalse())
		Expect(ready(node)).To(Equal(corev1.ConditionTrue))
		Expect(node.Status.Allocatable).To(Equal(amounts("cpu", "3800m", "memory", "14Gi", "pods", "110")))
		Expect(node.Annotations).To(BeEmpty())
	})

	It("has a name, a provider id and conditions as a healthy Node has them", func() {
		node, _ := NewTemplate(modelIn("z1", seen("z1")), nil, nil)
		Expect(node.Name).To(Equal("pool-z1-template"))
		Expect(node.Spec.ProviderID).To(Equal("requested://pool-z1-template"))
		conditions := map[corev1.NodeConditionType]corev1.ConditionStatus{}
		for _, c := range node.Status.Conditions {
			conditions[c.Type] = c.Status
		}
		Expect(conditions).To(Equal(map[corev1.NodeConditionType]corev1.ConditionStatus{
			"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "NetworkUnavailable": "False",
		}))
	})

	It("is like a Node of the group where there is no class, without what identifies the machine", func() {
		m := modelIn("z1", seen("z1"))
		m.Class = nil
		m.Node.Labels["alpha.eksctl.io/instance-id"], m.Node.Labels["node-role.kubernetes.io/worker"] = "i-1", ""
		before := m.Node.DeepCopy()
		node, ok := NewTemplate(m, nil, nil)
		Expect(ok).To(BeTrue())
		Expect(node.Labels).To(And(
			HaveKeyWithValue("topology.kubernetes.io/zone", "z1"), HaveKeyWithValue("node-role.kubernetes.io/worker", ""),
			Not(HaveKey("alpha.eksctl.io/instance-id"))))
		Expect(m.Node).To(Equal(before), "the Node is of the store")
	})

	It("needs a Node or a class", func() {
		m := modelIn("z2", nil)
		m.Class = nil
		_, ok := NewTemplate(m, []Model{modelIn("z1", seen("z1"))}, nil)
		Expect(ok).To(BeFalse())
	})

	It("is not like a Node of a group where only one of the two classes tells its zone", func() {
		without := func(m Model) Model {
			m.Class.Zone, m.Extra.Labels = "", map[string]string{"worker": "a"}
			return m
		}
		with := func(m Model) Model {
			m.Extra.Labels = map[string]string{"worker": "a"}
			return m
		}
		for _, models := range [][2]Model{
			{with(modelIn("z2", nil)), without(modelIn("z1", seen("z1")))}, {without(modelIn("z2", nil)), with(modelIn("z1", seen("z1")))},
			{without(modelIn("z2", nil)), without(modelIn("z1", seen("z1")))},
		} {
			node, ok := NewTemplate(models[0], models[1:], nil)
			Expect(ok).To(BeTrue())
			Expect(node.Status.Allocatable.Cpu().String()).To(Equal("3920m"), "it is that of the class")
		}
	})

	It("has the huge pages of its class, and writes what is all reserved in the way of the capacity", func() {
		m := modelIn("z1", nil)
		m.Class.VirtualCapacity = amounts("hugepages-2Mi", "4Mi")
		node, _ := NewTemplate(m, nil, amounts("memory", "99Gi"))
		Expect(quantities(node.Status.Capacity)).To(HaveKeyWithValue("hugepages-2Mi", "4Mi"))
		Expect(node.Status.Allocatable["memory"].Format).To(Equal(resource.BinarySI))
		Expect(node.Status.Allocatable.Memory().IsZero()).To(BeTrue())
	})

	It("is like a Node of a group that differs in nothing but the zone, so that the two compare similar", func() {
		empty, ok := NewTemplate(modelIn("z2", nil), []Model{modelIn("z1", seen("z1"))}, nil)
		Expect(ok).To(BeTrue())
		Expect(empty.Labels).To(And(
			HaveKeyWithValue("topology.kubernetes.io/zone", "z2"), HaveKeyWithValue("failure-domain.beta.kubernetes.io/zone", "z2"),
			HaveKeyWithValue("topology.ebs.csi.aws.com/zone", "z2"), HaveKeyWithValue("beta.kubernetes.io/arch", "amd64")))
		a, b := similar.FromNode("pool-z1", seen("z1"), nil), similar.FromNode("pool-z2", empty, nil)
		Expect(similar.Groups([]similar.Template{a, b}, similar.Defaults())).To(HaveLen(1))
	})

	DescribeTable("is not like a Node of another kind",
		func(change func(*Model)) {
			other := modelIn("z1", seen("z1"))
			change(&other)
			node, ok := NewTemplate(modelIn("z2", nil), []Model{other}, nil)
			Expect(ok).To(BeTrue())
			Expect(node.Status.Allocatable.Cpu().String()).NotTo(Equal("3800m"), "it is that of the class")
		},
		Entry("of other size", func(m *Model) { m.Class.Capacity["cpu"] = resource.MustParse("8") }),
		Entry("of other type", func(m *Model) { m.Class.InstanceType = "virtual.small" }),
		Entry("of other region", func(m *Model) { m.Class.Region = "elsewhere" }),
		Entry("with other labels", func(m *Model) { m.Extra.Labels["worker"] = "b" }),
		Entry("with other taints", func(m *Model) { m.Extra.Spec.Taints = nil }),
		Entry("with virtual capacity", func(m *Model) { m.Class.VirtualCapacity = amounts("example.org/x", "1") }),
		Entry("whose class does not contain the zone", func(m *Model) { m.Class.Zone = "" }),
		Entry("without a class", func(m *Model) { m.Class = nil }),
		Entry("without a Node", func(m *Model) { m.Node = nil }),
		Entry("of the group itself, listed among the others", func(m *Model) { m.Group = "pool-z2" }),
	)

	It("is built from the class if no Node was ever seen: scale from zero", func() {
		m := modelIn("z1", nil)
		m.Class.Capacity["gpu"] = resource.MustParse("2")
		m.Class.VirtualCapacity = amounts("example.org/lane", "4")
		node, ok := NewTemplate(m, nil, nil)
		Expect(ok).To(BeTrue())
		Expect(node.Labels).To(Equal(map[string]string{
			"kubernetes.io/hostname": "pool-z1-template", "worker": "a", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
			"beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux",
			"topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "local", "topology.ebs.csi.aws.com/zone": "z1",
			"node.kubernetes.io/instance-type": "virtual.large",
		}))
		Expect(quantities(node.Status.Capacity)).To(Equal(map[string]string{
			"cpu": "4", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "2", "example.org/lane": "4", "hugepages-1Gi": "0", "hugepages-2Mi": "0",
		}))
		Expect(quantities(node.Status.Allocatable)).To(Equal(map[string]string{
			"cpu": "3920m", "memory": "14283282842", "pods": "110", "nvidia.com/gpu": "2", "example.org/lane": "4", "hugepages-1Gi": "0", "hugepages-2Mi": "0",
		}))
		Expect(node.Spec.Taints).To(Equal(m.Extra.Spec.Taints))
		Expect(ready(node)).To(Equal(corev1.ConditionTrue))
	})

	It("has no huge pages of a size that other machines do not have", func() {
		m := modelIn("z1", nil)
		m.Class.Architecture = ptr.To("arm64")
		node, _ := NewTemplate(m, nil, nil)
		Expect(quantities(node.Status.Capacity)).To(Equal(map[string]string{"cpu": "4", "memory": "16Gi", "pods": "110"}))
	})

	It("never carries the reserve taint", func() {
		m := modelIn("z1", nil)
		m.Extra.Spec.Taints = append([]corev1.Taint{{Key: v1alpha1.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}}, m.Extra.Spec.Taints...)
		before := slices.Clone(m.Extra.Spec.Taints)
		node, _ := NewTemplate(m, nil, nil)
		Expect(node.Spec.Taints).To(Equal(extraIn("z1").Spec.Taints))
		Expect(m.Extra.Spec.Taints).To(Equal(before), "the list is of the store")
	})

	It("is none where it is unknown: an empty one crashes the caller", func() {
		_, ok := NewTemplate(Model{Group: "pool"}, nil, nil)
		Expect(ok).To(BeFalse())
	})

	It("leaves what it was made of alone", func() {
		m, other := modelIn("z2", nil), modelIn("z1", seen("z1"))
		before := other.Node.DeepCopy()
		node, _ := NewTemplate(m, []Model{other}, nil)
		node.Labels["x"], node.Status.Capacity["cpu"] = "y", resource.MustParse("1")
		Expect(other.Node).To(Equal(before))
		Expect(m.Extra).To(Equal(extraIn("z2")))
		Expect(m.Class).To(Equal(Class("z2")))
	})
})

func quantities(l corev1.ResourceList) map[string]string {
	all := map[string]string{}
	for name, q := range l {
		all[string(name)] = q.String()
	}
	return all
}

var _ = Describe("What pods can have", func() {
	DescribeTable("is what is usual",
		func(capacity, cpu, memory string) {
			q := resource.MustParse(capacity)
			all := Allocatable(corev1.ResourceList{"cpu": q, "memory": q}, nil)
			Expect([]int64{all.Cpu().MilliValue(), all.Memory().Value() >> 20}).To(Equal([]int64{mustMilli(cpu), mustMilli(memory) / 1000}))
		},
		Entry("of nothing", "0", "0", "0"),
		Entry("of a core", "1", "940m", "0"),
		Entry("of four", "4", "3920m", "0"),
		Entry("of ninety-six", "96", "95736m", "0"),
	)

	DescribeTable("of memory is what is usual",
		func(capacity, want string) {
			all := Allocatable(amounts("memory", capacity), nil)
			Expect(all.Memory().Value() >> 20).To(Equal(mustMilli(want) / 1000))
		},
		Entry("of little", "64Mi", "0"),
		Entry("of 4Gi", "4Gi", "2972"),
		Entry("of 8Gi", "8Gi", "6248"),
		Entry("of 256Gi", "256Gi", "249878"),
	)

	DescribeTable("leaves out less of each byte of memory, the more there is",
		func(from string, reserved int64) {
			small, large := resource.MustParse(from), resource.MustParse(from)
			large.Add(resource.MustParse("1k"))
			of := func(q resource.Quantity) int64 {
				all := Allocatable(corev1.ResourceList{"memory": q}, nil)
				return all.Memory().Value()
			}
			Expect(1000 - (of(large) - of(small))).To(Equal(reserved))
		},
		Entry("a quarter below 4Gi", "3Gi", int64(250)),
		Entry("a fifth from there", "4Gi", int64(200)),
		Entry("a tenth from 8Gi", "8Gi", int64(100)),
		Entry("6% from 16Gi", "16Gi", int64(60)),
		Entry("2% from 128Gi", "128Gi", int64(20)),
	)

	It("is all but what is said to be reserved, and that alone where it is said", func() {
		all := Allocatable(amounts("cpu", "4", "memory", "16Gi", "pods", "110", "ephemeral-storage", "100Gi"), amounts("cpu", "80m", "memory", "1Gi"))
		Expect(quantities(all)).To(Equal(map[string]string{"cpu": "3920m", "memory": "15Gi", "pods": "110", "ephemeral-storage": "90Gi"}))
	})

	It("is between nothing and everything, and more of a larger machine", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			name := rapid.SampledFrom([]corev1.ResourceName{"cpu", "memory", "ephemeral-storage", "example.org/x"}).Draw(t, "name")
			a := rapid.Int64Range(0, math.MaxInt64/2000).Draw(t, "a")
			b := rapid.Int64Range(a, math.MaxInt64/2000).Draw(t, "b")
			of := func(n int64) int64 {
				q := Allocatable(corev1.ResourceList{name: *resource.NewQuantity(n, resource.DecimalSI)}, nil)[name]
				return q.MilliValue()
			}
			if x, y := of(a), of(b); x < 0 || x > a*1000 || x > y {
				t.Fatalf("%s: %d of %d, %d of %d", name, x, a, y, b)
			}
		})
	})
})

func mustMilli(text string) int64 {
	q := resource.MustParse(text)
	return q.MilliValue()
}

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
