// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Admission is an object that is about to be stored.
type Admission struct {
	Request
	GVK schema.GroupVersionKind
	// Object is what is to be stored, Old what is stored now, nil for a new object. Neither may be
	// changed.
	Object, Old *unstructured.Unstructured
}

// Admit adds a check of objects that are created or changed, under the rules of OnWrite. If it
// returns an error, that is the answer, and nothing is stored. Package policy contains the checks
// of the manifests.
func (s *Server) Admit(check func(Admission) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checks = append(s.checks, check)
}

// runChecks runs all checks. The caller holds the lock.
func (s *Server) runChecks(r *request, was *version, object map[string]any) error {
	if len(s.checks) == 0 {
		return nil
	}
	a := Admission{Request: r.Request, GVK: r.table.gvk, Object: &unstructured.Unstructured{Object: object}}
	if was != nil {
		a.Old = &unstructured.Unstructured{Object: was.object}
	}
	for _, check := range s.checks {
		if err := check(a); err != nil {
			return err
		}
	}
	return nil
}
