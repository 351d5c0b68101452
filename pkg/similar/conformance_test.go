// SPDX-License-Identifier: Apache-2.0

package similar_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/pkg/similar"
)

// The tables of this file are what cluster-autoscaler answers for the same Nodes.

type pair struct{ a, b machine }

func of(a, b machine) pair { return pair{a, b} }

func ignoring(labels ...string) Options {
	o := Defaults()
	o.IgnoredLabels = labels
	return o
}

func azure(more ...string) Options {
	o := ignoring(append(AzureLabels(), more...)...)
	o.PoolLabels = AzurePoolLabels()
	return o
}

func balancing(labels ...string) Options {
	o := Defaults()
	o.BalancingLabels = labels
	return o
}

// judged asks in both directions, and for the groups of the two, which must say the same.
func judged(o Options, p pair, similar bool) {
	a, b := p.a.template("a"), p.b.template("b")
	Expect(Similar(a, b, o)).To(Equal(similar), "a, b")
	Expect(Similar(b, a, o)).To(Equal(similar), "b, a")
	groups := [][]string{{"a"}, {"b"}}
	if similar {
		groups = [][]string{{"a", "b"}}
	}
	Expect(Groups([]Template{a, b}, o)).To(Equal(groups))
	difference, same := Compare(a, b, o)
	Expect(same).To(Equal(similar))
	Expect(difference == Difference{}).To(Equal(similar))
}

const yes, no = true, false

var _ = DescribeTable("resources", judged,
	Entry("identical", Defaults(), of(node(), node()), yes),
	Entry("both with a pod", Defaults(), of(node(pod("cpu=500m memory=1000")), node(pod("cpu=500m memory=1000"))), yes),
	Entry("capacity a little off", Defaults(), of(node(), node(capacity("cpu=1001m"))), no),
	Entry("one with a GPU", Defaults(), of(node(), node(size("nvidia.com/gpu=1"))), no),
	Entry("a GPU in capacity alone", Defaults(), of(node(), node(capacity("nvidia.com/gpu=1"))), no),
	Entry("as much of another resource", Defaults(), of(node(capacity("example.com/a=1")), node(capacity("example.com/b=1"))), no),
	Entry("allocatable a little off", Defaults(), of(node(), node(allocatable("cpu=999m"))), yes),
	Entry("allocatable far off", Defaults(), of(node(), node(allocatable("cpu=500m"))), no),
	Entry("the same free, allocatable far off", Defaults(),
		of(node(pod("cpu=500m memory=1000")), node(allocatable("cpu=500m memory=1000"))), no),
	Entry("free a little off", Defaults(),
		of(node(pod("cpu=500m memory=1000")), node(allocatable("cpu=999m"), pod("cpu=501m memory=1001"))), yes),
	Entry("free far off", Defaults(), of(node(pod("cpu=500m")), node(pod("cpu=550m"))), no),
	Entry("memory of capacity 1.4 % off", Defaults(), of(node(size("memory=1000")), node(size("memory=1000"), capacity("memory=986"))), yes),
	Entry("memory of capacity 1.6 % off", Defaults(), of(node(size("memory=1000")), node(size("memory=1000"), capacity("memory=984"))), no),
	Entry("16 GiB, close", Defaults(), of(node(size("memory=16116152Ki")), node(size("memory=15944120Ki"))), yes),
	Entry("16 GiB, not close", Defaults(), of(node(size("memory=16116152Ki")), node(size("memory=16438475Ki"))), no),
	Entry("256 GiB, close", Defaults(), of(node(size("memory=259970052Ki")), node(size("memory=257217528Ki"))), yes),
	Entry("256 GiB, not close", Defaults(), of(node(size("memory=259970052Ki")), node(size("memory=265169453Ki"))), no),
)

// The edges: a ratio is of the larger, and what is just as far apart is still similar.
var _ = DescribeTable("edges", judged,
	Entry("memory, the last", Defaults(), of(node(size("memory=1000")), node(size("memory=1000"), capacity("memory=985"))), yes),
	Entry("allocatable, the last", Defaults(), of(node(), node(allocatable("cpu=950m"))), yes),
	Entry("allocatable, the first too far", Defaults(), of(node(), node(allocatable("cpu=949m"))), no),
	Entry("allocatable, of the larger and not of the smaller", Defaults(),
		of(node(allocatable("cpu=900m")), node(allocatable("cpu=947m"))), yes),
	Entry("free, the last", Defaults(), of(node(pod("cpu=500m")), node(pod("cpu=525m"))), yes),
	Entry("free, the first too far", Defaults(), of(node(pod("cpu=500m")), node(pod("cpu=526m"))), no),
	Entry("a slot for each pod", Defaults(), of(node(size("pods=10")), node(size("pods=10"), pod(""))), no),
	Entry("beyond an int64, equal", Defaults(), of(node(size("cpu=100E")), node(size("cpu=100000000000000000000"))), yes),
	Entry("beyond an int64, different", Defaults(), of(node(size("cpu=100E")), node(size("cpu=200E"))), no),
	Entry("beyond an int64 in thousandths, close", Defaults(), of(node(size("memory=99100000000000000500m")), node(size("memory=99000000000000000500m"))), yes),
	Entry("beyond an int64 in thousandths, not close", Defaults(), of(node(size("memory=99100000000000000500m")), node(size("memory=91000000000000000500m"))), no),
	Entry("none of a resource", Defaults(), of(node(), node(size("hugepages-2Mi=0 gpu=0"))), yes),
	Entry("allocatable on one only", Defaults(), of(node(), node(allocatable("example.com/fpga=1"))), no),
	Entry("written in another unit", Defaults(), of(node(size("cpu=1")), node(size("cpu=1000m"))), yes),
	Entry("written in another unit, the last", Defaults(), of(node(allocatable("cpu=1")), node(allocatable("cpu=950m"))), yes),
	Entry("written in another unit, the first too far", Defaults(), of(node(allocatable("cpu=1")), node(allocatable("cpu=949m"))), no),
	Entry("whatever the amounts, but a resource on one only", Options{MemoryRatio: 1, AllocatableRatio: 1, FreeRatio: 1},
		of(node(allocatable("cpu=1m")), node(allocatable("example.com/fpga=1"))), no),
	Entry("whatever the amounts", Options{MemoryRatio: 1, AllocatableRatio: 1, FreeRatio: 1},
		of(node(allocatable("cpu=1m"), pod("cpu=1")), node(size("memory=9000"))), yes),
	Entry("beyond what thousandths of an int64 hold", Defaults(), of(node(size("ephemeral-storage=7Ei")), node(size("ephemeral-storage=6Ei"))), no),
	Entry("all of a resource in use", Defaults(), of(node(pod("cpu=1")), node(pod("cpu=2"))), yes),
)

var _ = DescribeTable("labels", judged,
	Entry("on one", Defaults(), of(node(label("character=thing")), node()), no),
	Entry("equal on both", Defaults(), of(node(label("character=thing")), node(label("character=thing"))), yes),
	Entry("different", Defaults(), of(node(label("character=thing")), node(label("character=other"))), no),
	Entry("empty on one, lacking on the other", Defaults(), of(node(label("character=")), node()), no),
	Entry("hostname", Defaults(), of(node(label("kubernetes.io/hostname=node1")), node(label("kubernetes.io/hostname=node2"))), yes),
	Entry("zone, of old", Defaults(), of(node(label("failure-domain.beta.kubernetes.io/zone=mars-olympus1")),
		node(label("failure-domain.beta.kubernetes.io/zone=us-houston1"))), yes),
	Entry("region, of old", Defaults(), of(node(label("failure-domain.beta.kubernetes.io/region=mars")),
		node(label("failure-domain.beta.kubernetes.io/region=us"))), yes),
	Entry("zone", Defaults(), of(node(label("topology.kubernetes.io/zone=a")), node(label("topology.kubernetes.io/zone=b"))), yes),
	Entry("a volume driver's zone", Defaults(), of(node(label("topology.ebs.csi.aws.com/zone=a")), node(label("topology.ebs.csi.aws.com/zone=b"))), yes),
	Entry("a zone of something else", Defaults(), of(node(label("example.com/zone=a")), node(label("example.com/zone=b"))), no),
	Entry("something else of a volume driver", Defaults(), of(node(label("topology.ebs.csi.aws.com/kind=a")), node(label("topology.ebs.csi.aws.com/kind=b"))), no),
	Entry("region", Defaults(), of(node(label("topology.kubernetes.io/region=a")), node(label("topology.kubernetes.io/region=b"))), yes),
	Entry("fluentd-ds-ready", Defaults(), of(node(label("beta.kubernetes.io/fluentd-ds-ready=true")),
		node(label("beta.kubernetes.io/fluentd-ds-ready=false"))), yes),
	Entry("fluentd-ds-ready on one", Defaults(), of(node(label("beta.kubernetes.io/fluentd-ds-ready=true")), node()), yes),
	Entry("kops' group", Defaults(), of(node(label("kops.k8s.io/instancegroup=a")), node(label("kops.k8s.io/instancegroup=b"))), yes),
	Entry("ignored by the user", ignoring("example.com/ready"), of(node(label("example.com/ready=true")),
		node(label("example.com/ready=false"))), yes),
	Entry("ignored by the user, on one", ignoring("example.com/ready"), of(node(label("example.com/ready=true")), node()), yes),
	Entry("the same value of another label", Defaults(), of(node(label("example.com/a=x")), node(label("example.com/b=x"))), no),
	Entry("beside one ignored by the user", ignoring("example.com/ready"), of(node(label("example.com/steady=true")), node()), no),
)

// awsEntries are each of the labels, both empty, different, and on one.
func awsEntries() []TableEntry {
	var all []TableEntry
	for _, key := range AWSLabels() {
		all = append(all,
			Entry(key+" empty", ignoring(AWSLabels()...), of(node(label(key+"=")), node(label(key+"="))), yes),
			Entry(key+" different", ignoring(AWSLabels()...), of(node(label(key+"=foo")), node(label(key+"=bar"))), yes),
			Entry(key+" on one", ignoring(AWSLabels()...), of(node(label(key+"=foo")), node()), yes),
		)
	}
	return all
}

var _ = DescribeTable("AWS", judged, awsEntries())

var _ = It("knows the seven labels of AWS", func() { Expect(AWSLabels()).To(HaveLen(7)) })

const (
	agentpool  = "agentpool="
	kubernetes = "kubernetes.azure.com/agentpool="
	custom     = "example.com/label=on one"
	additional = "kubernetes.azure.com/consolidated-additional-properties="
)

var _ = DescribeTable("Azure", judged,
	Entry("no pool", azure(), of(node(label(custom)), node()), no),
	Entry("pools empty", azure(), of(node(label(custom, agentpool)), node(label(agentpool))), no),
	Entry("pools different by the new label", azure(),
		of(node(label(custom, agentpool, kubernetes+"foo")), node(label(agentpool, kubernetes+"bar"))), no),
	Entry("one pool empty", azure(), of(node(label(custom, agentpool)), node(label(agentpool+"foo"))), no),
	Entry("one pool absent", azure(), of(node(label(custom)), node(label(agentpool+"foo"))), no),
	Entry("pools different", azure(), of(node(label(custom, agentpool+"foo1")), node(label(agentpool+"foo2"))), no),
	Entry("pools equal", azure(), of(node(label(custom, agentpool+"foo")), node(label(agentpool+"foo"))), yes),
	Entry("pools equal by the new label", azure(), of(node(label(custom, kubernetes+"foo")), node(label(kubernetes+"foo"))), yes),
	Entry("pools different, else equal", azure(), of(node(label(agentpool+"foo")), node(label(agentpool+"bar"))), yes),
	Entry("creation source", azure(), of(node(label(agentpool+"foo", "creationSource=aks-aks-1")),
		node(label(agentpool+"bar", "creationSource=aks-aks-2"))), yes),
	Entry("image version", azure(), of(node(label("kubernetes.azure.com/node-image-version=1")),
		node(label("kubernetes.azure.com/node-image-version=2"))), yes),
	Entry("ignored by the user", azure("example.com/ready"), of(node(label("example.com/ready=true")),
		node(label("example.com/ready=false"))), yes),
	Entry("additional properties on one", azure(), of(node(label(additional+"foo")), node()), yes),
	Entry("additional properties the same", azure(), of(node(label(additional+"foo")), node(label(additional+"foo"))), yes),
	Entry("additional properties different", azure(), of(node(label(additional+"foo")), node(label(additional+"bar"))), yes),
)

var _ = DescribeTable("--balancing-label", func(p pair, similar bool) {
	judged(balancing("example.com/instance-type", "example.com/arch"), p, similar)
},
	Entry("equal", of(node(types("a", "x")), node(types("a", "x"))), yes),
	Entry("what is not listed differs", of(node(types("a", "x"), label("other=1"), size("cpu=8")), node(types("a", "x"))), yes),
	Entry("empty", of(node(types("", "")), node(types("", ""))), yes),
	Entry("one empty, equal on both", of(node(types("", "x")), node(types("", "x"))), yes),
	Entry("one differs", of(node(types("a", "x")), node(types("a", "y"))), no),
	Entry("both absent", of(node(), node()), no),
	Entry("absent on the first", of(node(), node(types("a", "x"))), no),
	Entry("absent on the second", of(node(types("a", "x")), node()), no),
	Entry("one label absent on both", of(node(label("example.com/arch=x")), node(label("example.com/arch=x"))), no),
	Entry("values that look alike in a row", of(node(types("a", "bc")), node(types("ab", "c"))), no),
)

func types(instance, arch string) change {
	return label("example.com/instance-type="+instance, "example.com/arch="+arch)
}

var _ = DescribeTable("groups", func(o Options, all []Template, groups ...[]string) {
	Expect(Groups(all, o)).To(Equal(groups))
},
	Entry("two alike", exactly(), named(node(size("memory=1000")), node(size("memory=1000")), node(size("cpu=2 memory=2000"))),
		[]string{"ng1", "ng2"}, []string{"ng3"}),
	Entry("an ignored label differs", Options{IgnoredLabels: []string{"ready"}},
		named(node(label("ready=1")), node(label("ready=2")), node(size("cpu=2"))), []string{"ng1", "ng2"}, []string{"ng3"}),
	Entry("only what is asked for counts", Options{BalancingLabels: []string{"kind"}},
		named(node(label("kind=a")), node(label("kind=a"), size("cpu=2")), node(label("kind=b"))), []string{"ng1", "ng2"}, []string{"ng3"}),
	Entry("Azure, by size", azure(), named(node(), node(size("cpu=2"))), []string{"ng1"}, []string{"ng2"}),
	Entry("Azure, by pool", azure(), named(node(label(agentpool+"foobar")), node(label(agentpool+"foobar"), size("cpu=2"))),
		[]string{"ng1", "ng2"}),
	Entry("Azure, by size across pools", azure(), named(node(label(agentpool+"foobar1")),
		node(label(agentpool+"foobar2"), size("cpu=2")), node(label(agentpool+"foobar3"))), []string{"ng1", "ng3"}, []string{"ng2"}),
	Entry("a pool joins those of different size, and whom they resemble", azure(),
		named(node(label(agentpool+"x")), node(label(agentpool+"x"), size("cpu=2")), node(size("cpu=2")), node(size("cpu=4"))),
		[]string{"ng1", "ng2", "ng3"}, []string{"ng4"}),
	Entry("pools by one label", Options{PoolLabels: []string{"pool"}}, named(node(label("pool=x")), node(label("pool=x"), size("cpu=2"))),
		[]string{"ng1", "ng2"}),
	Entry("pools by two labels form a chain", azure(),
		named(node(label(agentpool+"x"), size("cpu=2")), node(label(agentpool+"x", kubernetes+"y"), size("cpu=4")),
			node(label(kubernetes+"y"), size("cpu=8")), node(label(kubernetes+"x"), size("cpu=16"))),
		[]string{"ng1", "ng2", "ng3"}, []string{"ng4"}),
	Entry("nobody", Defaults(), nil),
)

var _ = It("does not count what is free of a resource that is not allocatable", func() {
	a, b := node().template("a"), node().template("b")
	b.Free["example.com/fpga"] = amounts("x=1")["x"]
	Expect(Similar(a, b, Defaults())).To(BeTrue())
	Expect(Groups([]Template{a, b}, Defaults())).To(HaveLen(1))
})
