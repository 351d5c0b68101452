// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"net/http"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// writeObject carries out a write, with its faults. The caller holds the lock.
func (s *Server) writeObject(r *request) (answer, error) {
	if err := s.checkLivelock(r); err != nil {
		return answer{}, err
	}
	if err := s.announce(r); err != nil {
		return answer{}, err
	}
	if r.client.cut.Load() {
		return answer{}, refused()
	}
	before, after := s.drawFailure(r.User)
	if before == nil && after == nil {
		before, after = s.strike(r)
	}
	if before != nil {
		return answer{}, before
	}
	a, err := s.effect(r)
	switch {
	case err != nil:
		return answer{}, err
	case r.client.cut.Load():
		return answer{}, refused()
	case r.lost != nil:
		return answer{}, r.lost
	case after != nil:
		return answer{}, after
	}
	return a, nil
}

func (s *Server) effect(r *request) (answer, error) {
	if r.Subresource != "" && r.Subresource != "status" {
		return s.subresource(r)
	}
	if r.Subresource == "status" && (!r.table.Status || r.Verb != "update" && r.Verb != "patch") {
		return answer{}, r.notServed()
	}
	switch r.Verb {
	case "create":
		return s.create(r)
	case "update", "patch":
		return s.update(r)
	case "delete":
		return s.delete(r)
	default:
		return s.deleteCollection(r)
	}
}

func (s *Server) create(r *request) (answer, error) {
	object, err := r.decode(r.body)
	if err != nil {
		return answer{}, err
	}
	return s.createObject(r, object)
}

// createObject stores a new object.
func (s *Server) createObject(r *request, object map[string]any) (answer, error) {
	m, err := objectMeta(object)
	if err != nil {
		return answer{}, err
	}
	if r.table.Namespaced && r.Namespace == "" {
		return answer{}, r.invalid(field.Required(field.NewPath("metadata", "namespace"), ""))
	}
	if err := r.sameNamespace(m); err != nil {
		return answer{}, err
	}
	if err := s.initMeta(r, m); err != nil {
		return answer{}, err
	}
	r.Name = m.Name
	if r.table.objects[r.objectKey()] != nil {
		return answer{}, apierrors.NewAlreadyExists(r.table.gvr.GroupResource(), r.Name)
	}
	if r.table.Status && !r.table.BornWithStatus {
		delete(object, "status")
	}
	if r.table.Admit != nil {
		r.table.Admit(object)
	}
	if err := setObjectMeta(object, m); err != nil {
		return answer{}, err
	}
	if object, err = s.manage(r, nil, object); err != nil {
		return answer{}, err
	}
	if err := s.runChecks(r, nil, object); err != nil {
		return answer{}, err
	}
	return s.commit(r, http.StatusCreated, nil, object)
}

// update replaces the stored object by the object of the body, or by the stored one with the patch
// applied.
func (s *Server) update(r *request) (answer, error) {
	was := r.table.objects[r.objectKey()]
	if r.applies() {
		return s.serverSideApply(r, was)
	}
	if was == nil {
		return answer{}, r.notFound()
	}
	object, err := r.proposal(was)
	if err != nil {
		return answer{}, err
	}
	return s.replace(r, was, object)
}

func (r *request) proposal(was *version) (map[string]any, error) {
	if r.Verb == "update" {
		return r.decode(r.body)
	}
	patched, err := r.patched(was)
	if err != nil {
		return nil, err
	}
	return r.table.normalize(patched)
}

func (s *Server) replace(r *request, was *version, object map[string]any) (answer, error) {
	m, err := objectMeta(object)
	if err != nil {
		return answer{}, err
	}
	old, err := objectMeta(was.object)
	if err != nil {
		return answer{}, err
	}
	if err := r.current(m, old); err != nil {
		return answer{}, err
	}
	m, object = r.isolate(m, old, object, was.object)
	if err := r.preserveMeta(m, old); err != nil {
		return answer{}, err
	}
	if r.table.Generation && !sameBut(object, was.object, "metadata", r.ignoredByGeneration()) {
		m.Generation++
	}
	if err := setObjectMeta(object, m); err != nil {
		return answer{}, err
	}
	if object, err = s.manage(r, was, object); err != nil {
		return answer{}, err
	}
	if err := s.runChecks(r, was, object); err != nil {
		return answer{}, err
	}
	if m.DeletionTimestamp != nil && len(m.Finalizers) == 0 {
		return s.remove(r, was, object)
	}
	return s.commit(r, http.StatusOK, was, object)
}

// current rejects a change that was decided on another state of the object.
func (r *request) current(m, was *metav1.ObjectMeta) error {
	if m.Name == "" && r.Verb == "update" {
		m.Name = was.Name
	}
	if m.Name != r.Name && r.Verb == "update" {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", m.Name, r.Name))
	}
	if err := r.sameNamespace(m); err != nil {
		return err
	}
	m.Namespace = r.Namespace
	if r.Verb == "update" && m.UID != "" && m.UID != was.UID {
		return r.conflict(fmt.Errorf("precondition failed: UID in precondition: %v, UID in object meta: %v", m.UID, was.UID))
	}
	if m.ResourceVersion == "" && r.table.Unconditional {
		return nil
	}
	if m.ResourceVersion == "" {
		return r.invalid(field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"))
	}
	if m.ResourceVersion != was.ResourceVersion {
		return r.conflict(fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
	}
	return nil
}

func (r *request) sameNamespace(m *metav1.ObjectMeta) error {
	if m.Namespace != "" && m.Namespace != r.Namespace {
		return apierrors.NewBadRequest(fmt.Sprintf("the namespace of the provided object does not match the namespace sent on the request (%s, %s)", m.Namespace, r.Namespace))
	}
	return nil
}

// isolate keeps a write of the status from changing anything else, and another write from changing
// the status.
func (r *request) isolate(m, old *metav1.ObjectMeta, object, was map[string]any) (*metav1.ObjectMeta, map[string]any) {
	if !r.table.Status {
		return m, object
	}
	if r.Subresource != "status" {
		copyField(object, was, "status")
		return m, object
	}
	whole := runtime.DeepCopyJSON(was)
	copyField(whole, object, "status")
	if r.table.Type == nil {
		m = old.DeepCopy()
	}
	return m, whole
}

// copyField makes a field of an object equal to that of another object.
func copyField(object, from map[string]any, name string) {
	if value, ok := from[name]; ok {
		object[name] = value
		return
	}
	delete(object, name)
}

func (r *request) ignoredByGeneration() string {
	if r.table.Status {
		return "status"
	}
	return "metadata"
}

// sameBut reports whether two objects differ only in the named fields.
func sameBut(a, b map[string]any, ignored ...string) bool {
	strip := func(object map[string]any) map[string]any {
		rest := make(map[string]any, len(object))
		for name, value := range object {
			rest[name] = value
		}
		for _, name := range ignored {
			delete(rest, name)
		}
		return rest
	}
	return reflect.DeepEqual(strip(a), strip(b))
}

// commit stores an object, unless it equals the stored one.
func (s *Server) commit(r *request, code int, was *version, object map[string]any) (answer, error) {
	if r.dryRun() {
		return answer{code: code, body: (&version{object: object}).encoded()}, nil
	}
	if was != nil && reflect.DeepEqual(was.object, object) {
		s.record(r, was, was.rv, "")
		return answer{code: code, body: was.encoded()}, nil
	}
	effect := Added
	if was != nil {
		effect = Modified
	}
	is := s.storeObject(r.table, r.objectKey(), was, object)
	s.record(r, is, is.rv, effect)
	return answer{code: code, body: is.encoded()}, nil
}
