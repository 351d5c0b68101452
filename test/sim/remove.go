// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func (s *Server) delete(r *request) (answer, error) {
	options, err := r.deleteOptions()
	if err != nil {
		return answer{}, err
	}
	was := r.table.objects[r.objectKey()]
	if was == nil {
		return answer{}, r.notFound()
	}
	return s.deleteOne(r, was, options)
}

func (r *request) deleteOptions() (*metav1.DeleteOptions, error) {
	options := &metav1.DeleteOptions{}
	if len(r.body) > 0 {
		if err := json.Unmarshal(r.body, options); err != nil {
			return nil, apierrors.NewBadRequest("decode DeleteOptions: " + err.Error())
		}
	}
	if len(options.DryRun) > 0 {
		r.query.Set("dryRun", options.DryRun[0])
	}
	return options, nil
}

// deleteOne removes an object, or marks it if finalizers keep it.
func (s *Server) deleteOne(r *request, was *version, options *metav1.DeleteOptions) (answer, error) {
	m, err := objectMeta(was.object)
	if err != nil {
		return answer{}, err
	}
	if err := r.preconditions(options.Preconditions, m); err != nil {
		return answer{}, err
	}
	m.Finalizers = propagated(m.Finalizers, options)
	if len(m.Finalizers) == 0 {
		return s.remove(r, was, nil)
	}
	if m.DeletionTimestamp == nil {
		m.DeletionTimestamp = ptr.To(metav1.Time{Time: s.serverTime().UTC()}.Rfc3339Copy())
		m.DeletionGracePeriodSeconds = ptr.To[int64](0)
		if m.Generation > 0 {
			m.Generation++
		}
	}
	object := runtime.DeepCopyJSON(was.object)
	if err := setObjectMeta(object, m); err != nil {
		return answer{}, err
	}
	return s.commit(r, http.StatusOK, was, object)
}

// propagated returns the finalizers of a deleted object: Orphan and Foreground each add one, which
// the garbage collector removes.
func propagated(finalizers []string, o *metav1.DeleteOptions) []string {
	policy := ptr.Deref(o.PropagationPolicy, "")
	//lint:ignore SA1019 the API server still takes the deprecated field
	if policy == "" && ptr.Deref(o.OrphanDependents, false) {
		policy = metav1.DeletePropagationOrphan
	}
	if policy == "" {
		return finalizers
	}
	finalizers = slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
	switch policy {
	case metav1.DeletePropagationOrphan:
		return append(finalizers, metav1.FinalizerOrphanDependents)
	case metav1.DeletePropagationForeground:
		return append(finalizers, metav1.FinalizerDeleteDependents)
	}
	return finalizers
}

func (r *request) preconditions(p *metav1.Preconditions, m *metav1.ObjectMeta) error {
	if p == nil {
		return nil
	}
	if p.UID != nil && *p.UID != m.UID {
		return r.conflict(fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s)", *p.UID, m.UID))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != m.ResourceVersion {
		return r.conflict(fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s)", *p.ResourceVersion, m.ResourceVersion))
	}
	return nil
}

// remove removes an object. The answer is the last state of the object if a write gave it one,
// otherwise a Status.
func (s *Server) remove(r *request, was *version, last map[string]any) (answer, error) {
	rv := was.rv
	if !r.dryRun() {
		s.storeObject(r.table, was.key, was, nil)
		rv = s.version
		s.record(r, was, rv, Deleted)
	}
	if last != nil {
		metadataOf(last)["resourceVersion"] = strconv.FormatUint(rv, 10)
		return object(http.StatusOK, last)
	}
	gvr := r.table.gvr
	return object(http.StatusOK, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: was.key.name, Group: gvr.Group, Kind: gvr.Resource, UID: types.UID(uidOf(was))},
	})
}

func (s *Server) deleteCollection(r *request) (answer, error) {
	options, err := r.deleteOptions()
	if err != nil {
		return answer{}, err
	}
	chosen, err := r.selection()
	if err != nil {
		return answer{}, err
	}
	for _, v := range r.table.sorted(r.Namespace) {
		if !chosen.matches(v) {
			continue
		}
		one := *r
		one.Verb, one.Namespace, one.Name = "delete", v.key.namespace, v.key.name
		if _, err := s.deleteOne(&one, v, options); err != nil {
			return answer{}, err
		}
		if r.lost = one.lost; r.lost != nil || r.client.cut.Load() {
			break
		}
	}
	return object(http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
}
