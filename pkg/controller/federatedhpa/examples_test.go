// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

// example is one of the repository's, as written but for what it measures.
func example(name string) *v1alpha1.FederatedHorizontalPodAutoscaler {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", name))
	Expect(err).NotTo(HaveOccurred())
	o := &v1alpha1.FederatedHorizontalPodAutoscaler{}
	Expect(yaml.UnmarshalStrict(text, o)).To(Succeed())
	o.Namespace = ns
	withMetric("1")(&o.Spec)
	return o
}

// These are the numbers that docs/federation.md tells.
var _ = Describe("The examples", func() {
	It("even: maxima go where load is", func() {
		play(func(f *federation) {
			o := example("federated-even.yaml")
			o.Spec.ClusterSelector = nil
			f.start()
			f.create(o)
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..10/1..10/1..10"))
			f.loads("shop", 25, 2, 2)
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..24/1..3/1..3"))
		}, "a", "b", "c")
	})

	It("outage: a share is lent after a day", func() {
		play(func(f *federation) {
			f.start()
			f.create(example("federated-outage.yaml"))
			f.settle()
			Expect(f.bounds("shop")).To(Equal("2..20/2..20/2..20"))
			f.clusters[2].Down(true, "federatedhpa")
			f.loads("shop", 60, 3, 9)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("36/4/20"))
			Expect(f.condition("shop", "OverCommitted")).To(Equal("False Within"))
			time.Sleep(24 * time.Hour)
			Expect(f.maxima("shop")).To(Equal("56/4/20"))
			Expect(f.condition("shop", "OverCommitted")).To(Equal("True MaximaExceedMaxReplicas"))
			f.clusters[2].Down(false, "federatedhpa")
			f.settle()
			Expect(f.condition("shop", "OverCommitted")).To(Equal("False Within"))
			Expect(f.maxima("shop")).To(Equal("48/3/9"), "each of the others has what it runs")
		}, "a", "b", "c")
	})

	It("spill: the cloud has what the site cannot start, for as long as that is needed", func() {
		play(func(f *federation) {
			Expect(f.member("cloud").core.AppsV1().Deployments(ns).Delete(context.Background(), "shop", metav1.DeleteOptions{})).To(Succeed())
			f.start()
			f.create(example("federated-spill.yaml"))
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..25/-"))
			f.member("site").set(func(c *cluster) { c.capacity = 18 })
			f.loads("shop", 30, 12)
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..25/1..15"))
			Expect(f.member("cloud").replicas("shop")).To(BeEquivalentTo(12))
			f.loads("shop", 30, 20)
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..19/1..21"), "the site has what it runs and one more")
			f.loads("shop", 10, 0)
			time.Sleep(20 * time.Minute)
			Expect(f.bounds("shop")).To(Equal("1..19/1..21"), "it is not quiet for long enough")
			time.Sleep(20 * time.Minute)
			Expect(f.bounds("shop")).To(Equal("1..25/-"))
			Expect(f.member("cloud").Get(deploymentGVR, ns, "shop")).To(BeNil())
		}, "site", "cloud")
	})
})
