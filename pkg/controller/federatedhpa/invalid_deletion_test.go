// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
)

var _ = Describe("An object that became invalid before it is deleted", func() {
	DescribeTable("removes its autoscalers and workloads from clusters",
		func(reason string, invalidate func(*Spec)) {
			play(func(f *federation) {
				for _, c := range f.clusters {
					Expect(c.core.AppsV1().Deployments(ns).Delete(context.Background(), "shop", metav1.DeleteOptions{})).To(Succeed())
				}
				f.start()
				f.create(Federated(2, 10, func(s *Spec) {
					s.Placement = &v1alpha1.Placement{Mode: v1alpha1.Template, Template: &runtime.RawExtension{Raw: []byte(
						`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"shop"},"spec":{"selector":{"matchLabels":{"app":"shop"}}}}`)}}
				}))
				f.settle()
				Expect(f.bounds("shop")).To(Equal("1..5/1..5"))
				f.change("shop", invalidate)
				f.settle()
				Expect(f.condition("shop", "Ready")).To(Equal("False " + reason))
				f.remove("shop")
				f.settle()
				Expect(f.Get(objectGVR, ns, "shop")).To(BeNil())
				for _, c := range f.clusters {
					Expect(c.Get(hpaGVR, ns, "shop")).To(BeNil())
					Expect(c.Get(deploymentGVR, ns, "shop")).To(BeNil())
				}
			}, "c1", "c2")
		},
		Entry("by a metric without a type", "InvalidTemplate", func(s *Spec) { s.Metrics = []runtime.RawExtension{{Raw: []byte(`{"external":{}}`)}} }),
		Entry("by more text than is read", "TooLarge", func(s *Spec) {
			s.Behavior = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"x":%q}`, strings.Repeat("x", 64<<10))}
		}),
		Entry("by a selector that is none", "InvalidSelector", func(s *Spec) {
			s.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}
		}),
	)
})
