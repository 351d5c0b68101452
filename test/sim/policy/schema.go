// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/evenkeel/evenkeel/test/sim"
)

// kind is one version of a definition.
type kind struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

// newSchema compiles the schemas and rules of a definition.
func newSchema(definition *apiextensionsv1.CustomResourceDefinition) (func(sim.Admission) error, error) {
	kinds := map[schema.GroupVersionKind]*kind{}
	for _, version := range definition.Spec.Versions {
		if version.Schema == nil {
			continue
		}
		k, err := newKind(version.Schema)
		if err != nil {
			return nil, err
		}
		kinds[schema.GroupVersionKind{Group: definition.Spec.Group, Version: version.Name, Kind: definition.Spec.Names.Kind}] = k
	}
	return func(a sim.Admission) error {
		k := kinds[a.GVK]
		if k == nil {
			return nil
		}
		if wrong := k.judge(a); len(wrong) > 0 {
			return apierrors.NewInvalid(a.GVK.GroupKind(), a.Object.GetName(), wrong)
		}
		return nil
	}, nil
}

func newKind(outside *apiextensionsv1.CustomResourceValidation) (*kind, error) {
	inside := &apiextensions.CustomResourceValidation{}
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(outside, inside, nil); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	structural, err := structuralschema.NewStructural(inside.OpenAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	validator, _, err := validation.NewSchemaValidator(inside.OpenAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	return &kind{structural, validator, cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
}

// judge returns the violations of an object. A violation that existed before and has not changed is
// allowed.
func (k *kind) judge(a sim.Admission) field.ErrorList {
	object := k.defaulted(a.Object.Object)
	if a.Old == nil {
		wrong := validation.ValidateCustomResource(nil, object, k.schema)
		if len(wrong) == 0 && k.rules != nil {
			wrong, _ = k.rules.Validate(context.Background(), nil, k.structural, object, nil, celconfig.RuntimeCELCostBudget)
		}
		return wrong
	}
	old := k.defaulted(a.Old.Object)
	correlated := common.NewCorrelatedObject(object, old, &model.Structural{Structural: k.structural})
	wrong := validation.ValidateCustomResourceUpdate(nil, object, old, k.schema, validation.WithRatcheting(correlated))
	if len(wrong) == 0 && k.rules != nil {
		wrong, _ = k.rules.Validate(context.Background(), nil, k.structural, object, old, celconfig.RuntimeCELCostBudget, cel.WithRatcheting(correlated))
	}
	return wrong
}

func (k *kind) defaulted(object map[string]any) map[string]any {
	object = runtime.DeepCopyJSON(object)
	defaulting.Default(object, k.structural)
	return object
}
