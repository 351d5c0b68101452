// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"
)

// serverSideApply merges an applied configuration into the stored object, or creates the object.
func (s *Server) serverSideApply(r *request, was *version) (answer, error) {
	manager := r.query.Get("fieldManager")
	if manager == "" {
		return answer{}, r.invalid(field.Required(field.NewPath("fieldManager"), "is required for apply patch"))
	}
	configuration, err := r.configuration()
	if err != nil {
		return answer{}, err
	}
	if was == nil && configuration.GetUID() != "" {
		return answer{}, r.conflict(fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", configuration.GetUID()))
	}
	fields, err := r.table.fields(r.Subresource)
	if err != nil {
		return answer{}, err
	}
	force := r.query.Get("force") == "true" || r.query.Get("force") == "1"
	merged, err := fields.Apply(r.liveObject(was), configuration, manager, force)
	if err != nil {
		return answer{}, asStatus(err)
	}
	object, err := r.table.normalize(runtime.DeepCopyJSON(merged.(*unstructured.Unstructured).Object))
	if err != nil {
		return answer{}, err
	}
	if was != nil {
		return s.replace(r, was, object)
	}
	if r.Subresource != "" {
		return answer{}, r.notFound()
	}
	metadataOf(object)["name"] = r.Name
	return s.createObject(r, object)
}

// configuration returns the object of an apply request, which contains only the fields that its
// manager owns.
func (r *request) configuration() (*unstructured.Unstructured, error) {
	raw, err := yaml.YAMLToJSON(r.body)
	if err != nil {
		return nil, apierrors.NewBadRequest("decode apply patch: " + err.Error())
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		return nil, apierrors.NewBadRequest("decode apply patch: " + err.Error())
	}
	if u.GetName() != "" && u.GetName() != r.Name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", u.GetName(), r.Name))
	}
	return u, nil
}

// liveObject returns the stored object as field managers see it, and an empty one if there is none.
func (r *request) liveObject(was *version) *unstructured.Unstructured {
	if was != nil {
		return was.unstructured()
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(r.table.gvk)
	return u
}

// manage records in the managed fields of a written object who wrote what. An object that was
// created without a record gets none until it is applied.
func (s *Server) manage(r *request, was *version, object map[string]any) (map[string]any, error) {
	if r.applies() {
		return object, nil // apply has done so
	}
	if was == nil && !s.managed || was != nil && metadataOf(was.object)["managedFields"] == nil {
		delete(metadataOf(object), "managedFields")
		return object, nil
	}
	fields, err := r.table.fields(r.Subresource)
	if err != nil {
		return nil, err
	}
	is, err := fields.Update(r.liveObject(was), &unstructured.Unstructured{Object: object}, r.manager())
	if err != nil {
		return nil, asStatus(err)
	}
	return is.(*unstructured.Unstructured).Object, nil
}

// applies reports whether this is a server-side apply.
func (r *request) applies() bool { return r.Verb == "patch" && r.patch == types.ApplyPatchType }

// manager returns the name under which a request writes: the given one, or the beginning of its
// User-Agent.
func (r *request) manager() string {
	agent, _, _ := strings.Cut(r.agent, "/")
	return cmp.Or(r.query.Get("fieldManager"), agent, "unknown")
}

func asStatus(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return err
	}
	return apierrors.NewGenericServerResponse(http.StatusInternalServerError, "", schema.GroupResource{}, "", err.Error(), 0, true)
}

// fields maintains the managed fields of a kind, through one of its subresources.
func (t *table) fields(subresource string) (*managedfields.FieldManager, error) {
	if known := t.managers[subresource]; known != nil {
		return known, nil
	}
	gv, reset := t.gvk.GroupVersion(), map[fieldpath.APIVersion]fieldpath.Filter{}
	if ignored := t.ignored(subresource); ignored != nil {
		reset[fieldpath.APIVersion(gv.String())] = fieldpath.NewExcludeSetFilter(ignored)
	}
	build, converter := managedfields.NewDefaultFieldManager, builtIn
	if t.Type == nil {
		build, converter = managedfields.NewDefaultCRDFieldManager, managedfields.NewDeducedTypeConverter
	}
	made, err := build(converter(), asIs{}, asIs{}, asIs{}, t.gvk, gv, subresource, reset)
	if err != nil {
		return nil, fmt.Errorf("manage fields of %s: %w", t.Kind, err)
	}
	t.managers[subresource] = made
	return made, nil
}

// ignored returns the fields that a write through a subresource cannot change, and therefore does
// not own.
func (t *table) ignored(subresource string) *fieldpath.Set {
	switch {
	case !t.Status || subresource == "scale":
		return nil
	case subresource == "":
		return fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	case t.Type == nil:
		return fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata"))
	}
	return fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
}

// builtIn defines how lists of the built-in kinds are merged.
var builtIn = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme.Scheme) })

// asIs converts nothing: each kind has one version here, and no defaults.
type asIs struct{}

func (asIs) Convert(_, _, _ any) error { return errors.ErrUnsupported }

func (asIs) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (asIs) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (asIs) Default(runtime.Object) {}

func (asIs) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	return u, nil
}
