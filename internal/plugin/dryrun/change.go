// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	strictjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	balancerapi "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer"
)

// Change is one document: the fields of an object to change, or a whole new object.
type Change struct {
	Kind            schema.GroupVersionKind
	Namespace, Name string
	raw             []byte
}

// The kinds that can be changed.
var (
	kindDeployment = machine.SchemeGroupVersion.WithKind("MachineDeployment")
	kindBalancer   = balancerapi.SchemeGroupVersion.WithKind("Balancer")
	kindFederated  = autoscaling.SchemeGroupVersion.WithKind("FederatedHorizontalPodAutoscaler")
	kindReserve    = autoscaling.SchemeGroupVersion.WithKind("Reserve")
	kindBuffer     = v1beta1.SchemeGroupVersion.WithKind("CapacityBuffer")
	kindNamespace  = corev1.SchemeGroupVersion.WithKind("Namespace")
)

// Namespaces are those of documents without one, in the control cluster and in the target cluster.
type Namespaces struct{ Control, Target string }

// ParseChanges parses YAML or JSON documents. Documents without a namespace get the given one.
func ParseChanges(r io.Reader, namespaces Namespaces) ([]Change, error) {
	reader := utilyaml.NewYAMLReader(bufferOf(r))
	var all []Change
	for n := 1; ; n++ {
		text, err := reader.Read()
		switch {
		case errors.Is(err, io.EOF) && len(all) == 0:
			return nil, errors.New("the file is empty: write apiVersion, kind, metadata.name and the fields to change")
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("read document %d: %w", n, err)
		}
		raw, err := yaml.YAMLToJSONStrict(text)
		if err != nil {
			return nil, fmt.Errorf("read document %d: %w", n, err)
		}
		if bytes.Equal(raw, []byte("null")) {
			continue
		}
		c, err := parseChange(raw, namespaces)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		if c.Kind != kindNamespace { // no plan reads it
			all = append(all, c)
		}
	}
}

func parseChange(raw []byte, namespaces Namespaces) (Change, error) {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &u.Object); err != nil {
		return Change{}, fmt.Errorf("must be an object: %w", err)
	}
	c := Change{Kind: u.GroupVersionKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
	if !slices.Contains([]schema.GroupVersionKind{kindDeployment, kindBalancer, kindFederated, kindReserve, kindBuffer, kindNamespace}, c.Kind) && !c.isReference() {
		return Change{}, fmt.Errorf("plan does not support %q of %q: use a MachineDeployment of %s, a Balancer of %s, a Reserve or a FederatedHorizontalPodAutoscaler of %s, or a CapacityBuffer of %s with the objects that it refers to",
			u.GetKind(), u.GetAPIVersion(), kindDeployment.GroupVersion(), kindBalancer.GroupVersion(), kindReserve.GroupVersion(), kindBuffer.GroupVersion())
	}
	if c.Name == "" {
		return Change{}, fmt.Errorf("%s has no metadata.name", c.Kind.Kind)
	}
	if c.Namespace == "" && c.InTarget() {
		c.Namespace = namespaces.Target
	}
	c.Namespace = cmp.Or(c.Namespace, namespaces.Control)
	// The server would reject a request with these.
	unstructured.RemoveNestedField(u.Object, "status")
	for _, field := range []string{"resourceVersion", "uid", "generation", "creationTimestamp", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	u.SetNamespace(c.Namespace)
	var err error
	if c.raw, err = json.Marshal(u.Object); err != nil {
		return Change{}, fmt.Errorf("encode %s: %w", c, err)
	}
	return c, nil
}

// InTarget reports whether the object belongs to the target cluster.
func (c Change) InTarget() bool { return c.Kind == kindBuffer || c.isReference() }

// isReference reports whether it is of a kind that CapacityBuffers may name.
func (c Change) isReference() bool {
	return slices.Contains(capacitybuffer.NamedKinds(), c.Kind)
}

// String names the object.
func (c Change) String() string { return c.Kind.Kind + " " + c.Namespace + "/" + c.Name }

// needed are the resources without which the result of a change is unknown, by the kind that is
// changed.
var needed = map[schema.GroupVersionKind][]string{
	kindDeployment: {"machinedeployments"},
	kindBalancer:   {"balancers"},
	kindFederated:  {"federatedhorizontalpodautoscalers"},
	kindReserve:    {"reserves"},
	kindBuffer:     {"capacitybuffers", "reserves", "nodes", "pods"},
}

// Apply applies a change to the objects as a merge patch: maps are merged, lists replaced, null
// removes. It creates an object that does not exist. The validator refuses what the server would
// refuse.
func (o Objects) Apply(c Change, door Validator) (Objects, error) {
	var errs []error
	for _, resource := range needed[c.Kind] {
		errs = append(errs, o.readError(resource))
	}
	err := errors.Join(errs...)
	switch {
	case err != nil:
	case c.Kind == kindDeployment:
		o.Deployments, err = change(o.Deployments, c, door, o.At)
	case c.Kind == kindBalancer:
		o.Balancers, err = change(o.Balancers, c, door, o.At)
	case c.Kind == kindFederated:
		o.Federated, err = change(o.Federated, c, door, o.At)
	case c.Kind == kindReserve:
		o.Reserves, err = change(o.Reserves, c, door, o.At)
	case c.Kind == kindBuffer:
		o.Buffers, err = change(o.Buffers, c, door, o.At)
	default:
		o.Referenced = append(slices.Clone(o.Referenced), c)
	}
	if err != nil {
		return Objects{}, fmt.Errorf("change %s: %w", c, err)
	}
	return o, nil
}

// readError returns an error if a resource may have objects that could not be read. What a change
// to one results in is then unknown.
func (o Objects) readError(resource string) error {
	if resource == "capacitybuffers" && !o.Target {
		return errors.New("CapacityBuffers need a target cluster: set --target-kubeconfig")
	}
	if why := o.Unread[resource]; why != "" {
		return fmt.Errorf("the %s of the cluster could not be read: %s", resource, why)
	}
	return nil
}

func (c Change) names(o metav1.Object) bool {
	return o.GetNamespace() == c.Namespace && o.GetName() == c.Name
}

// merge returns an object before the change, and after it.
func (c Change) merge(o any) (before, after []byte, err error) {
	if before, err = json.Marshal(o); err != nil {
		return nil, nil, fmt.Errorf("encode what is there: %w", err)
	}
	if after, err = jsonpatch.MergePatch(before, c.raw); err != nil {
		return nil, nil, fmt.Errorf("merge: %w", err)
	}
	return before, after, nil
}

// object is a pointer to a kind.
type object[T any] interface {
	*T
	metav1.Object
}

func change[T any, P object[T]](objects []P, c Change, door Validator, now time.Time) ([]P, error) {
	at := slices.IndexFunc(objects, func(o P) bool { return c.names(o) })
	before, raw := []byte(nil), c.raw
	if at >= 0 {
		var err error
		if before, raw, err = c.merge(objects[at]); err != nil {
			return nil, err
		}
	}
	raw, err := door.Validate(c.Kind, raw, before)
	if err != nil {
		return nil, err
	}
	after := P(new(T))
	strict, err := strictjson.UnmarshalStrict(raw, after)
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, err
	}
	objects = slices.Clone(objects)
	if at >= 0 {
		after.SetGeneration(after.GetGeneration() + 1)
		objects[at] = after
		return objects, nil
	}
	after.SetUID(types.UID("forecast-" + keyOf(after)))
	after.SetCreationTimestamp(metav1.NewTime(now)) // quotas are shared out by age
	after.SetGeneration(1)
	return append(objects, after), nil
}

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
