// SPDX-License-Identifier: Apache-2.0

package reachability_test

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

var _ = Describe("A restore from a backup", func() {
	DescribeTable("is noticed by versions that go back", func(restored bool, versions ...string) {
		storm.Bubble(suite, func() {
			asked := 0
			probe := func(context.Context) (string, error) {
				asked++
				if versions[min(asked, len(versions))-1] == "no answer" {
					return "", errors.New("refused")
				}
				return versions[min(asked, len(versions))-1], nil
			}
			c := reachability.New("target", probe, reachability.Options{})
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
			defer cancel()
			if err := c.Run(ctx); !restored {
				Expect(err).NotTo(HaveOccurred())
				return
			}
			Expect(asked).To(Equal(len(versions)))
		})
	},
		Entry("at once", true, "10", "9"),
		Entry("by number, not by letter", false, "9", "10", "10", "100"),
		Entry("after a time without answers, in which the API server was started again", true, "1000", "no answer", "no answer", "no answer", "no answer", "no answer", "999"),
		Entry("but not by a version that is none", false, "10", "", "x", "11"),
		Entry("also past a version that is none", true, "10", "", "9"),
	)

	It("is noticed while informers wait for versions that are long ahead", func() {
		storm.Bubble(suite, func() {
			server := sim.New(sim.Options{Seed: 1})
			defer server.Close()
			client := kubernetes.NewForConfigOrDie(server.ConfigFor("ours"))
			add := func(name string) {
				_, err := client.CoreV1().Nodes().Create(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			ctx, cancel := context.WithCancel(context.Background())
			factory := informers.NewSharedInformerFactory(client, 0)
			store := factory.Core().V1().Nodes().Informer().GetStore()
			factory.Start(ctx.Done())
			defer factory.Shutdown()
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				ended <- reachability.New("target", reachability.Nodes(client), reachability.Options{}).Run(ctx)
			}()
			pass(time.Second)
			backup := server.Snapshot()
			for _, name := range []string{"a", "b", "c"} {
				add(name)
			}
			pass(reachability.ProbeInterval)
			Expect(store.ListKeys()).To(ConsistOf("a", "b", "c"))

			server.Restore(backup)
			add("d")
			begun := time.Now()
			Expect(<-ended).To(MatchError(reachability.ErrRestored))
			Expect(time.Since(begun)).To(BeNumerically("<=", reachability.ProbeInterval))
			Expect(store.ListKeys()).NotTo(ContainElement("d"), "the informer shows what no longer is, and nothing new")
		})
	})
})
