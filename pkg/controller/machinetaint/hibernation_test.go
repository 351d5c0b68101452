// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var _ = Describe("A reserve of a MachineDeployment that has no replicas, and would include it", func() {
	It("comes and goes with the replicas of all others, though nothing else happens", func() {
		onItsOwn(0, 0, machinetaint.Options{}, func(a *alone) {
			world.Create(a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace), poolOf("other"))
			scale := func(replicas int) {
				_, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Patch(context.Background(), "other", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			a.patch(`{"spec":{"excessReplicas":2},"metadata":{"annotations":{%q:"Inclusive"}}}`, api.AccountingAnnotation)
			time.Sleep(time.Hour)
			Expect(a.applied()).To(BeEmpty(), "the cluster hibernates")
			scale(1)
			time.Sleep(time.Minute)
			Expect(a.applied()).To(Equal("2"))
			time.Sleep(time.Hour)
			scale(0)
			time.Sleep(time.Minute)
			Expect(a.applied()).To(BeEmpty())
		})
	})
})
