// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// decode reads the object of a request's body, as the kind of the request.
func (r *request) decode(raw []byte) (map[string]any, error) {
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return nil, apierrors.NewBadRequest("the request has no object")
	}
	object, err := r.table.parseObject(raw)
	if err != nil {
		return nil, err
	}
	apiVersion, kind := r.table.gvk.ToAPIVersionAndKind()
	for name, want := range map[string]string{"apiVersion": apiVersion, "kind": kind} {
		if got, ok := object[name]; ok && got != "" && got != want {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in the data (%v) does not match the expected one (%s)", name, got, want))
		}
		object[name] = want
	}
	return object, nil
}

// parseObject reads an object in the form of [table.normalize].
func (t *table) parseObject(raw []byte) (map[string]any, error) {
	if t.Type == nil {
		var object map[string]any
		if err := utiljson.Unmarshal(raw, &object); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("decode %s: %v", t.Kind, err))
		}
		return t.normalize(object)
	}
	typed := reflect.New(reflect.TypeOf(t.Type).Elem()).Interface()
	if err := utiljson.Unmarshal(raw, typed); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled: %v", t.Kind, t.Version, err))
	}
	normal, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return normal, nil
}

// normalize gives a built-in kind the form of its Go type, and prunes a custom one: nulls and
// unknown fields are dropped.
func (t *table) normalize(object map[string]any) (map[string]any, error) {
	if t.Type == nil {
		dropNulls(object)
		t.pruneFields(object)
		return object, nil
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return t.parseObject(raw)
}

func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if inner == nil {
				delete(value, name)
			}
			dropNulls(inner)
		}
	case []any:
		for _, inner := range value {
			dropNulls(inner)
		}
	}
}

func (t *table) pruneFields(object map[string]any) {
	if t.Known == nil {
		return
	}
	for part, known := range map[string][]string{"spec": t.Known.Spec, "status": t.Known.Status} {
		fields, _ := object[part].(map[string]any)
		kept := map[string]any{}
		for _, name := range known {
			if value, ok := fields[name]; ok {
				kept[name] = value
			}
		}
		if fields != nil {
			object[part] = kept
		}
	}
}

// objectMeta reads the metadata of an object; unknown fields are dropped.
func objectMeta(object map[string]any) (*metav1.ObjectMeta, error) {
	m := &metav1.ObjectMeta{}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok && object["metadata"] != nil {
		return nil, apierrors.NewBadRequest("metadata is not an object")
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(metadata, m); err != nil {
		return nil, apierrors.NewBadRequest("read metadata: " + err.Error())
	}
	return m, nil
}

func setObjectMeta(object map[string]any, m *metav1.ObjectMeta) error {
	metadata, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		return fmt.Errorf("encode metadata: %w", err)
	}
	if m.CreationTimestamp.IsZero() {
		delete(metadata, "creationTimestamp")
	}
	object["metadata"] = metadata
	return nil
}

// initMeta sets the metadata of a new object that only the server decides.
func (s *Server) initMeta(r *request, m *metav1.ObjectMeta) error {
	if m.ResourceVersion != "" {
		return apierrors.NewInternalError(fmt.Errorf("resourceVersion should not be set on objects to be created"))
	}
	if m.Name == "" && m.GenerateName != "" {
		m.Name = s.generateName(r, m.GenerateName)
	}
	m.Namespace = r.Namespace
	m.UID = s.newUID()
	m.CreationTimestamp = metav1.Time{Time: s.serverTime().UTC()}.Rfc3339Copy()
	m.DeletionTimestamp, m.DeletionGracePeriodSeconds = nil, nil
	if m.Generation = 0; r.table.Generation {
		m.Generation = 1
	}
	errs := validation.ValidateObjectMetaAccessor(m, r.table.Namespaced, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	if len(errs) > 0 {
		r.Name = m.Name
		return r.invalid(errs...)
	}
	return nil
}

// preserveMeta sets the metadata of a changed object that only the server decides, from the stored
// one.
func (r *request) preserveMeta(m, was *metav1.ObjectMeta) error {
	if m.UID == "" {
		m.UID = was.UID
	}
	m.CreationTimestamp = was.CreationTimestamp
	if m.ManagedFields == nil {
		m.ManagedFields = was.ManagedFields
	}
	if was.DeletionTimestamp != nil {
		m.DeletionTimestamp, m.DeletionGracePeriodSeconds = was.DeletionTimestamp, was.DeletionGracePeriodSeconds
	}
	m.Generation = was.Generation
	m.ResourceVersion = was.ResourceVersion
	if errs := validation.ValidateObjectMetaAccessorUpdate(m, was, field.NewPath("metadata")); len(errs) > 0 {
		return r.invalid(errs...)
	}
	return nil
}

const nameAlphabet = "bcdfghjklmnpqrstvwxz2456789"

func (s *Server) generateName(r *request, base string) string {
	for {
		suffix := make([]byte, 5)
		for i := range suffix {
			suffix[i] = nameAlphabet[s.random.IntN(len(nameAlphabet))]
		}
		name := base + string(suffix)
		if r.table.objects[key{r.Namespace, name}] == nil {
			return name
		}
	}
}

func (s *Server) newUID() types.UID {
	a, b := s.random.Uint64(), s.random.Uint64()
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0xfff, b&0xffffffffffff))
}

// parseVersion parses a resourceVersion from a client.
func parseVersion(text string) (uint64, error) {
	rv, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q", text))
	}
	return rv, nil
}
