// SPDX-License-Identifier: Apache-2.0

package storm_test

import (
	"context"
	"fmt"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	machineclient "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"

	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

var _ = Describe("Two clusters", func() {
	nodes := corev1.SchemeGroupVersion.WithResource("nodes")
	makeBoth := func(config *rest.Config, name string) (machine, node error) {
		_, machine = machineclient.NewForConfigOrDie(config).MachineV1alpha1().Machines("default").Create(context.Background(), fixture.Machine(name), metav1.CreateOptions{})
		_, node = kubernetes.NewForConfigOrDie(config).CoreV1().Nodes().Create(context.Background(), fixture.Node(name), metav1.CreateOptions{})
		return machine, node
	}
	apart := func(body func(w *storm.World)) {
		storm.Bubble(suite, func() {
			w := storm.NewApart(sim.Options{Seed: 1})
			defer w.End()
			body(w)
		})
	}

	It("store each kind where it belongs, and one client reaches both", func() {
		apart(func(w *storm.World) {
			machine, node := makeBoth(w.ConfigFor("user"), "one")
			Expect(machine).NotTo(HaveOccurred())
			Expect(node).NotTo(HaveOccurred())
			Expect(w.Control.Stores(nodes)).To(BeFalse())
			Expect(w.Objects(nodes)).To(HaveLen(1))
			Expect(w.Get(nodes, "", "one").GetResourceVersion()).To(Equal("1000001"))
			Expect(w.Version()).To(Equal("2/1000001"))
			Expect(w.Writes()).To(HaveLen(2))
			Expect(w.Writes()[1].Server).To(Equal("target"))
		})
	})

	It("are reached alone by who asks for one of them", func() {
		apart(func(w *storm.World) {
			machine, node := makeBoth(storm.Control(w.ConfigFor("user")), "one")
			Expect(machine).NotTo(HaveOccurred())
			Expect(node).To(Satisfy(apierrors.IsNotFound))
			machine, node = makeBoth(storm.Target(w.ConfigFor("user")), "two")
			Expect(machine).To(Satisfy(apierrors.IsNotFound))
			Expect(node).NotTo(HaveOccurred())
		})
		storm.Bubble(suite, func() {
			w := storm.NewWorld(sim.Options{})
			defer w.End()
			_, node := makeBoth(storm.Control(w.ConfigFor("user")), "one")
			Expect(node).NotTo(HaveOccurred(), "one cluster is both")
		})
	})

	It("fail apart", func() {
		apart(func(w *storm.World) {
			w.Target.Down(true, "user")
			machine, node := makeBoth(w.ConfigFor("user"), "one")
			Expect(machine).NotTo(HaveOccurred())
			Expect(node).To(HaveOccurred())
			w.Target.Down(false, "user")
			w.Control.Trouble("", sim.Trouble{Writes: 1, Only: []sim.Answer{sim.Forbidden}}, "user")
			machine, node = makeBoth(w.ConfigFor("user"), "two")
			Expect(machine).To(Satisfy(apierrors.IsForbidden))
			Expect(node).NotTo(HaveOccurred())
		})
	})

	It("both lose a process that is killed, and both keep a world from settling", func() {
		apart(func(w *storm.World) {
			made := 0
			p := w.Start("maker", func(ctx context.Context, config *rest.Config) error {
				for ; ctx.Err() == nil; time.Sleep(time.Second) {
					made++
					_, _ = makeBoth(storm.Target(config), fmt.Sprint("n", made))
				}
				return nil
			})
			Expect(w.Settle(10*time.Second, time.Minute)).NotTo(Succeed())
			p.Crash()
			synctest.Wait()
			before := len(w.Writes())
			time.Sleep(time.Minute)
			Expect(w.Writes()).To(HaveLen(before))
			Expect(w.Settle(10*time.Second, time.Minute)).To(Succeed())
		})
	})

	It("have crash points in both", func() {
		s := scenario(careful)
		s.Apart = true
		s.Story = func(w *storm.World) {
			w.Start("maker", func(ctx context.Context, config *rest.Config) error {
				for ; ctx.Err() == nil; time.Sleep(time.Second) {
					_, _ = makeBoth(config, "one")
				}
				return nil
			})
			Expect(w.Settle(30*time.Second, time.Hour)).To(Succeed())
		}
		end := 0
		s.End = func(w *storm.World) any { end++; return len(w.Objects(nodes)) }
		Expect(storm.CrashPoints(suite, s, "maker")).To(Succeed())
		Expect(end).To(Equal(5), "undisturbed, and before and after each of two writes")
	})
})
