// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan/plantest"
)

var _ = Describe("A workload that was deleted after it ran", func() {
	It("gives its share to others, and gets it back when it is made again", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(2, 20, func(s *Spec) { Rebalance(s).StartTimeoutSeconds = ptr.To[int32](300) }))
			f.loads("shop", 9, 15)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("10/10"))
			Expect(f.clusters[0].core.AppsV1().Deployments(ns).Delete(context.Background(), "shop", metav1.DeleteOptions{})).To(Succeed())
			f.settle()
			Expect(f.state("shop", "c1")).To(Equal("Used NoWorkload"))
			Expect(f.clusters[1].replicas("shop")).To(BeEquivalentTo(15), f.maxima("shop"))
			f.clusters[0].deploy("shop")
			f.loads("shop", 9, 5)
			f.settle()
			Expect(f.clusters[0].replicas("shop")).To(BeEquivalentTo(9), f.maxima("shop"))
		}, "c1", "c2")
	})
})
