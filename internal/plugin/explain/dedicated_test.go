// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/evenkeel/evenkeel/internal/plugin/explain"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

var _ = Describe("Dedicated machines", func() {
	dedicated := func() *world {
		w := newWorld()
		w.Deployments[0].Annotations[v1alpha1.DedicatedAnnotation] = "shop/Deployment/web=1"
		metav1.SetMetaDataAnnotation(&w.Machines[2].ObjectMeta, v1alpha1.DedicatedAnnotation, "shop/Deployment/web")
		return w
	}

	It("are explained by their owner", func() {
		a, err := Machine(dedicated().Objects, "c")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Facts).To(ContainElement(Fact{"Dedicated to", "shop/Deployment/web"}))
		Expect(a.Why).To(ContainElement(ContainSubstring("only for waiting pods of shop/Deployment/web")))
		Expect(a.Next).NotTo(ContainElement(ContainSubstring("When replicas are raised")))
	})

	It("are not the next to serve", func() {
		a, err := Machine(dedicated().Objects, "d")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Next).To(ContainElement(ContainSubstring("it is the 1st to serve")))
		a, err = Deployment(dedicated().Objects, "pool")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Facts).To(ContainElement(HaveField("Value", HavePrefix("shop/Deployment/web=1"))))
		Expect(a.Next).To(ContainElement(ContainSubstring("machine d serves at once")))
	})
})
