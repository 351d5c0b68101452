// SPDX-License-Identifier: Apache-2.0

package similar_test

import (
	"math"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	. "github.com/evenkeel/evenkeel/pkg/similar"
)

var _ = DescribeTable("options", func(change func(*Options), refused string) {
	o := Defaults()
	change(&o)
	if refused == "" {
		Expect(o.Validate()).To(Succeed())
		return
	}
	Expect(o.Validate()).To(MatchError(ContainSubstring(refused)))
},
	Entry("as they come", func(*Options) {}, ""),
	Entry("exact", func(o *Options) { *o = Options{} }, ""),
	Entry("anything goes", func(o *Options) { o.MemoryRatio, o.AllocatableRatio, o.FreeRatio = 1, 1, 1 }, ""),
	Entry("negative memory", func(o *Options) { o.MemoryRatio = -0.1 }, "--memory-difference-ratio"),
	Entry("too much allocatable", func(o *Options) { o.AllocatableRatio = 1.1 }, "--max-allocatable-difference-ratio"),
	Entry("free that is no number", func(o *Options) { o.FreeRatio = math.NaN() }, "--max-free-difference-ratio"),
	Entry("ignored labels", func(o *Options) { o.IgnoredLabels = []string{"a"} }, ""),
	Entry("balancing labels", func(o *Options) { o.BalancingLabels = []string{"a"} }, ""),
	Entry("both", func(o *Options) { o.IgnoredLabels, o.BalancingLabels = []string{"a"}, []string{"b"} }, "exclude each other"),
)

var _ = DescribeTable("one label that balances", func(a, b machine, said string) {
	d, similar := Compare(a.template("a"), b.template("b"), balancing("kind"))
	Expect(similar).To(Equal(said == ""))
	if !similar {
		Expect(d.String()).To(Equal(said))
	}
},
	Entry("and nothing else", node(label("kind=a")), node(label("kind=a"), size("cpu=2")), ""),
	Entry("with other values", node(label("kind=a")), node(label("kind=b")), "label kind: a and b"),
	Entry("on neither", node(), node(), "label kind: none and none"),
	Entry("empty on one, and not on the other", node(label("kind=")), node(), "label kind: none and none"),
	Entry("not on one, and empty on the other", node(), node(label("kind=")), "label kind: none and none"),
)

var _ = DescribeTable("the difference that is told", func(a, b machine, said string) {
	d, similar := Compare(a.template("a"), b.template("b"), Defaults())
	Expect(similar).To(BeFalse())
	Expect(d.String()).To(Equal(said))
},
	Entry("capacity", node(), node(capacity("cpu=2")), "capacity cpu: 1 and 2"),
	Entry("a resource on one", node(), node(capacity("nvidia.com/gpu=1")), "capacity nvidia.com/gpu: none and 1"),
	Entry("capacity first", node(label("a=b")), node(size("cpu=2"), pod("cpu=1")), "capacity cpu: 1 and 2"),
	Entry("by name", node(), node(capacity("cpu=2 memory=1 a=1")), "capacity a: none and 1"),
	Entry("allocatable", node(pod("cpu=900m")), node(allocatable("cpu=500m"), label("a=b")), "allocatable cpu: 1 and 500m"),
	Entry("free", node(label("a=b")), node(pod("cpu=500m")), "free cpu: 1 and 500m"),
	Entry("label", node(label("z=1", "b=2")), node(label("z=2")), "label b: 2 and none"),
)

func taint(key, value string, effect corev1.TaintEffect) corev1.Taint {
	return corev1.Taint{Key: key, Value: value, Effect: effect}
}

var (
	dedicated = taint("dedicated", "batch", corev1.TaintEffectNoSchedule)
	other     = taint("dedicated", "web", corev1.TaintEffectNoSchedule)
	evicting  = taint("dedicated", "batch", corev1.TaintEffectNoExecute)
	avoided   = taint("dedicated", "batch", corev1.TaintEffectPreferNoSchedule)
)

// pooled joins what has the same value of a label.
func pooled(label string) Options {
	o := Defaults()
	o.PoolLabels = []string{label}
	return o
}

var _ = DescribeTable("taints", func(o Options, x, y []corev1.Taint, want string) {
	changes := func(m *machine) { m.node.Labels["team"] = "a" }
	a, b := node(changes).template("a"), node(changes).template("b")
	a.Taints, b.Taints = x, y
	difference, same := Compare(a, b, o)
	Expect(same).To(Equal(want == ""))
	if !same {
		Expect(difference.String()).To(Equal(want))
	}
	Expect(Similar(b, a, o)).To(Equal(same))
	Expect(Groups([]Template{a, b}, o)).To(HaveLen(map[bool]int{true: 1, false: 2}[same]))
},
	Entry("of neither", Defaults(), nil, nil, ""),
	Entry("the same, in another order, one twice", Defaults(), []corev1.Taint{dedicated, evicting}, []corev1.Taint{evicting, dedicated, evicting}, ""),
	Entry("of one", Defaults(), []corev1.Taint{dedicated}, nil, "taint dedicated=batch:NoSchedule: there and none"),
	Entry("of the other", Defaults(), []corev1.Taint{dedicated}, []corev1.Taint{evicting, dedicated}, "taint dedicated=batch:NoExecute: none and there"),
	Entry("with other values", Defaults(), []corev1.Taint{dedicated}, []corev1.Taint{other}, "taint dedicated=batch:NoSchedule: there and none"),
	Entry("that keep no pod away", Defaults(), []corev1.Taint{avoided}, nil, ""),
	Entry("the same in one pool", pooled("team"), []corev1.Taint{dedicated}, []corev1.Taint{dedicated}, ""),
	Entry("of one machine of a pool", pooled("team"), []corev1.Taint{dedicated}, nil, "taint dedicated=batch:NoSchedule: there and none"),
	Entry("that keep no pod away from one of a pool", pooled("team"), []corev1.Taint{avoided}, nil, ""),
	Entry("where only labels count", balancing("team"), []corev1.Taint{dedicated}, nil, "taint dedicated=batch:NoSchedule: there and none"),
)
