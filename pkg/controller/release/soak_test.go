// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/pkg/controller/release"
	. "github.com/evenkeel/evenkeel/test/builders/release"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// generation creates objects of every kind that is watched in the target cluster; extinct deletes them.
func (c *cluster) generation(ctx context.Context, number, size int) {
	GinkgoHelper()
	core, apps := c.core.CoreV1(), c.core.AppsV1()
	note := metav1.ObjectMeta{Annotations: map[string]string{"note": strings.Repeat("x", 1000)}}
	for i := range size {
		note.Name = fmt.Sprintf("g%d-%d", number, i)
		set, err := apps.ReplicaSets(ns).Create(ctx, &appsv1.ReplicaSet{ObjectMeta: note, Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](2_000_000_000)}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = core.Nodes().Create(ctx, NodeIn(note.Name, "nowhere"), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		p := Pod(note.Name, 5000+int64(i), ByReplicaSet(set))
		status := p.Status
		p.UID = ""
		p, err = core.Pods(ns).Create(ctx, p, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		if i%refused != 0 {
			continue
		}
		p.Status = status
		_, err = core.Pods(ns).UpdateStatus(ctx, p, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = core.PersistentVolumeClaims(ns).Create(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: note}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = apps.DaemonSets(ns).Create(ctx, &appsv1.DaemonSet{ObjectMeta: note}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
}

// refused: the scheduler rejects one of this many pods.
const refused = 10

func (c *cluster) extinct(ctx context.Context, number, size int) {
	GinkgoHelper()
	gone := metav1.DeleteOptions{}
	for i := range size {
		name := fmt.Sprintf("g%d-%d", number, i)
		Expect(c.core.AppsV1().ReplicaSets(ns).Delete(ctx, name, gone)).To(Succeed())
		if i%refused == 0 {
			Expect(c.core.AppsV1().DaemonSets(ns).Delete(ctx, name, gone)).To(Succeed())
			Expect(c.core.CoreV1().PersistentVolumeClaims(ns).Delete(ctx, name, gone)).To(Succeed())
		}
		Expect(c.core.CoreV1().Pods(ns).Delete(ctx, name, gone)).To(Succeed())
		Expect(c.core.CoreV1().Nodes().Delete(ctx, name, gone)).To(Succeed())
	}
}

var _ = Describe("What the controller holds", func() {
	It("returns to where it was after thousands of objects have come and gone: pods, ReplicaSets, Nodes", Label("soak"), func() {
		const size = 350
		generations := storm.Soak(10_000, 3*size)
		storm.Bubble(suite, func() {
			c := alone(storm.NewWorld(sim.Options{Seed: 1, Resources: served}))
			defer c.End()
			var watched *Controller
			c.grow("a", 1, 2, "1:10")
			c.Start("release", controller(usual, func(seen *Controller) { watched = seen }))
			c.settle()
			before, ctx := watched.Held(), context.Background()
			Expect(before).To(HaveKeyWithValue("pods", 2))
			for number := range generations {
				c.generation(ctx, number, size)
				time.Sleep(time.Minute)
				Expect(watched.Held()).To(And(HaveKeyWithValue("pods read", 2+size), HaveKeyWithValue("shapes", size/refused)))
				c.extinct(ctx, number, size)
				time.Sleep(time.Minute)
				c.Compact()
			}
			Expect(watched.Held()).To(Equal(before))
			Expect(c.writes(0)).To(BeEmpty())
		})
	})

	It("forgets a deleted MachineDeployment", func() {
		play(func(c *cluster) {
			var watched *Controller
			c.grow("a", 1, 2, "1:10")
			c.Start("release", controller(usual, func(seen *Controller) { watched = seen }))
			c.settle()
			c.create(fresh(1, "p", 1000)...)
			c.settle()
			Expect(watched.Held()).To(HaveKeyWithValue("series", 1))
			Expect(c.ours.MachineV1alpha1().MachineDeployments(ns).Delete(context.Background(), "a", metav1.DeleteOptions{})).To(Succeed())
			c.settle()
			Expect(watched.Held()).To(HaveKeyWithValue("series", 0))
		})
	})

	It("forgets since when a pod has waited beside room, once none waits", func() {
		play(func(c *cluster) {
			var watched *Controller
			c.grow("a", 2, 1, "1:10")
			c.Start("release", controller(usual, func(seen *Controller) { watched = seen }))
			c.settle()
			Expect(c.core.CoreV1().Pods(ns).DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{})).To(Succeed())
			c.create(Pod("p", 1000, func(p *corev1.Pod) { p.Labels = map[string]string{"app": "picky"} }))
			time.Sleep(10 * time.Second)
			Expect(watched.Held()).To(HaveKeyWithValue("pods doubted", 1))
			Expect(c.core.CoreV1().Pods(ns).Delete(context.Background(), "p", metav1.DeleteOptions{})).To(Succeed())
			time.Sleep(10 * time.Second)
			Expect(watched.Held()).To(HaveKeyWithValue("pods doubted", 0))
		})
	})

	It("uses the stored version of a pod, even before the event about it has arrived", func() {
		stored := Pod("p", 2000)
		Expect(Look(Pod("p", 1000), stored)).To(BeIdenticalTo(stored))
	})

	It("keeps no pod that was deleted between being listed and being read", func() {
		Expect(LateLook(Pod("p", 1000))).To(BeZero())
	})
})

// BenchmarkDecision is one decision over pods that wait in ten namespaces and fit no machine, beside 12,000 that run.
func BenchmarkDecision(b *testing.B) {
	for _, waiting := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			preview := crowded(b, waiting)
			b.ReportAllocs()
			for b.Loop() {
				if p := preview.Plan(); len(p.Pods)+p.Beyond != waiting {
					b.Fatalf("%d and %d pods", len(p.Pods), p.Beyond)
				}
			}
		})
	}
}

func crowded(b *testing.B, waiting int) *Preview {
	preview, err := NewPreview(UsualSettings)
	if err != nil {
		b.Fatal(err)
	}
	o := spare()
	for i := range waiting {
		o.Pods = append(o.Pods, Pod(fmt.Sprintf("x-%d", i), 5000, InNamespace(fmt.Sprint("crowd-", i%10)), func(p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(Noon.Add(-time.Duration(i*7919%3600) * time.Second))
		}))
	}
	for i := range 12_000 {
		o.Pods = append(o.Pods, Pod(fmt.Sprintf("r-%d", i), 10, func(p *corev1.Pod) {
			p.Spec.NodeName, p.Status.Phase = fmt.Sprint("n-", i%100), corev1.PodRunning
		}))
	}
	if err := preview.SetObjects(o, Noon); err != nil {
		b.Fatal(err)
	}
	return preview
}
