// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
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
			return nil, errors.New("there is no document: write apiVersion, kind, metadata.name and the fields to change")
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
		return Change{}, fmt.Errorf("%q of %q cannot be changed here: give a MachineDeployment of %s, a Balancer of %s, a Reserve or a FederatedHorizontalPodAutoscaler of %s, or a CapacityBuffer of %s with the objects that it refers to",
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
		return errors.New("there is no target cluster, and CapacityBuffers belong to one")
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
	after.SetUID(types.UID("forecast-" + c.Name))
	after.SetCreationTimestamp(metav1.NewTime(now)) // quotas are shared out by age
	after.SetGeneration(1)
	return append(objects, after), nil
}
