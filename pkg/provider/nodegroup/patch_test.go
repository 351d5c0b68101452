// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
	builders "github.com/evenkeel/evenkeel/test/builders/nodegroup"
)

var _ = Describe("A patch", func() {
	It("takes effect on the version that it was decided on alone", func() {
		c, err := plan.NewRemoval(builders.Bounded("1:5", 3), builders.Members("SSS"), false, map[string]bool{"b": true}, builders.Noon)
		Expect(err).NotTo(HaveOccurred())
		body, err := mergePatch(c, builders.Deployment("1:5", 3))
		Expect(err).NotTo(HaveOccurred())
		Expect(body).To(MatchJSON(`{"metadata": {"resourceVersion": "7", "uid": "uid-pool", "annotations": {
			"machine.sapcloud.io/last-deployment-replica-change-by-scaler-time": "2026-03-01T11:59:59Z",
			"node.machine.sapcloud.io/trigger-deletion-by-mcm": "b~2026-03-01T12:00:00Z"}}, "spec": {"replicas": 2}}`))
	})

	It("writes replicas with the reserve that they include, and its record", func() {
		body := func(delta int32) string {
			g := builders.Bounded("1:9", 7, v1alpha1.AppliedExcessAnnotation+"=2,max=9,counted=2,replicas=7")
			c, err := plan.NewRaise(g, 5, delta)
			Expect(err).NotTo(HaveOccurred())
			raw, err := mergePatch(c, g.Deployment)
			Expect(err).NotTo(HaveOccurred())
			return string(raw)
		}
		Expect(body(1)).To(MatchJSON(`{"metadata": {"resourceVersion": "7", "uid": "uid-pool", "annotations": {
			"evenkeel.machine.sapcloud.io/applied-excess": "2,max=9,counted=2,replicas=8"}}, "spec": {"replicas": 8}}`))
		Expect(body(4)).To(MatchJSON(`{"metadata": {"resourceVersion": "7", "uid": "uid-pool", "annotations": {
			"evenkeel.machine.sapcloud.io/applied-excess": "0"}}, "spec": {"replicas": 9}}`))
	})

	It("leaves replicas alone where they stay", func() {
		c, err := plan.NewRemoval(builders.Bounded("1:5", 3), builders.Members("SSSR"), false, map[string]bool{"d": true}, builders.Noon)
		Expect(err).NotTo(HaveOccurred())
		Expect(mergePatch(c, builders.Deployment("1:5", 3))).NotTo(ContainSubstring("replicas\":"))
	})
})

var _ = Describe("A change of the target size", func() {
	It("removes an annotation that is to be empty", func() {
		c := plan.Change{Annotations: map[string]string{"a": "", "b": "c"}}
		d := builders.Bounded("1:9", 3).Deployment
		d.ResourceVersion, d.UID = "7", "u"
		Expect(mergePatch(c, d)).To(MatchJSON(`{"metadata":{"resourceVersion":"7","uid":"u","annotations":{"a":null,"b":"c"}}}`))
	})
})
