// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/evenkeel/evenkeel/internal/settings"
)

var _ = Describe("Published settings", func() {
	It("are written once, by each leader in its turn, and repaired", func() {
		ctx, client := context.Background(), fake.NewClientset()
		configs := client.CoreV1().ConfigMaps("garden")
		written := func() (n int) {
			for _, action := range client.Actions() {
				if action.GetVerb() != "get" {
					n++
				}
			}
			return n
		}
		first, err := settings.Publication("garden", "first", parsed("--similar-cloud=azure").flags)
		Expect(err).NotTo(HaveOccurred())
		for range 3 {
			Expect(publish(ctx, configs, first)).To(Succeed())
		}
		Expect(written()).To(Equal(1))
		second, err := settings.Publication("garden", "second", parsed("--similar-cloud=aws").flags)
		Expect(err).NotTo(HaveOccurred())
		Expect(publish(ctx, configs, second)).To(Succeed())
		Expect(publish(ctx, configs, second)).To(Succeed())
		Expect(written()).To(Equal(2))
		is, err := configs.Get(ctx, settings.ConfigMap, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(is.Annotations).To(HaveKeyWithValue(settings.Holder, "second"))
		Expect(is.Data).To(Equal(second.Data))
		Expect(configs.Delete(ctx, settings.ConfigMap, metav1.DeleteOptions{})).To(Succeed())
		Expect(publish(ctx, configs, second)).To(Succeed())
		Expect(configs.Get(ctx, settings.ConfigMap, metav1.GetOptions{})).To(HaveField("Data", second.Data))
	})

	It("are those of processes whose plans a forecast shows", func() {
		for list, publishes := range map[string]bool{"*": true, "mcm": false, "release": true, "balance": true, "balancer": false, "federatedhpa": false} {
			picked, err := pickControllers([]string{list})
			Expect(err).NotTo(HaveOccurred())
			Expect((&process{controllers: picked}).publishes()).To(Equal(publishes), list)
		}
	})
})
