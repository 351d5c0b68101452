// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/evenkeel/evenkeel/test/sim"
)

var errUnknown = errors.New("parameters, match conditions, selectors and excluded rules are not known here")

// newRules compiles a ValidatingAdmissionPolicy.
func newRules(policy *admissionv1.ValidatingAdmissionPolicy) (func(sim.Admission) error, error) {
	match := policy.Spec.MatchConstraints
	if match == nil || match.NamespaceSelector != nil || match.ObjectSelector != nil || len(match.ExcludeResourceRules) > 0 ||
		policy.Spec.ParamKind != nil || len(policy.Spec.MatchConditions) > 0 {
		return nil, errUnknown
	}
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	validator := compiled(compiler, policy)
	return func(a sim.Admission) error {
		if !slices.ContainsFunc(match.ResourceRules, func(rule admissionv1.NamedRuleWithOperations) bool { return matches(rule, a) }) {
			return nil
		}
		return refusal(policy.Name, validator, a)
	}, nil
}

func compiled(compiler *cel.CompositedCompiler, policy *admissionv1.ValidatingAdmissionPolicy) validating.Validator {
	declared := cel.OptionalVariableDeclarations{}
	var variables []cel.NamedExpressionAccessor
	for _, v := range policy.Spec.Variables {
		variables = append(variables, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	compiler.CompileAndStoreVariables(variables, declared, environment.StoredExpressions)
	var validations, messages []cel.ExpressionAccessor
	for _, v := range policy.Spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Reason: v.Reason, Message: v.Message})
		messages = append(messages, &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
	}
	compile := func(expressions []cel.ExpressionAccessor) cel.ConditionEvaluator {
		return compiler.CompileCondition(expressions, declared, environment.StoredExpressions)
	}
	always := matchconditions.NewMatcher(compile(nil), policy.Spec.FailurePolicy, "policy", "validate", policy.Name)
	return validating.NewValidator(compile(validations), always, compile(nil), compile(messages), policy.Spec.FailurePolicy, nil)
}

// matches reports whether a rule applies to a write. Rules name subresources as in "pods/status".
func matches(rule admissionv1.NamedRuleWithOperations, a sim.Admission) bool {
	has := func(all []string, one string) bool { return slices.Contains(all, one) || slices.Contains(all, "*") }
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	operations := slices.Contains(rule.Operations, admissionv1.OperationType(operation(a))) || slices.Contains(rule.Operations, admissionv1.OperationAll)
	return operations && has(rule.APIGroups, a.GVK.Group) && has(rule.APIVersions, a.GVK.Version) && has(rule.Resources, resource)
}

func operation(a sim.Admission) admission.Operation {
	if a.Old == nil {
		return admission.Create
	}
	return admission.Update
}

// refusal returns the answer to a write that a policy denies.
func refusal(name string, validator validating.Validator, a sim.Admission) error {
	gvr := a.GVK.GroupVersion().WithResource(a.Resource)
	attributes := &admission.VersionedAttributes{VersionedKind: a.GVK, VersionedObject: a.Object}
	if a.Old != nil {
		attributes.VersionedOldObject = a.Old
	}
	attributes.Attributes = admission.NewAttributesRecord(a.Object, attributes.VersionedOldObject, a.GVK, a.Namespace, a.Name, gvr, a.Subresource,
		operation(a), &metav1.CreateOptions{}, false, nil)
	result := validator.Validate(context.Background(), gvr, attributes, nil, nil, celconfig.RuntimeCELCostBudget, nil)
	for _, decision := range result.Decisions {
		if decision.Action == validating.ActionDeny {
			return denied(gvr.GroupResource(), a.Name, name, decision)
		}
	}
	return nil
}

func denied(resource schema.GroupResource, object, policy string, decision validating.PolicyDecision) error {
	message := fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", policy, policy, decision.Message)
	err := apierrors.NewForbidden(resource, object, errors.New(message))
	if reason := cmp.Or(decision.Reason, metav1.StatusReasonInvalid); reason == metav1.StatusReasonInvalid {
		err.ErrStatus.Reason, err.ErrStatus.Code = reason, http.StatusUnprocessableEntity
	}
	return err
}
