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

// checked are the annotations that the policy checks, each with the parser of its values.
var checked = []struct {
	key   string
	inner bool // in the node template
	parse func(string) error
}{
	{machine.BoundsAnnotation, false, func(text string) error { _, err := machine.ParseBounds(text); return err }},
	{machine.PoolExcessAnnotation, true, func(text string) error { _, err := machine.ParseExcess(text); return err }},
	{machine.BalanceAnnotation, false, func(text string) error { _, err := machine.ParseBalanceMode(text); return err }},
	{machine.AccountingAnnotation, false, func(text string) error { _, err := machine.ParseAccounting(text); return err }},
	{machine.DrainReserveAnnotation, false, func(text string) error { _, err := machine.ParseDrainReserve(text); return err }},
}

var _ = Describe("The annotations policy", Ordered, func() {
	var door *door

	BeforeAll(func() { door = openDoor("../../../../kubernetes/policies/machinedeployment-annotations.yaml") })

	It("answers as the parsers do, for chosen texts", func() {
		texts := append(goodBounds, badBounds...)
		for _, text := range texts {
			if _, excess, is := strings.Cut(strings.TrimPrefix(text, "1:"), ":"); is {
				texts = append(texts, excess)
			}
		}
		texts = append(texts, "Off", "ScaleUp", "Continuous", "Additive", "Inclusive", "inclusive", "auto", "off", "Off ", "true", "false", "True", "yes", "1", "cpu="+strings.Repeat("1", 300))
		for _, is := range checked {
			for _, text := range texts {
				err := is.parse(text)
				refusal := door.refuses(annotated(is.key, text, is.inner), nil)
				Expect(refusal != "").To(Equal(err != nil), "%s: %q: parser says %v, policy says %q", is.key, text, err, refusal)
			}
		}
	})

	It("answers as the parsers do, for drawn texts", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			for _, is := range checked[:2] {
				text := boundsLike().Draw(t, "text")
				if is.inner {
					text = text[strings.LastIndex(text, ":")+1:]
				}
				err := is.parse(text)
				if refusal := door.refuses(annotated(is.key, text, is.inner), nil); (refusal != "") != (err != nil) {
					t.Fatalf("%s: %q: parser says %v, policy says %q", is.key, text, err, refusal)
				}
			}
		})
	})

	DescribeTable("gives the reason and names the annotation",
		func(key, text, reason string) {
			refusal := door.refuses(annotated(key, text, key == machine.PoolExcessAnnotation), nil)
			Expect(refusal).To(And(ContainSubstring(reason), ContainSubstring(key)))
		},
		Entry(nil, machine.BoundsAnnotation, "1", "min:max or min:max:excess"),
		Entry(nil, machine.BoundsAnnotation, "5:1", "min must not be above max"),
		Entry(nil, machine.BoundsAnnotation, "0:2147483648", "must be at most 2147483647"),
		Entry(nil, machine.BoundsAnnotation, "1:5:cpu=1,cpu=10%", "only once"),
		Entry(nil, machine.BoundsAnnotation, "1:5:max(1,2)", "only once"),
		Entry(nil, machine.PoolExcessAnnotation, "five", "excess is a count"),
		Entry(nil, machine.PoolExcessAnnotation, "2147483648", "must be at most 2147483647"),
		Entry(nil, machine.PoolExcessAnnotation, "max(5%,6%)", "only once"),
		Entry(nil, machine.BalanceAnnotation, "on", "write Off, ScaleUp or Continuous"),
		Entry(nil, machine.AccountingAnnotation, "inclusive", "write Additive or Inclusive"),
		Entry(nil, machine.DrainReserveAnnotation, "yes", "write true or false"),
	)

	It("asks for quotes where YAML without them makes a number of an excess", func() {
		number := plain("new")
		path := []string{"spec", "template", "spec", "nodeTemplate", "metadata", "annotations"}
		Expect(unstructured.SetNestedMap(number.Object, map[string]any{machine.PoolExcessAnnotation: int64(2)}, path...)).To(Succeed())
		Expect(door.refuses(number, nil)).To(And(ContainSubstring(machine.PoolExcessAnnotation), ContainSubstring("in quotes")))
	})

	It("checks an annotation only when it changes", func() {
		for _, is := range checked {
			with := func(text string) *unstructured.Unstructured { return annotated(is.key, text, is.inner) }
			Expect(door.refuses(with("garbage"), with("garbage"))).To(BeEmpty(), is.key)
			Expect(door.refuses(with("garbage"), with("other garbage"))).NotTo(BeEmpty(), is.key)
			Expect(door.refuses(with(""), with("garbage"))).NotTo(BeEmpty(), is.key)
			Expect(door.refuses(with(""), plain("old"))).NotTo(BeEmpty(), is.key)
			Expect(door.refuses(plain("new"), with("garbage"))).To(BeEmpty(), is.key)
		}
		Expect(door.refuses(plain("new"), nil)).To(BeEmpty())
		Expect(door.refuses(annotated(machine.BoundsAnnotation, "1:5", false), annotated(machine.PoolExcessAnnotation, "garbage", true))).To(BeEmpty())
	})
})

func plain(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(machine.SchemeGroupVersion.WithKind("MachineDeployment"))
	u.SetName(name)
	return u
}

// annotated has an annotation beside others, in its own metadata or in that of its node template.
func annotated(key, text string, inner bool) *unstructured.Unstructured {
	path := []string{"metadata", "annotations"}
	if inner {
		path = []string{"spec", "template", "spec", "nodeTemplate", "metadata", "annotations"}
	}
	u := plain("new")
	Expect(unstructured.SetNestedStringMap(u.Object, map[string]string{key: text, "other": "annotation"}, path...)).To(Succeed())
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
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Reason: v.Reason, Message: v.Message})
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
