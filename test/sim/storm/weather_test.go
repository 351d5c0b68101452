// SPDX-License-Identifier: Apache-2.0

package storm_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// busy keeps caches of both clusters, and every second writes something to each of them and lists it.
func busy(ctx context.Context, config *rest.Config) error {
	client := kubernetes.NewForConfigOrDie(config)
	factory := informers.NewSharedInformerFactory(client, 0)
	factory.Core().V1().Nodes().Informer()
	factory.Core().V1().ConfigMaps().Informer()
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	for n := 0; ctx.Err() == nil; n++ {
		text := map[string]string{"n": fmt.Sprint(n)}
		node, settings := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: text}}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "map"}, Data: text}
		if _, err := client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil {
			_, _ = client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		}
		if _, err := client.CoreV1().ConfigMaps("default").Update(ctx, settings, metav1.UpdateOptions{}); err != nil {
			_, _ = client.CoreV1().ConfigMaps("default").Create(ctx, settings, metav1.CreateOptions{})
		}
		_, _ = client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		_, _ = client.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	return nil
}

var _ = Describe("A storm", func() {
	It("brings every fault to a world of two clusters within a quarter of an hour, and ends with all of them", func() {
		storm.Seeds(suite, 4, func(seed uint64) { // which fails where one never strikes
			w := storm.NewApart(sim.Options{Seed: seed})
			defer w.End()
			random := rand.New(rand.NewPCG(seed, 0))
			w.Storm(random, w.Start("busy", busy))
			time.Sleep(15 * time.Minute)
			w.Calm()
			client := kubernetes.NewForConfigOrDie(w.ConfigFor("busy"))
			for range 100 {
				_, err := client.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
				Expect(err).NotTo(HaveOccurred())
				_, err = client.CoreV1().ConfigMaps("default").List(context.Background(), metav1.ListOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
		})
	})
})

var _ = Describe("A process that stands still", func() {
	It("sends afterwards what it was about to send, which takes effect though its time is over", func() {
		storm.Bubble(suite, func() {
			w := storm.NewWorld(sim.Options{})
			defer w.End()
			p := w.Start("maker", func(ctx context.Context, config *rest.Config) error {
				time.Sleep(time.Second)
				short, cancel := context.WithTimeout(ctx, 10*time.Second)
				defer cancel()
				_, err := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default").Create(short, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}}, metav1.CreateOptions{})
				Expect(err).To(MatchError(context.DeadlineExceeded))
				<-ctx.Done()
				return nil
			})
			p.Freeze()
			time.Sleep(time.Minute)
			Expect(w.Objects(configMaps)).To(BeEmpty())
			p.Thaw()
			time.Sleep(time.Millisecond)
			Expect(w.Objects(configMaps)).To(HaveLen(1))
		})
	})
})
