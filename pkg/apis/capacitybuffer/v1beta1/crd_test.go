// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"context"
	"encoding/json"
	"os"
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
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
)

func TestCapacityBuffer(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "CapacityBuffer API")
}

// judged is what an API server says of a buffer with that spec, and the buffer with its defaults.
func judged(spec string) (map[string]any, field.ErrorList) {
	GinkgoHelper()
	text, err := os.ReadFile("../../../../kubernetes/optional-crds/autoscaling.x-k8s.io_capacitybuffers.yaml")
	Expect(err).NotTo(HaveOccurred())
	crd, inside := &apiextensionsv1.CustomResourceDefinition{}, &apiextensions.CustomResourceValidation{}
	Expect(yaml.UnmarshalStrict(text, crd)).To(Succeed())
	Expect(apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(crd.Spec.Versions[0].Schema, inside, nil)).To(Succeed())
	structural, err := schema.NewStructural(inside.OpenAPIV3Schema)
	Expect(err).NotTo(HaveOccurred())
	object := map[string]any{}
	wire, err := yaml.YAMLToJSON([]byte(`{apiVersion: autoscaling.x-k8s.io/v1beta1, kind: CapacityBuffer, metadata: {name: a}, spec: ` + spec + `}`))
	Expect(err).NotTo(HaveOccurred())
	Expect(utiljson.Unmarshal(wire, &object)).To(Succeed())
	defaulting.Default(object, structural)
	validator, _, err := validation.NewSchemaValidator(inside.OpenAPIV3Schema)
	Expect(err).NotTo(HaveOccurred())
	wrong := validation.ValidateCustomResource(nil, object, validator)
	if len(wrong) == 0 {
		wrong, _ = cel.NewValidator(structural, true, celconfig.PerCallLimit).Validate(context.Background(), nil, structural, object, nil, celconfig.RuntimeCELCostBudget)
	}
	return object, wrong
}

var _ = Describe("A CapacityBuffer", func() {
	DescribeTable("is taken as others define it",
		func(spec string) {
			_, wrong := judged(spec)
			Expect(wrong).To(BeEmpty())
		},
		Entry("a PodTemplate and replicas", "{podTemplateRef: {name: web}, replicas: 3}"),
		Entry("a PodTemplate and limits", "{podTemplateRef: {name: web}, limits: {cpu: 8, memory: 16Gi}}"),
		Entry("a workload and a percentage", "{scalableRef: {apiGroup: apps, kind: Deployment, name: web}, percentage: 20}"),
		Entry("a workload of the core group", "{scalableRef: {kind: ReplicationController, name: web}, replicas: 0}"),
		Entry("filled once", "{podTemplateRef: {name: web}, replicas: 3, refillStrategy: none}"),
		Entry("filled once, within a time", "{podTemplateRef: {name: web}, replicas: 3, refillStrategy: none, fillDeadlineSeconds: 1}"),
		Entry("refilled", "{podTemplateRef: {name: web}, replicas: 3, refillStrategy: recreate}"),
		Entry("another strategy", "{provisioningStrategy: example.com/hot, scalableRef: {kind: X, name: web}}"),
	)

	DescribeTable("is refused as others refuse it",
		func(spec, says string) {
			_, wrong := judged(spec)
			Expect(wrong.ToAggregate()).To(MatchError(ContainSubstring(says)))
		},
		Entry("a PodTemplate without a number", "{podTemplateRef: {name: web}, percentage: 20}", "set replicas or limits"),
		Entry("both references", "{podTemplateRef: {name: web}, scalableRef: {kind: X, name: web}, replicas: 1}", "either podTemplateRef or scalableRef"),
		Entry("a refill strategy that is unknown", "{podTemplateRef: {name: web}, replicas: 1, refillStrategy: None}", "Unsupported value"),
		Entry("a deadline of a buffer that is refilled", "{podTemplateRef: {name: web}, replicas: 1, refillStrategy: recreate, fillDeadlineSeconds: 60}", "needs refillStrategy none"),
		Entry("a deadline without a refill strategy", "{podTemplateRef: {name: web}, replicas: 1, fillDeadlineSeconds: 60}", "needs refillStrategy none"),
		Entry("a deadline that has passed", "{podTemplateRef: {name: web}, replicas: 1, refillStrategy: none, fillDeadlineSeconds: 0}", "greater than or equal to 1"),
		Entry("negative replicas", "{podTemplateRef: {name: web}, replicas: -1}", "greater than or equal to 0"),
		Entry("a negative percentage", "{scalableRef: {kind: X, name: web}, percentage: -1}", "greater than or equal to 0"),
		Entry("a reference without a name", "{podTemplateRef: {name: ''}, replicas: 1}", "at least 1 chars long"),
		Entry("a workload without a kind", "{scalableRef: {name: web}, replicas: 1}", "spec.scalableRef.kind"),
		Entry("a limit that is no quantity", "{podTemplateRef: {name: web}, limits: {cpu: many}}", "spec.limits.cpu"),
	)

	DescribeTable("can be read with each limit that the schema takes",
		func(limits string, count int) {
			object, wrong := judged("{podTemplateRef: {name: web}, replicas: 1, limits: " + limits + "}")
			Expect(wrong).To(BeEmpty())
			text, err := json.Marshal(map[string]any{"items": []any{object}})
			Expect(err).NotTo(HaveOccurred())
			var all v1beta1.CapacityBufferList
			Expect(json.Unmarshal(text, &all)).To(Succeed())
			Expect(all.Items[0].Spec.Limits).To(And(Not(BeNil()), HaveLen(count)))
		},
		Entry("amounts", "{cpu: 8, memory: 16Gi}", 2),
		Entry("an exponent", "{cpu: 1e3}", 1),
		Entry("a broken exponent", "{cpu: 8, memory: 1e1.5}", 0),
		Entry("an exponent without an end", "{cpu: '1e99999999999999999999'}", 0),
	)

	It("is taken as the example has it", func() {
		text, err := os.ReadFile("../../../../examples/capacity-buffer.yaml")
		Expect(err).NotTo(HaveOccurred())
		documents := strings.Split(string(text), "\n---\n")
		object := map[string]any{}
		Expect(yaml.Unmarshal([]byte(documents[len(documents)-1]), &object)).To(Succeed())
		spec, err := json.Marshal(object["spec"])
		Expect(err).NotTo(HaveOccurred())
		_, wrong := judged(string(spec))
		Expect(wrong).To(BeEmpty())
		Expect(object["spec"]).To(HaveKeyWithValue("provisioningStrategy", v1beta1.StrategyReserved))
	})

	It("is cluster-autoscaler's if it does not say whose it is", func() {
		object, _ := judged("{podTemplateRef: {name: web}, replicas: 3}")
		Expect(object["spec"]).To(HaveKeyWithValue("provisioningStrategy", v1beta1.StrategyActive))
	})

	It("has every field on the wire under the name that others use, and keeps what it reads", func() {
		const wire = `{"kind":"CapacityBuffer","apiVersion":"autoscaling.x-k8s.io/v1beta1","metadata":{"name":"a"},` +
			`"spec":{"provisioningStrategy":"s","podTemplateRef":{"name":"t"},"scalableRef":{"apiGroup":"apps","kind":"Deployment","name":"d"},` +
			`"replicas":0,"percentage":0,"limits":{"cpu":"1"},"refillStrategy":"none","fillDeadlineSeconds":60},` +
			`"status":{"podTemplateRef":{"name":"t"},"replicas":0,"consumedReplicas":0,"podTemplateGeneration":0,` +
			`"conditions":[{"type":"Ready","status":"True","observedGeneration":1,"lastTransitionTime":"2026-01-01T00:00:00Z","reason":"R","message":"m"}],"provisioningStrategy":"s"}}`
		decoder, buffer := json.NewDecoder(strings.NewReader(wire)), v1beta1.CapacityBuffer{}
		decoder.DisallowUnknownFields()
		Expect(decoder.Decode(&buffer)).To(Succeed())
		text, err := json.Marshal(buffer)
		Expect(err).NotTo(HaveOccurred())
		Expect(text).To(MatchJSON(wire))
	})
})
