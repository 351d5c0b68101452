// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/test/sim"
)

var _ = Describe("The driver", func() {
	ctx := context.Background()

	It("creates, tells, lists and deletes", inWorld(func(w *world) {
		Expect(codeSeen(w.status("a"))).To(Equal(codes.NotFound))
		from := time.Now()
		made, err := w.driver.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: named1("a"), MachineClass: slow})
		Expect(err).NotTo(HaveOccurred())
		Expect(time.Since(from)).To(BeZero(), "it must not wait for the boot")
		id := made.ProviderID
		Expect(id).To(MatchRegexp(`^virtual:///z1/a/[0-9a-z]+$`))
		Expect(*made).To(Equal(driver.CreateMachineResponse{ProviderID: id, NodeName: "a"}))
		found, err := w.driver.GetMachineStatus(ctx, &driver.GetMachineStatusRequest{Machine: named1("a"), MachineClass: slow})
		Expect(err).NotTo(HaveOccurred())
		Expect(*found).To(Equal(driver.GetMachineStatusResponse{ProviderID: id, NodeName: "a"}))
		Expect(w.list(slow)).To(Equal(map[string]string{id: "a"}))
		after(10 * time.Second)
		Expect(w.node("a").Spec.ProviderID).To(Equal(id))

		Expect(w.delete("a")).To(Succeed())
		Expect(w.node("a")).To(BeNil())
		Expect(codeSeen(w.status("a"))).To(Equal(codes.NotFound))
		Expect(w.list(slow)).To(BeEmpty())
		Expect(w.delete("a")).To(Succeed(), "what is gone is gone")
	}))

	It("makes a machine once, however often and from wherever it is asked", inWorld(func(w *world) {
		var asking sync.WaitGroup
		for range 20 {
			asking.Go(func() {
				defer GinkgoRecover()
				Expect(w.create("a", slow)).To(Succeed())
			})
		}
		asking.Wait()
		Expect(w.writes()).To(Equal(1))
		after(time.Minute)
		Expect(w.create("a", slow)).To(Succeed())
		Expect(w.writes()).To(Equal(2), "record and Node")
	}))

	It("finds the machine again when the answer of the API server got lost", inWorld(func(w *world) {
		w.server.FailWrites(1, sim.After, cloud)
		Expect(codeSeen(w.create("a", slow))).To(Equal(codes.DeadlineExceeded))
		w.server.FailWrites(0, sim.After, cloud)
		after(5 * time.Second)
		Expect(w.create("a", slow)).To(Succeed())
		after(5 * time.Second)
		Expect(w.node("a")).NotTo(BeNil(), "the boot began when the record was written")
		Expect(w.list(slow)).To(HaveLen(1))
	}))

	It("lists the machines of the class and no others", inWorld(func(w *world) {
		other := class("other", plain)
		Expect(w.create("a", slow)).To(Succeed())
		Expect(w.create("b", other)).To(Succeed())
		Expect(slices.Collect(maps.Values(w.list(slow)))).To(Equal([]string{"a"}))
		Expect(slices.Collect(maps.Values(w.list(other)))).To(Equal([]string{"b"}))
	}))

	It("keeps to the quota of a class, also when asked for many at once", inWorld(func(w *world) {
		two := class("two", with(`"quota":2`))
		w.server.Latency(time.Second)
		var mu sync.Mutex
		refused := 0
		var asking sync.WaitGroup
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			asking.Go(func() {
				defer GinkgoRecover()
				if err := w.create(name, two); err != nil {
					mu.Lock()
					defer mu.Unlock()
					Expect(codeSeen(err)).To(Equal(codes.ResourceExhausted))
					refused++
				}
			})
		}
		asking.Wait()
		Expect(refused).To(Equal(3))
		Expect(w.create("x", slow)).To(Succeed(), "other classes have their own")
		for _, name := range w.list(two) {
			Expect(w.create(name, two)).To(Succeed(), "what exists is no addition")
			Expect(w.delete(name)).To(Succeed())
			break
		}
		Expect(w.create("f", two)).To(Succeed())
	}))

	It("gives the place in the quota back when a machine could not be made", inWorld(func(w *world) {
		one := class("one", with(`"quota":1`))
		w.server.FailWrites(1, sim.Before, cloud)
		Expect(codeSeen(w.create("a", one))).To(Equal(codes.Unavailable))
		w.server.FailWrites(0, sim.Before, cloud)
		Expect(w.create("b", one)).To(Succeed())
	}))

	It("does not touch a Node that is not its own", inWorld(func(w *world) {
		foreign := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.NodeSpec{ProviderID: "aws:///z1/i-1"}}
		_, err := w.core.CoreV1().Nodes().Create(ctx, foreign, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(w.create("a", slow)).To(Succeed())
		w.suffer("machines: {a: {ready: False, conditions: {DiskPressure: True}}}")
		after(time.Hour)
		Expect(w.node("a").Annotations).To(BeEmpty())
		Expect(w.node("a").Status.Conditions).To(BeEmpty())
		Expect(w.delete("a")).To(Succeed())
		Expect(w.node("a").Spec.ProviderID).To(Equal("aws:///z1/i-1"))
	}))

	It("does not delete a Node that takes the name of its own while that is being deleted", inWorld(func(w *world) {
		Expect(w.create("a", class("now", plain))).To(Succeed())
		after(time.Second)
		var once sync.Once
		w.server.LatencyOf(func(r sim.Request) (before, after time.Duration) {
			if r.User != cloud || r.Verb != "delete" || r.Resource != "nodes" {
				return 0, 0
			}
			once.Do(func() {
				go func() {
					defer GinkgoRecover()
					Expect(w.core.CoreV1().Nodes().Delete(ctx, "a", metav1.DeleteOptions{})).To(Succeed())
					foreign := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.NodeSpec{ProviderID: "aws:///z1/i-1"}}
					_, err := w.core.CoreV1().Nodes().Create(ctx, foreign, metav1.CreateOptions{})
					Expect(err).NotTo(HaveOccurred())
				}()
			})
			return time.Second, 0
		})
		Expect(codeSeen(w.delete("a"))).To(Equal(codes.Aborted))
		Expect(w.delete("a")).To(Succeed(), "its own is gone")
		Expect(w.node("a").Spec.ProviderID).To(Equal("aws:///z1/i-1"))
	}))

	for subresource, part := range map[string]string{"": "annotations", "status": "conditions"} {
		It("does not change the "+part+" of a Node that takes the name of its own at that moment", inWorld(func(w *world) {
			Expect(w.create("a", class("now", plain))).To(Succeed())
			after(time.Second)
			w.server.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == cloud && r.Verb == "patch" && r.Resource == "nodes" && r.Subresource == subresource {
					return 2 * time.Second, 0
				}
				return 0, 0
			})
			w.suffer("machines: {a: {ready: False}}")
			after(time.Second)
			Expect(w.core.CoreV1().Nodes().Delete(ctx, "a", metav1.DeleteOptions{})).To(Succeed())
			foreign := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.NodeSpec{ProviderID: "aws:///z1/i-1"}}
			_, err := w.core.CoreV1().Nodes().Create(ctx, foreign, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			after(time.Minute)
			Expect(w.node("a").Annotations).To(BeEmpty())
			Expect(w.node("a").Status.Conditions).To(BeEmpty())
		}))
	}

	It("leaves a Node to MCM's finalizer and still forgets the machine", inWorld(func(w *world) {
		Expect(w.create("a", class("now", plain))).To(Succeed())
		after(time.Second)
		node := w.node("a")
		node.Finalizers = []string{"node.machine.sapcloud.io/machine-controller"}
		_, err := w.core.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(w.delete("a")).To(Succeed())
		Expect(w.node("a").DeletionTimestamp).NotTo(BeNil())
		Expect(w.list(slow)).To(BeEmpty())
		Expect(w.delete("a")).To(Succeed())
	}))

	It("removes what a forgotten machine left", inWorld(func(w *world) {
		Expect(w.create("a", class("now", plain))).To(Succeed())
		after(time.Second)
		Expect(w.core.CoreV1().ConfigMaps(garden).Delete(ctx, "virtual-machine-a", metav1.DeleteOptions{})).To(Succeed())
		w.stop()
		w.start()
		Expect(codeSeen(w.status("a"))).To(Equal(codes.NotFound))
		Expect(w.delete("a")).To(Succeed())
		Expect(w.node("a")).To(BeNil())
	}))

	It("needs no initialization and knows no volumes", inWorld(func(w *world) {
		_, err := w.driver.InitializeMachine(ctx, &driver.InitializeMachineRequest{Machine: named1("a"), MachineClass: slow})
		Expect(codeSeen(err)).To(Equal(codes.Unimplemented))
		volumes, err := w.driver.GetVolumeIDs(ctx, &driver.GetVolumeIDsRequest{PVSpecs: []*corev1.PersistentVolumeSpec{{}}})
		Expect(err).NotTo(HaveOccurred())
		Expect(volumes.VolumeIDs).To(BeEmpty())
	}))
})

// Every way to fail of every method: MCM loses minutes over an error that it cannot decode.
var _ = Describe("Every error can be decoded", func() {
	type failing func(w *world) error
	create := func(spec string) failing { return func(w *world) error { return w.create("a", class("c", spec)) } }
	remove := func(w *world) error { return w.delete("a") }
	down := func(w *world) { w.server.Down(true, cloud) }
	faults := func(text string) func(*world) {
		return func(w *world) {
			Expect(w.create("old", slow)).To(Succeed())
			w.suffer(text)
		}
	}

	DescribeTable("while at work", func(given func(*world), when failing, expected codes.Code) {
		inWorld(func(w *world) {
			if given != nil {
				given(w)
			}
			Expect(codeSeen(when(w))).To(Equal(expected))
			w.server.Down(false, cloud)
		})()
	},
		Entry("create: no providerSpec", nil, create(``), codes.InvalidArgument),
		Entry("create: garbage with brackets", nil, create(with(`"zone":["[",{"]":1}]`)), codes.InvalidArgument),
		Entry("create: quota", nil, create(with(`"quota":0`)), codes.ResourceExhausted),
		Entry("create: a name that no ConfigMap can have", nil, func(w *world) error { return w.create("A_[b", slow) }, codes.InvalidArgument),
		Entry("create: API server away", down, create(plain), codes.Unavailable),
		Entry("create: slow API server", func(w *world) { w.server.Latency(time.Minute) }, create(plain), codes.DeadlineExceeded),
		Entry("create: write failed", func(w *world) { w.server.FailWrites(1, sim.Before, cloud) }, create(plain), codes.Unavailable),
		Entry("create: answer lost", func(w *world) { w.server.FailWrites(1, sim.After, cloud) }, create(plain), codes.DeadlineExceeded),
		Entry("create: a foreign ConfigMap in the way", func(w *world) {
			config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "virtual-machine-a"}}
			_, err := w.core.CoreV1().ConfigMaps(garden).Create(context.Background(), config, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}, create(plain), codes.Internal),
		Entry("create: zone outage", faults("zones: {z1: {outage: true}}"), create(plain), codes.ResourceExhausted),
		Entry("create: error of a class", faults("classes: {c: {createError: Internal}}"), create(plain), codes.Internal),
		Entry("create: error of a machine", faults("machines: {a: {createError: Unauthenticated}}"), create(plain), codes.Unauthenticated),
		Entry("status: not found", nil, func(w *world) error { return w.status("a") }, codes.NotFound),
		Entry("delete: API server away", down, remove, codes.Unavailable),
		Entry("delete: slow API server", func(w *world) { w.server.Latency(time.Minute) }, remove, codes.DeadlineExceeded),
		Entry("delete: node write failed", func(w *world) {
			Expect(w.create("a", class("now", plain))).To(Succeed())
			after(time.Second)
			w.server.FailWrites(1, sim.Before, cloud)
		}, remove, codes.Unavailable),
		Entry("delete: record write failed", func(w *world) {
			Expect(w.create("a", slow)).To(Succeed())
			w.server.FailWrites(1, sim.Before, cloud)
		}, remove, codes.Unavailable),
		Entry("delete: stuck", faults("machines: {old: {stuckDelete: true}}"), func(w *world) error { return w.delete("old") }, codes.DeadlineExceeded),
		Entry("initialize", nil, func(w *world) error {
			_, err := w.driver.InitializeMachine(context.Background(), nil)
			return err
		}, codes.Unimplemented),
	)

	DescribeTable("before the machines are loaded", func(when failing) {
		bubble(func() {
			w := newWorld()
			defer w.server.Close()
			w.driver = w.fresh()
			Expect(codeSeen(when(w))).To(Equal(codes.Unavailable))
			Expect(w.driver.Run(context.Background())).NotTo(Succeed())
		})()
	},
		Entry("create", create(plain)), Entry("delete", remove),
		Entry("status", func(w *world) error { return w.status("a") }),
		Entry("list", func(w *world) error {
			_, err := w.driver.ListMachines(context.Background(), &driver.ListMachinesRequest{MachineClass: slow})
			return err
		}),
	)

	It("answers every code that it is told to", inWorld(func(w *world) {
		for c := codes.Canceled; c <= codes.Uninitialized; c++ {
			w.suffer("zones: {z1: {createError: " + c.String() + "}}")
			Expect(codeSeen(w.create("a", slow))).To(Equal(c))
		}
		w.suffer("")
		Expect(w.create("a", slow)).To(Succeed())
	}))
})
