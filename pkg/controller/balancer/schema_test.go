// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	. "github.com/evenkeel/evenkeel/pkg/controller/balancer"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
	"github.com/evenkeel/evenkeel/test/sim/policy"
)

// withTimeout is another Balancer with a startupTimeout, as a user writes it.
const withTimeout = `{apiVersion: balancer.x-k8s.io/v1alpha1, kind: Balancer, metadata: {name: other, namespace: default}, spec: {
  selector: {matchLabels: {app: other}}, policy: {policyName: even, fallback: {startupTimeout: 3m}},
  targets: [{name: c, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: c}}, {name: d, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}}]}}`

var _ = Describe("A startupTimeout that the schema lets in", func() {
	DescribeTable("can be read, so that the other Balancers are scaled",
		func(timeout string, taken bool) {
			play(func(c *cluster) {
				checks, err := policy.Load("../../../kubernetes/crds")
				Expect(err).NotTo(HaveOccurred())
				checks.Enforce(c.Server)
				b := &unstructured.Unstructured{}
				Expect(yaml.Unmarshal([]byte(withTimeout), &b.Object)).To(Succeed())
				Expect(unstructured.SetNestedField(b.Object, timeout, "spec", "policy", "fallback", "startupTimeout")).To(Succeed())
				_, err = dynamic.NewForConfigOrDie(c.ConfigFor("user")).Resource(balancerGVR).Namespace(ns).Create(context.Background(), b, metav1.CreateOptions{})
				Expect(apierrors.IsInvalid(err)).NotTo(Equal(taken), "%v", err)
				c.deploy("a", 0)
				c.deploy("b", 0)
				c.balance("shop", 4, builders.Even(), "a", "b")
				c.Start("balancer", controller(Options{}))
				c.settle()
				Expect(c.sizes("a", "b")).To(Equal("2/2"))
			})
		},
		Entry("the longest", "999999h999999h99999h", true),
		Entry("not one that is longer than a duration can be", "999999h999999h999999h", false),
	)
})
