// SPDX-License-Identifier: Apache-2.0

package storm_test

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

var _ = Describe("Twins", func() {
	It("take turns; the one that stood still writes once more when it wakes up, though the other leads", func() {
		storm.Bubble(suite, func() {
			w := storm.NewApart(sim.Options{})
			defer w.End()
			var leading atomic.Int32
			first, second := w.Twins("maker", func(ctx context.Context, config *rest.Config) error {
				leading.Add(1)
				defer leading.Add(-1)
				return every(func(ctx context.Context, maps corev1client.ConfigMapInterface) error {
					_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "map-"}}, metav1.CreateOptions{})
					return err
				})(ctx, config)
			})
			time.Sleep(10 * time.Second)
			Expect(leading.Load()).To(BeEquivalentTo(1))
			// Either may lead.
			first.Freeze()
			time.Sleep(2 * time.Minute)
			if leading.Load() == 1 {
				first.Thaw()
				first = second
				first.Freeze()
				time.Sleep(2 * time.Minute)
			}
			Expect(leading.Load()).To(BeEquivalentTo(2), "the other leads, and the first believes that it does")
			first.Thaw()
			time.Sleep(time.Minute)
			Expect(leading.Load()).To(BeEquivalentTo(1))
			holder, err := kubernetes.NewForConfigOrDie(w.ConfigFor("user")).CoordinationV1().Leases("kube-system").Get(context.Background(), "maker", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(*holder.Spec.HolderIdentity).NotTo(BeEmpty())
			creations := slices.DeleteFunc(slices.Clone(w.Writes()), func(write sim.Write) bool { return write.Resource != "configmaps" })
			Expect(storm.ByTwin(creations[len(creations)-1], *holder.Spec.HolderIdentity)).To(BeTrue())
			Expect(storm.ByTwin(creations[0], *holder.Spec.HolderIdentity)).To(BeFalse(), "the first leads no more")
			first.Crash()
			time.Sleep(2 * time.Minute)
			Expect(leading.Load()).To(BeNumerically(">=", 1))
		})
	})
})
