// SPDX-License-Identifier: Apache-2.0

package machinedeployment_test

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	machines "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var deploymentGVR = mcm.SchemeGroupVersion.WithResource("machinedeployments")

func (c *cluster) deployments() machines.MachineDeploymentInterface {
	return c.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace)
}

// deploy creates a MachineDeployment.
func (c *cluster) deploy(name string, replicas int32, change ...func(*api.MachineDeployment)) *api.MachineDeployment {
	GinkgoHelper()
	stock := fixture.MachineDeployment(name, replicas)
	d := &api.MachineDeployment{ObjectMeta: stock.ObjectMeta, Spec: api.MachineDeploymentSpec{StockMachineDeploymentSpec: stock.Spec}}
	for _, one := range change {
		one(d)
	}
	return world.Create(c.deployments(), d)
}

func rolls(surge, unavailable int) func(*api.MachineDeployment) {
	return func(d *api.MachineDeployment) {
		s, u := intstr.FromInt(surge), intstr.FromInt(unavailable)
		d.Spec.Strategy.RollingUpdate.MaxSurge, d.Spec.Strategy.RollingUpdate.MaxUnavailable = &s, &u
	}
}

func recreates(d *api.MachineDeployment) {
	d.Spec.Strategy = mcm.MachineDeploymentStrategy{Type: mcm.RecreateMachineDeploymentStrategyType}
}

// edit changes the spec of a MachineDeployment.
func (c *cluster) edit(name, format string, args ...any) {
	GinkgoHelper()
	world.Patch(c.deployments(), name, `{"spec":%s}`, fmt.Sprintf(format, args...))
}

// rollTo gives a MachineDeployment another class.
func (c *cluster) rollTo(name, class string) {
	GinkgoHelper()
	c.edit(name, `{"template":{"spec":{"class":{"name":%q}}}}`, class)
}

func (c *cluster) deployment(name string) *api.MachineDeployment {
	GinkgoHelper()
	return world.Stored[api.MachineDeployment](c, deploymentGVR, fixture.Namespace, name)
}

// setsOf returns the MachineSets that a MachineDeployment controls, the oldest first.
func (c *cluster) setsOf(name string) (all []*mcm.MachineSet) {
	for _, s := range world.List[mcm.MachineSet](c, setGVR) {
		if owner := metav1.GetControllerOf(s); owner != nil && owner.Name == name {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *mcm.MachineSet) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// isRolled expects that a MachineDeployment has all its machines in the MachineSet of its template, and that
// its status says so.
func (c *cluster) isRolled(name string) {
	GinkgoHelper()
	d := c.deployment(name)
	r := int(d.Spec.Replicas)
	newest := 0
	for _, s := range c.setsOf(name) {
		want := 0
		if s.Spec.Template.Spec.Class.Name == d.Spec.Template.Spec.Class.Name {
			want = r
			newest++
		}
		Expect(c.machinesOf(s.Name)).To(HaveLen(want), "%s of %s", s.Name, name)
		Expect(s.Spec.Replicas).To(BeEquivalentTo(want), "%s of %s", s.Name, name)
		Expect(s.Status.Replicas).To(BeEquivalentTo(want), "%s of %s", s.Name, name)
	}
	Expect(newest).To(Equal(1), name)
	Expect(d.Status).To(And(
		HaveField("Replicas", BeEquivalentTo(r)), HaveField("UpdatedReplicas", BeEquivalentTo(r)), HaveField("AvailableReplicas", BeEquivalentTo(r)),
		HaveField("UnavailableReplicas", BeZero()), HaveField("ObservedGeneration", d.Generation)), name)
	Expect(d.Status.Conditions).To(ConsistOf(
		And(HaveField("Type", mcm.MachineDeploymentAvailable), HaveField("Status", mcm.ConditionTrue)),
		And(HaveField("Type", mcm.MachineDeploymentProgressing), HaveField("Status", mcm.ConditionTrue), HaveField("Reason", "NewMachineSetAvailable"))), name)
}

// isQuiet expects that nothing is written for an hour.
func (c *cluster) isQuiet() {
	GinkgoHelper()
	since := len(c.Writes())
	time.Sleep(time.Hour)
	Expect(c.wrote(since)).To(BeEmpty())
}
