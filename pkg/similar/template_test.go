// SPDX-License-Identifier: Apache-2.0

package similar_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/similar"
)

func class(zone string, changes ...func(*v1alpha1.NodeTemplate)) *v1alpha1.NodeTemplate {
	t := &v1alpha1.NodeTemplate{
		Capacity: amounts("cpu=4 memory=8Gi gpu=0"), InstanceType: "m5.xlarge", Region: "eu-1", Zone: zone,
	}
	for _, c := range changes {
		c(t)
	}
	return t
}

func estimate(name string, t *v1alpha1.NodeTemplate) Template {
	estimated, ok := FromClass(name, t, map[string]string{"worker.gardener.cloud/pool": "p"})
	Expect(ok).To(BeTrue())
	return estimated
}

var _ = DescribeTable("capacity by class", func(change func(*v1alpha1.NodeTemplate), want string) {
	given := class("a", change)
	before := given.DeepCopy()
	t := estimate("md", given)
	expected := amounts(want)
	for _, l := range []corev1.ResourceList{t.Capacity, t.Allocatable, t.Free} {
		Expect(l).To(HaveLen(len(expected)))
		for name, q := range expected {
			Expect(q.Cmp(l[name])).To(BeZero(), string(name))
		}
	}
	Expect(t.Estimated).To(BeTrue())
	Expect(given).To(Equal(before))
},
	Entry("usual", func(*v1alpha1.NodeTemplate) {}, "cpu=4 memory=8Gi pods=110"),
	Entry("pods are said", func(t *v1alpha1.NodeTemplate) { t.Capacity["pods"] = amounts("pods=20")["pods"] }, "cpu=4 memory=8Gi pods=20"),
	Entry("GPUs", func(t *v1alpha1.NodeTemplate) { t.Capacity["gpu"] = amounts("gpu=2")["gpu"] }, "cpu=4 memory=8Gi pods=110 nvidia.com/gpu=2"),
	Entry("GPUs said twice", func(t *v1alpha1.NodeTemplate) { t.Capacity = amounts("cpu=1 gpu=2 nvidia.com/gpu=3") }, "cpu=1 pods=110 nvidia.com/gpu=3"),
	Entry("virtual capacity", func(t *v1alpha1.NodeTemplate) { t.VirtualCapacity = amounts("example.com/licence=3 pods=30") },
		"cpu=4 memory=8Gi pods=30 example.com/licence=3"),
	Entry("nothing", func(t *v1alpha1.NodeTemplate) { t.Capacity = nil }, "pods=110"),
)

var _ = DescribeTable("labels by class", func(change func(*v1alpha1.NodeTemplate), arch string) {
	Expect(estimate("md", class("a", change)).Labels).To(Equal(map[string]string{
		"kubernetes.io/os": "linux", "kubernetes.io/arch": arch, "node.kubernetes.io/instance-type": "m5.xlarge",
		"topology.kubernetes.io/region": "eu-1", "topology.kubernetes.io/zone": "a", "worker.gardener.cloud/pool": "p",
	}))
},
	Entry("architecture not said", func(*v1alpha1.NodeTemplate) {}, "amd64"),
	Entry("architecture empty", func(t *v1alpha1.NodeTemplate) { t.Architecture = ptr.To("") }, "amd64"),
	Entry("architecture", func(t *v1alpha1.NodeTemplate) { t.Architecture = ptr.To("arm64") }, "arm64"),
)

var _ = It("lets the pool's own labels count more, and leaves out what is not said", func() {
	t, ok := FromClass("md", &v1alpha1.NodeTemplate{}, map[string]string{"kubernetes.io/os": "windows"})
	Expect(ok).To(BeTrue())
	Expect(t.Labels).To(Equal(map[string]string{"kubernetes.io/os": "windows", "kubernetes.io/arch": "amd64"}))
})

var _ = It("has no template where the class has none", func() {
	_, ok := FromClass("md", nil, map[string]string{"a": "b"})
	Expect(ok).To(BeFalse())
})

// kubeletNode is a machine of the class as its Node shows it: something kept back, something used by DaemonSets, labels
// of its own zone and machine.
func kubeletNode(zone string, changes ...change) machine {
	all := []change{
		size("cpu=4 memory=8Gi pods=110 hugepages-2Mi=0"), allocatable("cpu=3500m memory=6Gi"), pod("cpu=500m memory=1Gi"),
		label("kubernetes.io/os=linux", "beta.kubernetes.io/os=linux", "kubernetes.io/arch=amd64", "kubernetes.io/hostname=n-"+zone,
			"node.gardener.cloud/machine-name=n-"+zone, "node.kubernetes.io/instance-type=m5.xlarge",
			"beta.kubernetes.io/instance-type=m5.xlarge", "topology.kubernetes.io/zone="+zone, "topology.ebs.csi.aws.com/zone="+zone,
			"worker.gardener.cloud/pool=p"),
	}
	return node(append(all, changes...)...)
}

// A zone without machines belongs to the zones that have some, though a MachineClass does not say what is kept back.
var _ = DescribeTable("groups with estimates", func(groups [][]string, all ...Template) {
	Expect(Similar(estimate("a", class("a")), kubeletNode("b").template("b"), Defaults())).To(BeFalse())
	before := make([]Template, len(all))
	copy(before, all)
	Expect(Groups(all, Defaults())).To(Equal(groups))
	Expect(all).To(Equal(before))
	rapid.Check(GinkgoT(), func(t *rapid.T) {
		if got := Groups(rapid.Permutation(all).Draw(t, "order"), Defaults()); !same(got, groups) {
			t.Fatalf("%v", got)
		}
	})
},
	Entry("one zone is empty", [][]string{{"z1", "z2", "z3"}},
		kubeletNode("a").template("z1"), kubeletNode("b").template("z2"), estimateIn("z3", "c")),
	Entry("all but one are", [][]string{{"z1", "z2", "z3"}}, kubeletNode("a").template("z1"), estimateIn("z2", "b"), estimateIn("z3", "c")),
	Entry("all are", [][]string{{"z1", "z2"}}, estimateIn("z1", "a"), estimateIn("z2", "b")),
	Entry("of another size", [][]string{{"z1"}, {"z2"}}, kubeletNode("a", capacity("cpu=8")).template("z1"), estimateIn("z2", "b")),
	Entry("of another memory", [][]string{{"z1"}, {"z2"}}, kubeletNode("a", capacity("memory=8200Mi")).template("z1"),
		estimateWith("z2", func(t *v1alpha1.NodeTemplate) { t.Capacity["memory"] = amounts("memory=7800Mi")["memory"] })),
	Entry("with another label", [][]string{{"z1"}, {"z2"}}, kubeletNode("a", label("x=y")).template("z1"), estimateIn("z2", "b")),
	Entry("the real ones disagree", [][]string{{"z1"}, {"z2"}, {"z3"}},
		kubeletNode("a").template("z1"), kubeletNode("b", pod("cpu=1")).template("z2"), estimateIn("z3", "c")),
	Entry("the real ones that disagree are not all near in memory", [][]string{{"z1", "z3"}, {"z2"}},
		kubeletNode("a").template("z1"), kubeletNode("b", capacity("memory=9Gi")).template("z2"), estimateIn("z3", "c")),
	Entry("the real ones that disagree are not of the kind", [][]string{{"z1", "z3"}, {"z2"}},
		kubeletNode("a").template("z1"), kubeletNode("b", pod("cpu=1"), label("x=y")).template("z2"), estimateIn("z3", "c")),
)

func estimateIn(name, zone string) Template {
	return estimateWith(name, func(t *v1alpha1.NodeTemplate) { t.Zone = zone })
}

// estimateWith is for tables, which are built before Gomega is there to fail.
func estimateWith(name string, change func(*v1alpha1.NodeTemplate)) Template {
	t, _ := FromClass(name, class("", change), map[string]string{"worker.gardener.cloud/pool": "p"})
	return t
}

var _ = It("lends what the machine nearest in memory has, then the first by name", func() {
	lender := func(name, memory, cpu string) Template {
		return kubeletNode(name, capacity("memory="+memory), allocatable("cpu="+cpu)).template(name)
	}
	far, near, nearer := lender("far", "8100Mi", "3501m"), lender("near", "8190Mi", "3502m"), lender("nearer", "8190Mi", "3503m")
	for _, all := range [][]Template{{far, near, nearer, estimateIn("z", "z")}, {nearer, near, far, estimateIn("z", "z")}} {
		completed := Completed(all, Defaults())
		Expect(completed[:3]).To(Equal(all[:3]))
		Expect(completed[3].Allocatable).To(Equal(near.Allocatable))
		Expect(completed[3].Free).To(Equal(near.Free))
		Expect(completed[3].Capacity).To(Equal(all[3].Capacity))
		Expect(all[3].Allocatable).To(Equal(all[3].Capacity))
	}
})

var _ = It("lends what a machine has whose ignored labels differ", func() {
	all := []Template{kubeletNode("a", label("example.com/ready=true")).template("a"), estimateIn("z", "z")}
	Expect(Completed(all, Defaults())).To(Equal(all))
	Expect(Completed(all, ignoring("example.com/ready"))[1].Free).To(Equal(all[0].Free))
})

var _ = It("lends nothing to what is too far off in memory", func() {
	all := []Template{kubeletNode("a", capacity("memory=9Gi")).template("a"), estimateIn("z", "z")}
	Expect(Completed(all, Defaults())).To(Equal(all))
})

var _ = It("lends nothing where those that could lend are of two groups", func() {
	all := []Template{kubeletNode("a").template("a"), kubeletNode("b", pod("cpu=1")).template("b"), estimateIn("z", "z")}
	Expect(Completed(all, Defaults())).To(Equal(all))
})
