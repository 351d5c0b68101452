// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// serveRequest answers a request in one step.
func (s *Server) serveRequest(r *request) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.reachable(r.client); err != nil {
		return answer{}, err
	}
	if r.table != nil && r.Writes() {
		return s.writeObject(r)
	}
	if before, _ := s.strike(r); before != nil {
		return answer{}, before
	}
	switch {
	case r.table == nil:
		return s.discover(r.path)
	case r.Verb == "get":
		return s.readObject(r)
	case r.Verb == "list":
		return s.listObjects(r)
	default:
		return s.startWatch(r)
	}
}

func (s *Server) readObject(r *request) (answer, error) {
	v := r.table.objects[r.objectKey()]
	scale := r.Subresource == "scale" && r.table.Scale != nil
	switch {
	case r.Subresource != "" && !scale && (r.Subresource != "status" || !r.table.Status):
		return answer{}, r.notServed()
	case v == nil:
		return answer{}, r.notFound()
	case scale:
		found, err := r.table.scaleOf(v)
		if err != nil {
			return answer{}, err
		}
		return object(http.StatusOK, found)
	}
	if r.query.Get("resourceVersion") == "0" && r.Subresource == "" {
		if old := r.table.stateAt(s.staleness(r), s.version).objects[r.objectKey()]; old != nil {
			v = old
		}
	}
	return answer{code: http.StatusOK, body: v.encoded()}, nil
}

func (s *Server) listObjects(r *request) (answer, error) {
	chosen, err := r.selection()
	if err != nil {
		return answer{}, err
	}
	p, err := s.pageFor(r)
	if err != nil {
		return answer{}, err
	}
	var b bytes.Buffer
	separator := ""
	for n, v := range p.all {
		if !chosen.matches(v) {
			continue
		}
		if p.limit > 0 && p.listed == p.limit {
			p.continueAt(n, chosen)
			break
		}
		p.listed++
		b.WriteString(separator)
		b.Write(v.encoded())
		separator = ","
	}
	apiVersion, kind := r.table.gvk.ToAPIVersionAndKind()
	body := fmt.Appendf(nil, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"%d"%s},"items":[%s]}`, kind, apiVersion, p.rv, p.more, b.Bytes())
	return answer{code: http.StatusOK, body: body}, nil
}

// selection defines which objects a list, a watch or a collection delete affects.
type selection struct {
	labels labels.Selector
	fields fields.Selector
}

func (r *request) selection() (selection, error) {
	byLabel, err := labels.Parse(r.query.Get("labelSelector"))
	if err != nil {
		return selection{}, apierrors.NewBadRequest("parse labelSelector: " + err.Error())
	}
	byField, err := fields.ParseSelector(r.query.Get("fieldSelector"))
	if err != nil {
		return selection{}, apierrors.NewBadRequest("parse fieldSelector: " + err.Error())
	}
	known := append([]string{"metadata.name", "metadata.namespace"}, r.table.Fields...)
	for _, requirement := range byField.Requirements() {
		if !slices.Contains(known, requirement.Field) {
			return selection{}, apierrors.NewBadRequest("field label not supported: " + requirement.Field)
		}
	}
	return selection{byLabel, byField}, nil
}

func (c selection) matches(v *version) bool {
	if v == nil {
		return false
	}
	if !c.labels.Empty() {
		u := unstructured.Unstructured{Object: v.object}
		if !c.labels.Matches(labels.Set(u.GetLabels())) {
			return false
		}
	}
	return c.fields.Empty() || c.fields.Matches(fieldsOf(v.object))
}

// fieldsOf finds fields of an object by their path.
type fieldsOf map[string]any

// Has reports whether a field exists; a missing one counts as empty.
func (f fieldsOf) Has(string) bool { return true }

// Get returns the field's value as text, empty if there is none.
func (f fieldsOf) Get(path string) string {
	value, found, _ := unstructured.NestedFieldNoCopy(f, strings.Split(path, ".")...)
	if path == "spec.unschedulable" && !found {
		return "false"
	}
	if !found {
		return ""
	}
	return fmt.Sprint(value)
}
