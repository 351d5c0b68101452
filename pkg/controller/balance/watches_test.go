// SPDX-License-Identifier: Apache-2.0

package balance_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance"
	"github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// changed is a MachineDeployment after a change.
func changed(change func(*v1alpha1.MachineDeployment)) *v1alpha1.MachineDeployment {
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
		Name: "a", UID: "uid", Generation: 1, Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"},
	}}
	change(d)
	return d
}

// offering is a Node that has been ready for long, after a change.
func offering(change func(*corev1.Node)) *corev1.Node {
	return fixture.Node("n", func(n *corev1.Node) {
		n.Labels = map[string]string{"l": "1"}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("3")}
		n.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("4")}
		change(n)
	})
}

var _ = DescribeTable("A change of a Node, while a pool has an excess,",
	func(decides bool, was, is any) {
		storm.Bubble(suite, func() {
			p, err := NewPreview("default", plan.Settings{}, true)
			Expect(err).NotTo(HaveOccurred())
			Expect(p.DelaysAfter([2]any{was, is})).To(HaveLen(map[bool]int{true: 1}[decides]))
		})
	},
	Entry("is decided on if it comes", true, nil, ready),
	Entry("if it goes", true, ready, nil),
	Entry("if it has a device", true, ready, offering(func(n *corev1.Node) { n.Status.Allocatable["gpu"] = resource.MustParse("1") })),
	Entry("if it is larger", true, ready, offering(func(n *corev1.Node) { n.Status.Capacity["cpu"] = resource.MustParse("8") })),
	Entry("if it gets another label", true, ready, offering(func(n *corev1.Node) { n.Labels["l"] = "2" })),
	Entry("if it is cordoned", true, ready, cordoned),
	Entry("if it is no longer cordoned", true, cordoned, ready),
	Entry("not if it reports how it is", false, ready, offering(func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.Now() })),
	Entry("not if it shows nothing before and after", false, cordoned, offering(func(n *corev1.Node) { n.Spec.Unschedulable, n.Labels["l"] = true, "2" })),
	Entry("nor if it comes and shows nothing", false, nil, cordoned),
	Entry("if it is not ready any more, though it shows nothing", true, cordoned, lost),
	Entry("if it is ready again, though it shows nothing", true, lost, cordoned),
	Entry("if it comes and is not ready", true, nil, lost),
	Entry("not if it is still not ready", false, lost, offering(func(n *corev1.Node) { unschedulable(n); n.Status.Conditions[0].Status = corev1.ConditionFalse })),
)

var (
	ready    = offering(func(*corev1.Node) {})
	cordoned = offering(unschedulable)
	lost     = offering(func(n *corev1.Node) { unschedulable(n); n.Status.Conditions[0].Status = corev1.ConditionUnknown })
)

func unschedulable(n *corev1.Node) { n.Spec.Unschedulable = true }

var _ = DescribeTable("A change of a MachineDeployment",
	func(want []time.Duration, changes ...[2]any) {
		storm.Bubble(suite, func() {
			p, err := NewPreview("default", plan.Settings{}, true)
			Expect(err).NotTo(HaveOccurred())
			Expect(p.DelaysAfter(changes...)).To(Equal(want))
		})
	},
	Entry("is decided on at once if it comes", atOnce, [2]any{nil, same}),
	Entry("if it goes", atOnce, [2]any{same, nil}),
	Entry("if it went unseen", atOnce, [2]any{cache.DeletedFinalStateUnknown{Key: "default/a", Obj: same}, nil}),
	Entry("if its spec changes", atOnce, [2]any{same, changed(func(d *v1alpha1.MachineDeployment) { d.Generation = 2 })}),
	Entry("if an annotation changes", atOnce, [2]any{same, changed(func(d *v1alpha1.MachineDeployment) { d.Annotations["a"] = "2" })}),
	Entry("if a label changes", atOnce, [2]any{same, changed(func(d *v1alpha1.MachineDeployment) { d.Labels["l"] = "2" })}),
	Entry("if it was created anew", atOnce, [2]any{same, changed(func(d *v1alpha1.MachineDeployment) { d.UID = "other" })}),
	Entry("and with others if only its status changes", []time.Duration{50 * time.Millisecond},
		[2]any{same, changed(func(d *v1alpha1.MachineDeployment) { d.Status.Replicas = 3 })},
		[2]any{same, changed(func(d *v1alpha1.MachineDeployment) { d.Status.Conditions = []mcm.MachineDeploymentCondition{{}} })}),
)

var _ = DescribeTable("Where decisions take long, the next one",
	func(took, delay time.Duration, was, is any) {
		storm.Bubble(suite, func() {
			p, err := NewPreview("default", plan.Settings{}, true)
			Expect(err).NotTo(HaveOccurred())
			Expect(p.DecideFor(took)).To(Succeed())
			Expect(p.DelaysAfter([2]any{was, is})).To(Equal([]time.Duration{delay}))
		})
	},
	Entry("leaves nineteen twentieths of the time to others", 10*time.Millisecond, 190*time.Millisecond, same, reporting),
	Entry("comes no sooner than others", time.Millisecond, 50*time.Millisecond, same, reporting),
	Entry("nor for Nodes", 10*time.Millisecond, 500*time.Millisecond, nil, ready),
	Entry("but within a second", time.Minute, time.Second, same, reporting),
	Entry("for Nodes, too", time.Minute, time.Second, nil, ready),
	Entry("and at once for what a user writes", time.Minute, time.Duration(0), nil, same),
)

var (
	reporting = changed(func(d *v1alpha1.MachineDeployment) { d.Status.Replicas = 3 })

	atOnce = []time.Duration{0}
	same   = changed(func(*v1alpha1.MachineDeployment) {})
)
