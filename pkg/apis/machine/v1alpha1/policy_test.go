// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"context"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"pgregory.net/rapid"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

var _ = Describe("The bounds policy", Ordered, func() {
	var door *door

	BeforeAll(func() { door = openDoor("../../../../kubernetes/policies/machinedeployment-bounds.yaml") })

	It("answers as the parser does, for chosen texts", func() {
		for _, text := range append(goodBounds, badBounds...) {
			_, err := machine.ParseBounds(text)
			refusal := door.refuses(annotated("new", text), nil)
			Expect(refusal != "").To(Equal(err != nil), "%q: parser says %v, policy says %q", text, err, refusal)
		}
	})

	It("answers as the parser does, for drawn texts", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			text := boundsLike().Draw(t, "bounds")
			_, err := machine.ParseBounds(text)
			if refusal := door.refuses(annotated("new", text), nil); (refusal != "") != (err != nil) {
				t.Fatalf("%q: parser says %v, policy says %q", text, err, refusal)
			}
		})
	})

	It("gives the parser's reason", func() {
		for text, reason := range map[string]string{
			"1":                 "write min:max or min:max:excess",
			"5:1":               "min must not be above max",
			"0:2147483648":      "must be at most 2147483647",
			"1:5:cpu=1,cpu=10%": "only once",
		} {
			Expect(door.refuses(annotated("new", text), nil)).To(And(ContainSubstring(reason), ContainSubstring(text)))
		}
	})

	It("looks only when the annotation changes", func() {
		Expect(door.refuses(annotated("new", "garbage"), annotated("old", "garbage"))).To(BeEmpty())
		Expect(door.refuses(annotated("new", "garbage"), annotated("old", "1:5"))).NotTo(BeEmpty())
		Expect(door.refuses(annotated("new", ""), annotated("old", "1:5"))).NotTo(BeEmpty())
		Expect(door.refuses(annotated("new", ""), plain("old"))).NotTo(BeEmpty())
		Expect(door.refuses(plain("new"), annotated("old", "garbage"))).To(BeEmpty())
		Expect(door.refuses(plain("new"), nil)).To(BeEmpty())
	})
})

func plain(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(machine.SchemeGroupVersion.WithKind("MachineDeployment"))
	u.SetName(name)
	return u
}

func annotated(name, bounds string) *unstructured.Unstructured {
	u := plain(name)
	u.SetAnnotations(map[string]string{machine.BoundsAnnotation: bounds, "other": "annotation"})
	return u
}

// door is an admission policy as the API server compiles and evaluates it.
type door struct {
	validator validating.Validator
}

func openDoor(file string) *door {
	manifest, err := os.Open(file)
	Expect(err).NotTo(HaveOccurred())
	defer manifest.Close()
	var policy admissionv1.ValidatingAdmissionPolicy
	Expect(yaml.NewYAMLOrJSONDecoder(manifest, 4096).Decode(&policy)).To(Succeed())

	declared := cel.OptionalVariableDeclarations{}
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	Expect(err).NotTo(HaveOccurred())
	var variables []cel.NamedExpressionAccessor
	for _, v := range policy.Spec.Variables {
		variables = append(variables, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	compiler.CompileAndStoreVariables(variables, declared, environment.StoredExpressions)
	var conditions, validations, messages []cel.ExpressionAccessor
	for i := range policy.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&policy.Spec.MatchConditions[i]))
	}
	for _, v := range policy.Spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Reason: v.Reason})
		messages = append(messages, &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
	}
	compile := func(expressions []cel.ExpressionAccessor) cel.ConditionEvaluator {
		return compiler.CompileCondition(expressions, declared, environment.StoredExpressions)
	}
	matcher := matchconditions.NewMatcher(compile(conditions), policy.Spec.FailurePolicy, "policy", "validate", policy.Name)
	return &door{validating.NewValidator(compile(validations), matcher, compile(nil), compile(messages), policy.Spec.FailurePolicy, nil)}
}

// refuses is the policy's message; empty where it lets the object in. Old is nil for a create.
func (d *door) refuses(object, old *unstructured.Unstructured) string {
	operation := admission.Create
	if old != nil {
		operation = admission.Update
	}
	gvk := object.GroupVersionKind()
	gvr := machine.SchemeGroupVersion.WithResource("machinedeployments")
	attributes := &admission.VersionedAttributes{VersionedKind: gvk, VersionedObject: object}
	if old != nil {
		attributes.VersionedOldObject = old
	}
	attributes.Attributes = admission.NewAttributesRecord(object, attributes.VersionedOldObject, gvk, "default", object.GetName(), gvr, "", operation, &metav1.CreateOptions{}, false, nil)
	result := d.validator.Validate(context.Background(), gvr, attributes, nil, nil, celconfig.RuntimeCELCostBudget, nil)
	var refusals []string
	for _, decision := range result.Decisions {
		if decision.Action == validating.ActionDeny {
			refusals = append(refusals, decision.Message)
		}
	}
	return strings.Join(refusals, "; ")
}
