// SPDX-License-Identifier: Apache-2.0

package world_test

import (
	"context"
	"errors"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

const ns = fixture.Namespace

var (
	machines = mcm.SchemeGroupVersion.WithResource("machines")
	pods     = corev1.SchemeGroupVersion.WithResource("pods")
	nodes    = corev1.SchemeGroupVersion.WithResource("nodes")
)

// scene is a world with the clients of a user.
type scene struct {
	*storm.World
	*world.Waker
	core kubernetes.Interface
	ours versioned.Interface
}

func play(body func(s *scene)) {
	storm.Bubble(suite, func() {
		w := storm.NewWorld(sim.Options{Seed: 1})
		defer w.End()
		core, ours := world.Clients(w.ConfigFor("user"))
		body(&scene{World: w, Waker: world.NewWaker(w), core: core, ours: ours})
	})
}

func (s *scene) act(reconcile world.Reconcile) {
	s.Start("double", world.Actor{Waker: s.Waker, Delay: time.Second, Reconcile: reconcile}.Run)
}

// seconds passes this many, and half a second.
func seconds(n int) { time.Sleep(time.Duration(n)*time.Second + time.Second/2) }

var _ = Describe("An actor", func() {
	// looks counts the looks of an actor that returns this.
	looks := func(again time.Duration, err error, body func(s *scene, n func() int)) {
		play(func(s *scene) {
			n := 0
			s.act(func(context.Context, kubernetes.Interface, versioned.Interface) (time.Duration, error) {
				s.Do(func() { n++ })
				return again, err
			})
			body(s, func() (is int) { s.Do(func() { is = n }); return is })
		})
	}

	It("looks once, and again when something is written or set, but not for Leases and what changes nothing", func() {
		looks(0, nil, func(s *scene, n func() int) {
			time.Sleep(1000 * time.Hour)
			Expect(n()).To(Equal(1))
			world.Create(s.core.CoreV1().Pods(ns), fixture.Pod("p"))
			seconds(1)
			Expect(n()).To(Equal(2))
			world.Patch(s.core.CoreV1().Pods(ns), "p", `{"metadata":{"name":%q}}`, "p")
			seconds(9)
			Expect(n()).To(Equal(2))
			s.Set(func() {})
			seconds(1)
			Expect(n()).To(Equal(3))
		})
	})

	It("looks again at the time that it knows", func() {
		looks(9*time.Second, nil, func(_ *scene, n func() int) {
			seconds(9)
			Expect(n()).To(Equal(1))
			seconds(1)
			Expect(n()).To(Equal(2))
		})
	})

	It("soon tries again what failed", func() {
		looks(time.Hour, errors.New("conflict"), func(_ *scene, n func() int) {
			seconds(4)
			Expect(n()).To(Equal(3))
		})
	})
})

var _ = Describe("The scheduler", func() {
	node := func(p string) func(s *scene) string {
		return func(s *scene) string { return world.Stored[corev1.Pod](s, pods, ns, p).Spec.NodeName }
	}
	large := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *fixture.Node("").Status.Capacity.Cpu()
	}

	It("binds a pod to a Node that takes it, and reports it if there is none", func() {
		play(func(s *scene) {
			s.act(world.Scheduler{Refuses: func(_ *corev1.Pod, n *corev1.Node) bool { return n.Name == "refused" }}.Reconcile)
			taint := func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: "reserve", Effect: corev1.TaintEffectNoSchedule}}
			}
			for name, change := range map[string]func(*corev1.Node){
				"tainted": taint, "cordoned": func(n *corev1.Node) { n.Spec.Unschedulable = true }, "refused": func(*corev1.Node) {}, "good": func(*corev1.Node) {},
			} {
				world.Create(s.core.CoreV1().Nodes(), fixture.Node(name, change))
			}
			world.Create(s.core.CoreV1().Pods(ns), fixture.Pod("first", large))
			seconds(1)
			world.Create(s.core.CoreV1().Pods(ns), fixture.Pod("second"))
			world.Create(s.core.CoreV1().Pods(ns), fixture.Pod("tolerant", func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "reserve"}} }))
			seconds(3)
			Expect(node("first")(s)).To(Equal("good"))
			Expect(node("second")(s)).To(BeEmpty())
			Expect(world.Stored[corev1.Pod](s, pods, ns, "second").Status.Conditions).To(ConsistOf(HaveField("Reason", corev1.PodReasonUnschedulable)))
			Expect(node("tolerant")(s)).To(Equal("tainted"))
		})
	})

	It("has pods replaced whose Node drains or is gone, where each takes a whole one", func() {
		play(func(s *scene) {
			var replaced []string
			var busy map[string]bool
			s.act(world.Scheduler{OnePodPerNode: true, NoStatus: true, Occupied: func(nodes map[string]bool) { s.Do(func() { busy = nodes }) }, Replace: func(ctx context.Context, core kubernetes.Interface, p *corev1.Pod) error {
				s.Do(func() { replaced = append(replaced, p.Name) })
				return core.CoreV1().Pods(ns).Delete(ctx, p.Name, metav1.DeleteOptions{})
			}}.Reconcile)
			for _, name := range []string{"a", "b"} {
				world.Create(s.core.CoreV1().Nodes(), fixture.Node(name))
				world.Create(s.core.CoreV1().Pods(ns), fixture.Pod("on-"+name))
				seconds(2)
			}
			world.Create(s.core.CoreV1().Pods(ns), fixture.Pod("waits"))
			seconds(2)
			Expect([]string{node("on-a")(s), node("on-b")(s), node("waits")(s)}).To(Equal([]string{"a", "b", ""}))
			Expect(world.Stored[corev1.Pod](s, pods, ns, "waits").Status.Conditions).To(BeEmpty())
			s.Do(func() { Expect(busy).To(Equal(map[string]bool{"a": true, "b": true})) })
			world.Patch(s.core.CoreV1().Nodes(), "a", `{"spec":{"unschedulable":true}}`)
			world.Delete(s.core.CoreV1().Nodes(), "b")
			seconds(3)
			s.Do(func() { Expect(replaced).To(ConsistOf("on-a", "on-b")) })
		})
	})
})

var _ = Describe("The cloud", func() {
	const minute = time.Minute
	phase := func(s *scene) mcm.MachinePhase {
		return world.Stored[mcm.Machine](s, machines, ns, "m").Status.CurrentStatus.Phase
	}

	It("boots machines, has them sick and failed, drains them and lets them go", func() {
		play(func(s *scene) {
			sick := false
			s.act((&world.Cloud{Waker: s.Waker, Boot: minute, Drain: minute, Unhealthy: func(*mcm.Machine) bool { return sick }}).Reconcile)
			world.Create(s.ours.MachineV1alpha1().Machines(ns), fixture.Machine("m"))
			seconds(55)
			Expect(phase(s)).To(Equal(mcm.MachinePending))
			Expect(s.Objects(nodes)).To(BeEmpty())
			seconds(15)
			Expect(phase(s)).To(Equal(mcm.MachineRunning))
			Expect(s.Objects(nodes)).To(HaveLen(1))
			s.Set(func() { sick = true })
			seconds(5)
			Expect(phase(s)).To(Equal(mcm.MachineUnknown))
			s.Set(func() { sick = false })
			seconds(5)
			Expect(phase(s)).To(Equal(mcm.MachineRunning))
			s.Set(func() { sick = true })
			time.Sleep(11 * minute)
			Expect(phase(s)).To(Equal(mcm.MachineFailed))
			world.Delete(s.ours.MachineV1alpha1().Machines(ns), "m")
			seconds(30)
			Expect(phase(s)).To(Equal(mcm.MachineTerminating))
			Expect(world.Stored[corev1.Node](s, nodes, "", "m").Spec.Unschedulable).To(BeTrue())
			time.Sleep(minute)
			Expect(s.Objects(machines)).To(BeEmpty())
			Expect(s.Objects(nodes)).To(BeEmpty())
		})
	})

	It("has a new Node keep the taint that every new one has for a while", func() {
		play(func(s *scene) {
			taints := func() []corev1.Taint { return world.Stored[corev1.Node](s, nodes, "", "m").Spec.Taints }
			own := corev1.Taint{Key: "own", Effect: corev1.TaintEffectNoSchedule}
			s.act((&world.Cloud{Waker: s.Waker, Settle: minute, ChangeNode: func(_ *mcm.Machine, n *corev1.Node) { n.Spec.Taints = []corev1.Taint{own} }}).Reconcile)
			world.Create(s.ours.MachineV1alpha1().Machines(ns), fixture.Machine("m"))
			seconds(50)
			Expect(taints()).To(ConsistOf(own, HaveField("Key", corev1.TaintNodeNotReady)))
			seconds(20)
			Expect(taints()).To(ConsistOf(own))
		})
	})

	It("creates a machine that it refused as soon as it can", func() {
		play(func(s *scene) {
			out, late := true, true
			s.act((&world.Cloud{Waker: s.Waker, Refused: func(*mcm.Machine) bool { return out }, BootBlocked: func(*mcm.Machine) bool { return late }}).Reconcile)
			world.Create(s.ours.MachineV1alpha1().Machines(ns), fixture.Machine("m"))
			time.Sleep(100 * time.Hour)
			m := world.Stored[mcm.Machine](s, machines, ns, "m")
			Expect(m.Status.CurrentStatus.Phase).To(Equal(mcm.MachineCrashLoopBackOff))
			Expect(m.Status.LastOperation.ErrorCode).To(Equal("ResourceExhausted"))
			s.Set(func() { out = false })
			time.Sleep(minute)
			Expect(phase(s)).To(Equal(mcm.MachinePending))
			s.Set(func() { late = false })
			time.Sleep(minute)
			Expect(phase(s)).To(Equal(mcm.MachineRunning))
		})
	})
})
