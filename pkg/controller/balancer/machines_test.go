// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	mcmclient "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	machinev1alpha1 "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

var mdGVR = mcm.SchemeGroupVersion.WithResource("machinedeployments")

// zones are three MachineDeployments under a Balancer.
type zones struct {
	*cluster
	machines mcmclient.Interface
}

// inZones runs body with a Balancer of so many machines over z1, z2 and z3, which have none yet.
func inZones(replicas int32, change func(*v1alpha1.Balancer, map[string]*mcm.MachineDeployment), body func(z zones)) {
	storm.Bubble(suite, func() {
		c := newCluster(sim.Options{Seed: 1, Resources: slices.Concat(served, sim.Machine)})
		defer c.End()
		z := zones{c, mcmclient.NewForConfigOrDie(c.ConfigFor("user"))}
		b := object("pool", replicas, builders.Even(), "z1", "z2", "z3")
		mds := map[string]*mcm.MachineDeployment{}
		for i := range b.Spec.Targets {
			name := b.Spec.Targets[i].Name
			b.Spec.Targets[i].ScaleTargetRef = v1alpha1.ScaleTargetReference{APIVersion: "machine.sapcloud.io/v1alpha1", Kind: "MachineDeployment", Name: name}
			mds[name] = fixture.MachineDeployment(name, 0)
		}
		change(b, mds)
		for _, md := range mds {
			made, err := z.machines.MachineV1alpha1().MachineDeployments(ns).Create(context.Background(), md, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			made.Status = md.Status
			_, err = z.machines.MachineV1alpha1().MachineDeployments(ns).UpdateStatus(context.Background(), made, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		c.create(b)
		c.Start("balancer", controller(Options{}))
		time.Sleep(time.Second)
		body(z)
	})
}

func (z zones) sizes() string {
	var all []any
	for _, name := range []string{"z1", "z2", "z3"} {
		n, _, _ := unstructured.NestedInt64(z.Get(mdGVR, ns, name).Object, "spec", "replicas")
		all = append(all, n)
	}
	return fmt.Sprintf("%d/%d/%d", all...)
}

// machine makes one of a zone, in a phase.
func (z zones) machine(zone string, phase mcm.MachinePhase, code string) {
	m := fixture.Machine("", func(m *mcm.Machine) { m.Name, m.GenerateName, m.Labels = "", zone+"-", map[string]string{"name": zone} })
	m, err := z.machines.MachineV1alpha1().Machines(ns).Create(context.Background(), m, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	m.Status.CurrentStatus = mcm.CurrentStatus{Phase: phase, LastUpdateTime: metav1.Now()}
	m.Status.LastOperation.ErrorCode = code
	_, err = z.machines.MachineV1alpha1().Machines(ns).UpdateStatus(context.Background(), m, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("Machines as targets", func() {
	nothing := func(*v1alpha1.Balancer, map[string]*mcm.MachineDeployment) {}

	It("go elsewhere at once when a zone is out of capacity", func() {
		inZones(6, nothing, func(z zones) {
			Expect(z.sizes()).To(Equal("2/2/2"))
			for range 2 {
				z.machine("z1", mcm.MachineCrashLoopBackOff, "ResourceExhausted")
				z.machine("z2", mcm.MachineRunning, "")
				z.machine("z3", mcm.MachineInPlaceUpdating, "")
			}
			time.Sleep(200 * time.Millisecond)
			Expect(z.sizes()).To(Equal("2/3/3"))
			Expect(z.condition("pool", "FallbackActive")).To(Equal("True TargetsBlocked"))
		})
	})

	It("have their time to boot otherwise", func() {
		inZones(3, nothing, func(z zones) {
			z.machine("z1", mcm.MachinePending, "")
			z.machine("z2", mcm.MachineRunning, "")
			z.machine("z3", mcm.MachineRunning, "")
			time.Sleep(55 * time.Second)
			Expect(z.sizes()).To(Equal("1/1/1"))
			time.Sleep(10 * time.Second)
			Expect(z.sizes()).To(Equal("1/2/1"))
		})
	})

	It("are left to who owns their replicas, not raised while they are frozen, and raised while paused, since they scale", func() {
		inZones(7, func(b *v1alpha1.Balancer, mds map[string]*mcm.MachineDeployment) {
			b.Spec.Policy.Fallback = nil
			mds["z1"].Annotations = map[string]string{machinev1alpha1.BoundsAnnotation: "0:5"}
			mds["z1"].Spec.Replicas = 1
			mds["z2"].Spec.Paused = true
			mds["z3"].Status.Conditions = []mcm.MachineDeploymentCondition{{Type: mcm.MachineDeploymentFrozen, Status: mcm.ConditionTrue}}
			mds["z3"].Spec.Replicas = 1
		}, func(z zones) {
			Expect(z.sizes()).To(Equal("1/5/1"))
			Expect(z.balancer("pool").Status.Targets[0].Reason).To(Equal("HasBounds"))
		})
	})

	DescribeTable("have one owner of their replicas: are left alone if kept even with other zones",
		func(annotation, value, sizes, reason string) {
			inZones(6, func(b *v1alpha1.Balancer, mds map[string]*mcm.MachineDeployment) {
				b.Spec.Policy.Fallback = nil
				mds["z1"].Annotations = map[string]string{annotation: value}
			}, func(z zones) {
				Expect(z.sizes()).To(Equal(sizes))
				Expect(z.balancer("pool").Status.Targets[0].Reason).To(Equal(reason))
			})
		},
		Entry(nil, machinev1alpha1.BalanceAnnotation, "ScaleUp", "0/3/3", "KeptEven"),
		Entry(nil, machinev1alpha1.BalanceAnnotation, "Continuous", "0/3/3", "KeptEven"),
		Entry(nil, machinev1alpha1.BalanceAnnotation, "Off", "2/2/2", ""),
		Entry("garbage", machinev1alpha1.BalanceAnnotation, "Perhaps", "2/2/2", ""),
		Entry("by the mode of a flag, which shows in what is applied", machinev1alpha1.AppliedReplicasAnnotation, "0", "0/3/3", "KeptEven"),
	)

	It("are taken over when they are no longer kept even", func() {
		inZones(6, func(b *v1alpha1.Balancer, mds map[string]*mcm.MachineDeployment) {
			b.Spec.Policy.Fallback = nil
			mds["z1"].Annotations = map[string]string{machinev1alpha1.AppliedReplicasAnnotation: "0"}
		}, func(z zones) {
			Expect(z.sizes()).To(Equal("0/3/3"))
			_, err := z.machines.MachineV1alpha1().MachineDeployments(ns).Patch(context.Background(), "z1", types.MergePatchType,
				[]byte(`{"metadata":{"annotations":{"`+machinev1alpha1.AppliedReplicasAnnotation+`":null}}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(z.sizes()).To(Equal("1/3/3"), "step by step")
			Expect(z.balancer("pool").Status.Targets[0].Reason).To(BeEmpty())
		})
	})

	It("never count the pods of their namespace", func() {
		inZones(3, func(b *v1alpha1.Balancer, _ map[string]*mcm.MachineDeployment) {
			b.Spec.Transition = &v1alpha1.Transition{MaxSurge: ptr.To(intstr.FromInt32(2))}
		}, func(z zones) {
			z.deploy("a", 4)
			time.Sleep(20 * time.Second)
			s := z.balancer("pool").Status
			Expect(s.ObservedReplicas).To(BeZero())
			Expect(z.condition("pool", "TargetsResolved")).To(Equal("False ForeignPods"))
		})
	})
})
