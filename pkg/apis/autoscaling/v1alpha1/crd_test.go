// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

func TestAutoscaling(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Autoscaling API")
}

// judged is what an API server says of an object: its schema, then its rules, also those about what it was before.
func judged(object map[string]any, was ...map[string]any) field.ErrorList {
	GinkgoHelper()
	return judgedBy("federatedhorizontalpodautoscalers", object, was...)
}

// judgedBy judges by the schema of a resource.
func judgedBy(resource string, object map[string]any, was ...map[string]any) field.ErrorList {
	GinkgoHelper()
	text, err := os.ReadFile("../../../../kubernetes/crds/autoscaling.evenkeel.dev_" + resource + ".yaml")
	Expect(err).NotTo(HaveOccurred())
	crd, inside := &apiextensionsv1.CustomResourceDefinition{}, &apiextensions.CustomResourceValidation{}
	Expect(yaml.UnmarshalStrict(text, crd)).To(Succeed())
	Expect(apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(crd.Spec.Versions[0].Schema, inside, nil)).To(Succeed())
	structural, err := schema.NewStructural(inside.OpenAPIV3Schema)
	Expect(err).NotTo(HaveOccurred())
	Expect(schema.ValidateStructural(nil, structural)).To(BeEmpty())
	defaulting.Default(object, structural)
	validator, _, err := validation.NewSchemaValidator(inside.OpenAPIV3Schema)
	Expect(err).NotTo(HaveOccurred())
	if wrong := validation.ValidateCustomResource(nil, object, validator); len(wrong) > 0 {
		return wrong
	}
	var old any
	if len(was) > 0 {
		old = was[0]
	}
	wrong, _ := cel.NewValidator(structural, true, celconfig.PerCallLimit).Validate(context.Background(), nil, structural, object, old, celconfig.RuntimeCELCostBudget)
	return wrong
}

// with is a valid object with other fields in its spec.
func with(spec string) map[string]any {
	GinkgoHelper()
	object, over := map[string]any{}, map[string]any{}
	Expect(yaml.Unmarshal([]byte(`{apiVersion: autoscaling.evenkeel.dev/v1alpha1, kind: FederatedHorizontalPodAutoscaler, metadata: {name: a},
		spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: shop}, minReplicas: 3, maxReplicas: 30}}`), &object)).To(Succeed())
	Expect(yaml.Unmarshal([]byte(spec), &over)).To(Succeed())
	for name, value := range over {
		object["spec"].(map[string]any)[name] = value
	}
	return whole(object).(map[string]any)
}

// whole has whole numbers as the API server has them.
func whole(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = whole(v[key])
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case float64:
		return int64(v)
	}
	return value
}

const workload = `placement: {mode: Template, template: {apiVersion: apps/v1, kind: Deployment, metadata: {name: shop}, spec: {}}}`

const otherTarget = `scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: other}`

var _ = Describe("The schema and its rules", func() {
	DescribeTable("take",
		func(spec string) { Expect(judged(with(spec))).To(BeEmpty()) },
		Entry("what is plain", "{}"),
		Entry("zero with its policy", "{minReplicas: 0, minPolicy: AllowZero}"),
		Entry("preferences", "clusters: [{name: '*', maxReplicas: 9}, {name: site, tier: 0, weight: 3, minReplicas: 2, maxReplicas: 2}]"),
		Entry("metrics that are yet to come", "metrics: [{type: Rumour, rumour: {louder: true}}]"),
		Entry("fields of metrics and behavior that are yet to come", "{metrics: [{type: Resource, rumour: 1, resource: {name: cpu, rumour: 1, target: {type: Rumour, rumour: [1]}}}], behavior: {rumour: 1, scaleUp: {rumour: 1, selectPolicy: Rumour, policies: [{type: Rumour, rumour: 1}]}}}"),
		Entry("quantities that are numbers, and empty fields, as autoscalers do", "{metrics: [{type: External, resource: null, external: {metric: {name: queue, selector: null}, target: {averageValue: 5, value: '1e3', averageUtilization: null}}}], behavior: {scaleUp: null, scaleDown: {tolerance: 0, policies: null}}}"),
		Entry("each policy for clusters that leave", "leavePolicy: ScaleToZero"),
		Entry("lending", "unreachable: {policy: ReleaseAfter, afterSeconds: 60, released: [old]}"),
		Entry("a workload", workload),
	)

	DescribeTable("refuse, and say what to do",
		func(spec, says string) {
			Expect(judged(with(spec)).ToAggregate()).To(MatchError(ContainSubstring(says)))
		},
		Entry("a minimum above the maximum", "minReplicas: 31", "lower minReplicas or raise maxReplicas"),
		Entry("no room at all", "maxReplicas: 0", "greater than or equal to 1"),
		Entry("zero without its policy", "minReplicas: 0", "needs minPolicy AllowZero"),
		Entry("a cluster's minimum above its maximum", "clusters: [{name: a, minReplicas: 3, maxReplicas: 2}]", "lower minReplicas or raise maxReplicas"),
		Entry("a weight of 0", "clusters: [{name: a, weight: 0}]", "greater than or equal to 1"),
		Entry("an unknown policy", "minPolicy: Loose", "supported values"),
		Entry("an unknown policy for clusters that leave", "leavePolicy: Forget", "supported values"),
		Entry("lending without a time", "unreachable: {policy: ReleaseAfter}", "ReleaseAfter needs afterSeconds"),
		Entry("a time without lending", "unreachable: {afterSeconds: 3}", "Hold must not have it"),
		Entry("a mode without its template", "placement: {mode: Template}", "Template needs a template"),
		Entry("a template without its mode", strings.Replace(workload, "mode: Template, ", "", 1), "External must not have one"),
		Entry("another workload's template", strings.Replace(workload, "{name: shop}", "{name: other}", 1), "the apiVersion, kind and name of scaleTargetRef"),
		Entry("a target without a name", "scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: ''}", "at least 1 chars long"),
	)

	It("have defaults that keep workloads, and autoscalers only as long as the object", func() {
		object := with("{unreachable: {}, placement: {}}")
		delete(object["spec"].(map[string]any), "minReplicas")
		Expect(judged(object)).To(BeEmpty())
		Expect(object["spec"]).To(And(HaveKeyWithValue("minReplicas", BeEquivalentTo(1)),
			HaveKeyWithValue("minPolicy", "Strict"), HaveKeyWithValue("leavePolicy", "Keep"), HaveKeyWithValue("deletionPolicy", "Delete"),
			HaveKeyWithValue("unreachable", HaveKeyWithValue("policy", "Hold")), HaveKeyWithValue("placement", HaveKeyWithValue("mode", "External"))))
	})

	DescribeTable("take a change of the workload",
		func(was, is, says string) {
			wrong := judged(with(is), with(was)).ToAggregate()
			if says == "" {
				Expect(wrong).NotTo(HaveOccurred())
				return
			}
			Expect(wrong).To(MatchError(ContainSubstring(says)))
		},
		Entry("of another client", "{}", otherTarget, ""),
		Entry("as its placement begins", otherTarget, workload, ""),
		Entry("as its placement ends", workload, otherTarget, ""),
		Entry("not while the workloads that were created would stay", workload, otherTarget+"\n"+strings.Replace(workload, "{name: shop}", "{name: other}", 1), "remove placement first"),
	)

	It("take every example", func() {
		files, err := filepath.Glob("../../../../examples/federated-*.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(files).To(HaveLen(3))
		for _, file := range files {
			text, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			object := map[string]any{}
			Expect(yaml.Unmarshal(text, &object)).To(Succeed())
			Expect(judged(whole(object).(map[string]any))).To(BeEmpty(), file)
		}
	})
})
