// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	v1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/policy"
)

func TestProvisioningRequest(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "ProvisioningRequest API")
}

// ofClass is the spec of a request with these pods.
func ofClass(class, podSets string) string {
	return "{provisioningClassName: " + class + ", podSets: [" + podSets + "]}"
}

// pods are a number of equal pods.
func pods(count string) string { return "{podTemplateRef: {name: web}, count: " + count + "}" }

var _ = Describe("A ProvisioningRequest", func() {
	var requests dynamic.ResourceInterface

	BeforeEach(func() {
		server := sim.New(sim.Options{Resources: []sim.Resource{{Group: v1.GroupName, Version: "v1", Name: "provisioningrequests", Kind: "ProvisioningRequest", Namespaced: true, Status: true}}})
		DeferCleanup(server.Close)
		checks, err := policy.Load("../../../../kubernetes/optional-crds")
		Expect(err).NotTo(HaveOccurred())
		checks.Enforce(server)
		requests = dynamic.NewForConfigOrDie(server.Config()).Resource(v1.SchemeGroupVersion.WithResource("provisioningrequests")).Namespace("default")
	})
	create := func(spec string) (*unstructured.Unstructured, error) {
		GinkgoHelper()
		u := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte("{metadata: {name: a}, spec: "+spec+"}"), &u.Object)).To(Succeed())
		u.SetGroupVersionKind(v1.SchemeGroupVersion.WithKind("ProvisioningRequest"))
		return requests.Create(context.Background(), u, metav1.CreateOptions{})
	}

	DescribeTable("is taken as others define it",
		func(spec string) {
			_, err := create(spec)
			Expect(err).NotTo(HaveOccurred())
		},
		Entry("for one pod", ofClass(v1.ClassReserved, pods("1"))),
		Entry("for as many pods as there can be", ofClass(v1.ClassReserved, strings.Repeat(pods("16384")+",", 32))),
		Entry("of another class, with parameters", strings.Replace(ofClass("check-capacity.autoscaling.x-k8s.io", pods("2")), "{", "{parameters: {ValidUntilSeconds: '60'}, ", 1)),
	)

	DescribeTable("is refused as others refuse it",
		func(spec, says string) {
			_, err := create(spec)
			Expect(err).To(MatchError(ContainSubstring(says)))
		},
		Entry("without pods", ofClass(v1.ClassReserved, ""), "at least 1 items"),
		Entry("for too many kinds of pods", ofClass(v1.ClassReserved, strings.Repeat(pods("1")+",", 33)), "at most 32 items"),
		Entry("for none of a kind", ofClass(v1.ClassReserved, pods("0")), "greater than or equal to 1"),
		Entry("for too many of a kind", ofClass(v1.ClassReserved, pods("16385")), "less than or equal to 16384"),
		Entry("without a class", ofClass("''", pods("1")), "should match"),
		Entry("with a long parameter", strings.Replace(ofClass(v1.ClassReserved, pods("1")), "{", "{parameters: {a: "+strings.Repeat("x", 256)+"}, ", 1), "may not be more than 255"),
	)

	It("keeps its spec", func() {
		r, err := create(ofClass(v1.ClassReserved, pods("2")))
		Expect(err).NotTo(HaveOccurred())
		r.SetLabels(map[string]string{"team": "shop"})
		r, err = requests.Update(context.Background(), r, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(unstructured.SetNestedField(r.Object, "other.example.com", "spec", "provisioningClassName")).To(Succeed())
		_, err = requests.Update(context.Background(), r, metav1.UpdateOptions{})
		Expect(err).To(MatchError(ContainSubstring("spec cannot be changed")))
	})
})
