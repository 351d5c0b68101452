// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan/plantest"
)

var _ = Describe("A cluster that is registered under two names", func() {
	It("is used under the first one, and the status shows the mistake", func() {
		play(func(f *federation) {
			f.alias("guest", "c2")
			f.register("c1", "c2", "guest")
			f.start()
			f.create(Federated(3, 30, Prefer("c2", AtMost(4)), Prefer("guest", AtMost(9))))
			f.loads("shop", 30, 30)
			time.Sleep(10 * time.Minute)
			f.calls.take()
			time.Sleep(time.Hour)
			Expect(f.calls.take()["PATCH"]).To(BeZero())
			Expect(f.state("shop", "c2")).To(Equal("Used"))
			Expect(f.state("shop", "guest")).To(Equal("Refused SameCluster"))
			Expect(f.clusters[1].bounds("shop")).To(HaveSuffix("..4"), "whichever name creates it first")
			f.register("c1", "c2")
			f.remove("shop")
			f.settle()
			Expect(f.Get(objectGVR, ns, "shop")).To(BeNil())
			Expect(f.bounds("shop")).To(Equal("-/-"))
		}, "c1", "c2")
	})

	It("keeps its bounds when the second name is added, and when the first one is deselected", func() {
		play(func(f *federation) {
			f.alias("guest", "c1")
			f.register("c1")
			f.start()
			f.create(Federated(3, 21))
			f.loads("shop", 2)
			f.settle()
			f.calls.take()
			f.register("c1", "guest")
			time.Sleep(10 * time.Second)
			Expect(f.state("shop", "guest")).To(Equal("Refused SameCluster"))
			f.change("shop", func(s *Spec) {
				s.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": "guest"}}
			})
			time.Sleep(10 * time.Second)
			Expect(f.state("shop", "guest")).To(Equal("Used"))
			calls := f.calls.take()
			Expect(calls["PATCH"] + calls["POST"] + calls["DELETE"]).To(BeZero())
			Expect(f.bounds("shop")).To(Equal("3..21"))
			f.register("guest")
			f.settle()
			Expect(f.object("shop").Status.Clusters).To(HaveLen(1))
		}, "c1")
	})
})
