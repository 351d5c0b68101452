// SPDX-License-Identifier: Apache-2.0

package balance_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/sim/storm"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance"
	"github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
)

// changed is a MachineDeployment after a change.
func changed(change func(*v1alpha1.MachineDeployment)) *v1alpha1.MachineDeployment {
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
		Name: "a", UID: "uid", Generation: 1, Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"},
	}}
	change(d)
	return d
}

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

var (
	atOnce = []time.Duration{0}
	same   = changed(func(*v1alpha1.MachineDeployment) {})
)
