// SPDX-License-Identifier: Apache-2.0

package similar_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	. "github.com/evenkeel/evenkeel/pkg/similar"
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
