// SPDX-License-Identifier: Apache-2.0

//go:build !race

package mcm_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	machineclient "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/mcm"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

var suite *testing.T

func TestMCM(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Simulated machine-controller-manager")
}

var (
	machines    = machinev1alpha1.SchemeGroupVersion.WithResource("machines")
	sets        = machinev1alpha1.SchemeGroupVersion.WithResource("machinesets")
	deployments = machinev1alpha1.SchemeGroupVersion.WithResource("machinedeployments")
	nodes       = corev1.SchemeGroupVersion.WithResource("nodes")
)

const boot = 30 * time.Second

// begin starts both programs on a server that answers as fast as a real one.
func begin(w *storm.World) {
	w.Latency(2 * time.Millisecond)
	w.Start("controllers", func(ctx context.Context, config *rest.Config) error {
		return mcm.RunControllers(ctx, config, config)
	})
	w.Start("machines", func(ctx context.Context, config *rest.Config) error {
		m := mcm.Machines{
			Boot:  func(*machinev1alpha1.Machine) time.Duration { return boot },
			Drain: func(*machinev1alpha1.Machine) time.Duration { return 5 * time.Second },
		}
		return m.Run(ctx, config, config)
	})
}

// user creates, scales and changes MachineDeployments.
type user struct{ machineclient.Interface }

func as(w *storm.World) user {
	return user{machineclient.NewForConfigOrDie(w.ConfigFor("user"))}
}

func (u user) create(d *machinev1alpha1.MachineDeployment) {
	GinkgoHelper()
	_, err := u.MachineV1alpha1().MachineDeployments(mcm.Namespace).Create(context.Background(), d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (u user) patch(patch string) {
	GinkgoHelper()
	_, err := u.MachineV1alpha1().MachineDeployments(mcm.Namespace).Patch(context.Background(), "pool", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (u user) scale(replicas int) { u.patch(fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)) }

// running counts the machines that run, each with a node of its name.
func running(w *storm.World) int {
	n := 0
	for _, m := range w.Objects(machines) {
		phase, _, _ := unstructured.NestedString(m.Object, "status", "currentStatus", "phase")
		if phase == "Running" && w.Get(nodes, "", m.GetName()) != nil {
			n++
		}
	}
	return n
}

func available(w *storm.World) int64 {
	n, _, _ := unstructured.NestedInt64(w.Get(deployments, mcm.Namespace, "pool").Object, "status", "availableReplicas")
	return n
}

var _ = Describe("machine-controller-manager's own controllers", func() {
	It("scale up and down, and then write nothing", func() {
		storm.Bubble(suite, func() {
			w := storm.NewWorld(sim.Options{Seed: 1})
			defer w.End()
			begin(w)
			u := as(w)
			u.create(fixture.MachineDeployment("pool", 0))
			for _, n := range []int{0, 4, 7, 2} {
				u.scale(n)
				Expect(w.Settle(2*time.Minute, time.Hour)).To(Succeed())
				Expect(running(w)).To(Equal(n))
				Expect(available(w)).To(BeEquivalentTo(n))
				Expect(w.Objects(machines)).To(HaveLen(n))
				Expect(w.Objects(nodes)).To(HaveLen(n))
			}
			since := len(w.Writes())
			time.Sleep(time.Hour)
			Expect(w.Writes()[since:]).To(BeEmpty(), "no-ops included")
		})
	})

	It("take as long to boot machines as was asked", func() {
		storm.Bubble(suite, func() {
			w := storm.NewWorld(sim.Options{Seed: 1})
			defer w.End()
			begin(w)
			as(w).create(fixture.MachineDeployment("pool", 3))
			time.Sleep(boot - time.Second)
			Expect(w.Objects(machines)).To(HaveLen(3))
			Expect(running(w)).To(Equal(0))
			time.Sleep(3 * time.Second)
			Expect(running(w)).To(Equal(3))
		})
	})

	It("roll over to another class and clean up", func() {
		storm.Bubble(suite, func() {
			w := storm.NewWorld(sim.Options{Seed: 1})
			defer w.End()
			begin(w)
			u := as(w)
			u.create(fixture.MachineDeployment("pool", 3))
			Expect(w.Settle(2*time.Minute, time.Hour)).To(Succeed())
			u.patch(`{"spec":{"template":{"spec":{"class":{"name":"other"}}}}}`)
			Expect(w.Settle(2*time.Minute, time.Hour)).To(Succeed())
			Expect(running(w)).To(Equal(3))
			Expect(w.Objects(sets)).To(HaveLen(2))
			for _, m := range w.Objects(machines) {
				Expect(m.Object).To(HaveKeyWithValue("spec", HaveKeyWithValue("class", HaveKeyWithValue("name", "other"))))
			}
			err := u.MachineV1alpha1().MachineDeployments(mcm.Namespace).Delete(context.Background(), "pool", metav1.DeleteOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(w.Settle(2*time.Minute, time.Hour)).To(Succeed())
			Expect(w.Objects(machines)).To(BeEmpty())
			Expect(w.Objects(deployments)).To(BeEmpty())
			Expect(w.Objects(nodes)).To(BeEmpty())
		})
	})

	It("create machines again and again while they cannot see them", func() {
		storm.Bubble(suite, func() {
			w := storm.NewWorld(sim.Options{Seed: 1})
			defer w.End()
			begin(w)
			w.Lag("machines", sim.Constantly(50*time.Millisecond), "controllers")
			as(w).create(fixture.MachineDeployment("pool", 4))
			Expect(w.Settle(2*time.Minute, time.Hour)).To(Succeed())
			made := 0
			for _, write := range w.Writes() {
				if write.Resource == "machines" && write.Verb == "create" {
					made++
				}
			}
			Expect(made).To(BeNumerically(">", 4), "the known defect, which Evenkeel does not have")
			Expect(running(w)).To(Equal(4))
		})
	})

	It("end the same wherever they are killed", func() {
		Expect(storm.CrashPoints(suite, storm.Scenario{
			Options: sim.Options{Seed: 1},
			Story: func(w *storm.World) {
				begin(w)
				u := as(w)
				u.create(fixture.MachineDeployment("pool", 3))
				Expect(w.Settle(2*time.Minute, time.Hour)).To(Succeed())
				u.scale(1)
				Expect(w.Settle(12*time.Minute, 3*time.Hour)).To(Succeed())
			},
			End: func(w *storm.World) any {
				return fmt.Sprintf("%d machines, %d running, %d available, %d sets, %d nodes",
					len(w.Objects(machines)), running(w), available(w), len(w.Objects(sets)), len(w.Objects(nodes)))
			},
		}, "controllers")).To(Succeed())
	})
})
