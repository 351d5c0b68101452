// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// Validator rejects what the API server would reject, by its CustomResourceDefinitions and, for
// annotations, by the grammar of its admission policy. If a definition could not be read, only the
// grammar applies.
type Validator map[schema.GroupVersionKind]*apiextensionsv1.CustomResourceDefinition

var definitions = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// names of the definitions.
var definitionOf = map[schema.GroupVersionKind]string{
	kindDeployment: "machinedeployments." + kindDeployment.Group,
	kindBalancer:   "balancers." + kindBalancer.Group,
	kindFederated:  "federatedhorizontalpodautoscalers." + kindFederated.Group,
	kindReserve:    "reserves." + kindReserve.Group,
	kindBuffer:     "capacitybuffers." + kindBuffer.Group,
}

// Validator reads the definitions of the kinds that change. It returns one line for each that could
// not be read.
func (c Clients) Validator(ctx context.Context, changes []Change) (Validator, []string) {
	door, missing := Validator{}, []string{}
	for _, change := range changes {
		if door[change.Kind] != nil || change.isReference() {
			continue
		}
		client := c.Control
		if change.InTarget() {
			client = c.Target
		}
		if client == nil {
			continue
		}
		u, err := client.Resource(definitions).Get(ctx, definitionOf[change.Kind], metav1.GetOptions{})
		if err == nil {
			door[change.Kind], err = convertTo[apiextensionsv1.CustomResourceDefinition](u)
		}
		line := fmt.Sprintf("the schema of %s could not be read, so changes are not validated against it", change.Kind.Kind)
		if err != nil && !slices.Contains(missing, line) {
			missing = append(missing, line)
		}
	}
	return door, missing
}

// Validate returns an object with its defaults, or reports what is wrong with it. Before is the
// existing object, nil if there is none.
func (d Validator) Validate(kind schema.GroupVersionKind, raw, before []byte) ([]byte, error) {
	object, err := treeOf(raw)
	if err != nil {
		return nil, err
	}
	old, err := treeOf(before)
	if err != nil {
		return nil, err
	}
	if definition := d[kind]; definition != nil {
		if err := validateSchema(definition, kind.Version, object, old); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(grammar(object, old)...); err != nil {
		return nil, err
	}
	if raw, err = json.Marshal(object); err != nil {
		return nil, fmt.Errorf("encode object: %w", err)
	}
	return raw, nil
}

func treeOf(raw []byte) (map[string]any, error) {
	if raw == nil {
		return nil, nil
	}
	var tree map[string]any
	if err := utiljson.Unmarshal(raw, &tree); err != nil {
		return nil, fmt.Errorf("decode object: %w", err)
	}
	return tree, nil
}

// validateSchema checks an object against a definition, first its schema and then its rules, and
// sets defaults.
func validateSchema(definition *apiextensionsv1.CustomResourceDefinition, version string, object, old map[string]any) error {
	at := slices.IndexFunc(definition.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	if at < 0 || definition.Spec.Versions[at].Schema == nil {
		return nil
	}
	inside := &apiextensions.CustomResourceValidation{}
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(definition.Spec.Versions[at].Schema, inside, nil); err != nil {
		return fmt.Errorf("read schema: %w", err)
	}
	structural, err := structuralschema.NewStructural(inside.OpenAPIV3Schema)
	if err != nil {
		return fmt.Errorf("read schema: %w", err)
	}
	defaulting.Default(object, structural)
	validator, _, err := validation.NewSchemaValidator(inside.OpenAPIV3Schema)
	if err != nil {
		return fmt.Errorf("read schema: %w", err)
	}
	if wrong := validation.ValidateCustomResource(nil, object, validator); len(wrong) > 0 {
		return wrong.ToAggregate()
	}
	var was any
	if old != nil {
		was = old
	}
	wrong, _ := cel.NewValidator(structural, true, celconfig.PerCallLimit).Validate(context.Background(), nil, structural, object, was, celconfig.RuntimeCELCostBudget)
	return wrong.ToAggregate()
}

// grammar checks annotations of ours that are new or have changed.
func grammar(object, old map[string]any) []error {
	var errs []error
	for _, rule := range []struct {
		key   string
		inner bool // in the annotations of the node template
		parse func(string) error
	}{
		{machine.BoundsAnnotation, false, func(s string) error { _, err := machine.ParseBounds(s); return err }},
		{machine.ShareAnnotation, false, func(s string) error { _, err := machine.ParseShare(s); return err }},
		{machine.BalanceAnnotation, false, func(s string) error { _, err := machine.ParseBalanceMode(s); return err }},
		{machine.AccountingAnnotation, false, func(s string) error { _, err := machine.ParseAccounting(s); return err }},
		{machine.DrainReserveAnnotation, false, func(s string) error { _, err := machine.ParseDrainReserve(s); return err }},
		{machine.PoolExcessAnnotation, true, func(s string) error { _, err := machine.ParseExcess(s); return err }},
	} {
		path := []string{"metadata", "annotations"}
		if rule.inner {
			path = []string{"spec", "template", "spec", "nodeTemplate", "metadata", "annotations"}
		}
		text, is := stringAt(object, append(path, rule.key)...)
		if was, had := stringAt(old, append(path, rule.key)...); !is || had && was == text {
			continue
		}
		if err := rule.parse(text); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// stringAt returns the string at a path in a tree.
func stringAt(tree map[string]any, path ...string) (string, bool) {
	for _, name := range path[:len(path)-1] {
		tree, _ = tree[name].(map[string]any)
	}
	text, ok := tree[path[len(path)-1]].(string)
	return text, ok
}

func bufferOf(r io.Reader) *bufio.Reader { return bufio.NewReader(r) }
