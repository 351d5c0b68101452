// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/test/sim"
)

var _ = Describe("The loop", func() {
	ctx := context.Background()

	It("registers a Node when its boot is over, not before, and then rests", inWorld(func(w *world) {
		Expect(w.create("a", slow)).To(Succeed())
		after(9999 * time.Millisecond)
		Expect(w.node("a")).To(BeNil())
		after(time.Millisecond)
		Expect(w.condition("a", corev1.NodeReady)).To(Equal(corev1.ConditionTrue))
		before := w.writes()
		after(24 * time.Hour)
		Expect(w.writes()).To(Equal(before))
	}))

	It("boots machines between the times of a range", inWorld(func(w *world) {
		ranged := class("ranged", with(`"bootDelay":{"from":"10s","to":"20s"}`))
		for i := range 50 {
			Expect(w.create(fmt.Sprint("m", i), ranged)).To(Succeed())
		}
		nodes := func() int {
			list, err := w.core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			return len(list.Items)
		}
		after(9999 * time.Millisecond)
		Expect(nodes()).To(BeZero())
		after(5 * time.Second)
		Expect(nodes()).To(BeNumerically("~", 25, 15))
		after(6 * time.Second)
		Expect(nodes()).To(Equal(50))
	}))

	It("goes on with a boot after a restart, and with the Nodes it finds", inWorld(func(w *world) {
		Expect(w.create("old", class("now", plain))).To(Succeed())
		Expect(w.create("a", slow)).To(Succeed())
		after(4 * time.Second)
		w.kill()
		after(time.Second)
		w.start()
		Expect(w.list(slow)).To(HaveLen(1))
		Expect(w.status("old")).To(Succeed())
		after(4999 * time.Millisecond)
		Expect(w.node("a")).To(BeNil())
		after(time.Millisecond)
		Expect(w.node("a")).NotTo(BeNil(), "10 s after it was asked for, whatever happened to the process")
		Expect(w.core.CoreV1().Nodes().Delete(ctx, "old", metav1.DeleteOptions{})).To(Succeed())
		after(time.Hour)
		Expect(w.node("old")).To(BeNil(), "a deleted Node is not registered again: MCM deletes the Machine")
	}))

	It("registers at once what should have registered while no process ran", inWorld(func(w *world) {
		Expect(w.create("a", slow)).To(Succeed())
		w.kill()
		after(time.Hour)
		Expect(w.node("a")).To(BeNil())
		w.start()
		Expect(w.node("a")).NotTo(BeNil())
	}))

	It("does not register a machine that was deleted while it booted", inWorld(func(w *world) {
		Expect(w.create("a", slow)).To(Succeed())
		after(5 * time.Second)
		Expect(w.delete("a")).To(Succeed())
		after(time.Hour)
		Expect(w.node("a")).To(BeNil())
	}))

	It("does not register a machine whose deletion is under way", inWorld(func(w *world) {
		Expect(w.create("a", slow)).To(Succeed())
		after(9 * time.Second)
		w.server.Latency(2 * time.Second)
		Expect(w.delete("a")).To(Succeed()) // begun before the boot is over, ended after
		w.server.Latency(0)
		after(time.Hour)
		Expect(w.node("a")).To(BeNil())
	}))

	It("registers no machine of the past when its name is taken again", inWorld(func(w *world) {
		Expect(w.create("a", slow)).To(Succeed())
		after(9 * time.Second)
		w.server.Latency(time.Second)
		deleted, created := make(chan error, 1), make(chan error, 1)
		go func() { deleted <- w.delete("a") }()
		after(time.Second / 2)
		go func() { created <- w.create("a", slow) }() // it waits for the deletion, as does the Node, which is due
		Expect(<-deleted).To(Succeed())
		Expect(<-created).To(Succeed())
		w.server.Latency(0)
		after(time.Minute)
		Expect(w.node("a").Spec.ProviderID).To(Equal(slices.Collect(maps.Keys(w.list(slow)))[0]))
	}))

	It("takes no machine for registered because an earlier one of its name was", func() {
		former, later := machine("a"), machine("a", func(v *VM) { v.Created = noon.Add(time.Minute) })
		d := New(Options{})
		d.fleet.loadVMs([]VM{former})
		d.buildView(listing(func() []*corev1.Node { // it is deleted and created again meanwhile
			d.fleet.put(later)
			return []*corev1.Node{nodeWith(former)}
		}))
		known, _ := d.fleet.findVM("a")
		Expect(known.Registered).To(BeFalse(), "its Node would never register")
		d.buildView(listing(func() []*corev1.Node { return []*corev1.Node{nodeWith(later)} }))
		known, _ = d.fleet.findVM("a")
		Expect(known.Registered).To(BeTrue())
	})

	It("registers a Node once also when the watch is behind", inWorld(func(w *world) {
		tries := 0
		w.server.OnWrite(func(write sim.Write) error {
			if write.User == cloud && write.Resource == "nodes" {
				tries++
			}
			return nil
		})
		w.server.Lag("nodes", sim.Constantly(time.Minute))
		Expect(w.create("a", slow)).To(Succeed())
		after(10 * time.Second)
		w.suffer("zones: {elsewhere: {outage: true}}") // a reason to look again
		after(time.Hour)
		Expect(tries).To(Equal(1))
	}))

	It("registers a machine of the same name again once the old Node is gone", inWorld(func(w *world) {
		Expect(w.create("a", slow)).To(Succeed())
		after(10 * time.Second)
		first := w.node("a").UID
		Expect(w.delete("a")).To(Succeed())
		Expect(w.create("a", slow)).To(Succeed())
		after(10 * time.Second)
		Expect(w.node("a").UID).NotTo(Equal(first))
	}))

	It("takes the taints from the Machine as it is when the Node registers, not as it was", inWorld(func(w *world) {
		machine := named1("a")
		machine.Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{{Key: "old", Effect: "NoSchedule"}}
		machine.Spec.NodeTemplateSpec.Labels = map[string]string{"example.com/label": "MCM's to add"}
		machines := w.machines.MachineV1alpha1().Machines(garden)
		stored, err := machines.Create(ctx, machine, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(w.create("a", slow)).To(Succeed())
		after(5 * time.Second)
		stored.Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{{Key: "new", Effect: "NoSchedule"}}
		_, err = machines.Update(ctx, stored, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		after(5 * time.Second)
		Expect(w.node("a").Spec.Taints).To(Equal([]corev1.Taint{{Key: "new", Effect: "NoSchedule"}}))
		Expect(w.node("a").Labels).NotTo(HaveKey("example.com/label"))
		for _, write := range w.server.Writes() {
			Expect(write.User == cloud && write.Resource == "machines").To(BeFalse(), "a driver writes no Machine")
		}
	}))

	It("tries again until it succeeds, at most once a second", inWorld(func(w *world) {
		tries := 0
		w.server.OnWrite(func(write sim.Write) error {
			if write.User == cloud && write.Resource == "nodes" {
				tries++
			}
			return nil
		})
		Expect(w.create("a", slow)).To(Succeed())
		w.server.FailWrites(1, sim.Before, cloud)
		after(20 * time.Second)
		Expect(w.node("a")).To(BeNil())
		Expect(tries).To(BeNumerically("~", 10, 2))
		w.server.FailWrites(0, sim.Before, cloud)
		after(time.Second)
		Expect(w.node("a")).NotTo(BeNil())
	}))

	It("tries again within a second, though the next boot ends much later", inWorld(func(w *world) {
		Expect(w.create("late", class("pool", with(`"bootDelay":"1h"`)))).To(Succeed())
		Expect(w.create("a", slow)).To(Succeed())
		w.server.FailWrites(1, sim.Before, cloud)
		after(20 * time.Second)
		w.server.FailWrites(0, sim.Before, cloud)
		after(time.Second)
		Expect(w.node("a")).NotTo(BeNil())
	}))

	It("registers no Node before it knows the taints of the Machine", inWorld(func(w *world) {
		machine := named1("a")
		machine.Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{{Key: "reserve", Effect: "NoSchedule"}}
		_, err := w.machines.MachineV1alpha1().Machines(garden).Create(ctx, machine, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(w.create("a", slow)).To(Succeed())
		w.server.Trouble("machines", sim.Trouble{Reads: 1, Only: []sim.Answer{sim.Forbidden}}, cloud)
		after(time.Minute)
		Expect(w.node("a")).To(BeNil(), "pods would go there")
		w.server.Trouble("machines", sim.Trouble{}, cloud)
		after(time.Second)
		Expect(w.node("a").Spec.Taints).To(HaveLen(1))
	}))

	It("does without a target cluster", bubble(func() {
		w := newWorld()
		defer w.server.Close()
		w.driver = w.fresh()
		w.driver.Target = nil
		run, stop := context.WithCancel(ctx)
		Expect(w.driver.LoadRecords(run)).To(Succeed())
		ended := make(chan error, 1)
		go func() { ended <- w.driver.Run(run) }()
		Expect(w.create("a", slow)).To(Succeed())
		after(time.Hour)
		Expect(w.status("a")).To(Succeed())
		Expect(w.node("a")).To(BeNil())
		Expect(w.delete("a")).To(Succeed())
		stop()
		Expect(<-ended).To(Succeed())
	}))

	It("ends when it is told to while the caches are still empty", bubble(func() {
		w := newWorld()
		defer w.server.Close()
		w.driver = w.fresh()
		Expect(w.driver.LoadRecords(ctx)).To(Succeed())
		w.server.Down(true, cloud)
		run, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- w.driver.Run(run) }()
		after(time.Minute)
		stop()
		Expect(<-ended).To(Succeed())
	}))

	It("reports a record that cannot be read and goes on with the others", bubble(func() {
		w := newWorld()
		defer w.server.Close()
		core := kubernetes.NewForConfigOrDie(w.server.ConfigFor("user"))
		bad := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "virtual-machine-bad", Labels: map[string]string{RecordLabel: "true"}}}
		_, err := core.CoreV1().ConfigMaps(garden).Create(ctx, bad, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		w.start()
		defer w.stop()
		Expect(w.events.Events).To(Receive(And(HavePrefix("Warning InvalidRecord"), ContainSubstring("virtual-machine-bad"))))
		Expect(w.create("a", slow)).To(Succeed())
		Expect(w.delete("bad")).To(Succeed())
		Expect(w.create("bad", slow)).To(Succeed(), "its name is free again")
	}))
})

// listing is a lister of what a function returns.
type listing func() []*corev1.Node

func (l listing) List(labels.Selector) ([]*corev1.Node, error) { return l(), nil }

func (l listing) Get(string) (*corev1.Node, error) { panic("not used") }

// One world per write: whatever is lost of the process, the end is the same.
var _ = Describe("A crash at any write", func() {
	for k := 1; k <= 9; k++ {
		It(fmt.Sprintf("leaves no trace: write %d", k), inWorld(func(w *world) {
			writes := 0
			w.server.AfterWrite(func(write sim.Write) error {
				if write.User != cloud {
					return nil
				}
				if writes++; writes == k {
					w.client.Cut()
				}
				return nil
			})
			// A person who insists, as MCM does.
			insist := func(do func() error) {
				for try := 0; do() != nil; try++ {
					Expect(try).To(BeNumerically("<", 3))
					w.stop()
					w.start()
				}
			}
			for _, name := range []string{"a", "b", "c"} {
				insist(func() error { return w.create(name, slow) })
			}
			after(11 * time.Second)
			w.stop()
			w.start()
			after(time.Second)
			insist(func() error { return w.delete("b") })
			Expect(writes).To(BeNumerically(">=", 8), "a crash after the last write proves nothing")
			Expect(w.list(slow)).To(HaveLen(2))
			records, err := w.core.CoreV1().ConfigMaps(garden).List(context.Background(), metav1.ListOptions{LabelSelector: RecordLabel})
			Expect(err).NotTo(HaveOccurred())
			Expect(records.Items).To(HaveLen(2))
			Expect(w.node("a")).NotTo(BeNil())
			Expect(w.node("b")).To(BeNil())
			Expect(w.node("c")).NotTo(BeNil())
		}))
	}
})
