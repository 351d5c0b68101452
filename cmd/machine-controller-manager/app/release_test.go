// SPDX-License-Identifier: Apache-2.0

//go:build !race

package app

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var _ = It("Instant release says on a pod what its group lacks", func() {
	storm.Bubble(suite, func() {
		w := storm.NewApart(sim.Options{Seed: 1, Resources: askedKinds})
		defer w.End()
		u := occupied(w)
		for i := range 2 {
			u.pod(fixture.Pod(fmt.Sprint("together-", i), full, world.MarkUnschedulable, func(p *corev1.Pod) {
				p.Labels = map[string]string{"kueue.x-k8s.io/pod-group-name": "together"}
				p.Annotations = map[string]string{"kueue.x-k8s.io/pod-group-total-count": "2"}
			}))
		}
		w.Start("ours", leader(releaseName))
		time.Sleep(time.Minute)
		events := world.List[corev1.Event](w.Target, corev1.SchemeGroupVersion.WithResource("events"))
		Expect(events).To(ContainElement(And(HaveField("Reason", "ReserveTooSmall"), HaveField("InvolvedObject.Name", HavePrefix("together-")))))
	})
})
