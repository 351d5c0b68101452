// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// Collector is the identity of the garbage collector.
const Collector = "garbage-collector"

// CollectGarbage deletes objects whose owners are all gone, after this delay from the latest
// change, until ctx or the server ends. An owner is identified by its UID: another object with its
// name does not count. References to deleted owners stay on objects that have other owners. If an
// owner was deleted with the policy Orphan, its dependents lose the reference; if it was deleted
// with Foreground, it stays until the dependents that block its deletion are gone.
func (s *Server) CollectGarbage(ctx context.Context, delay time.Duration) {
	c := s.Client(Collector)
	for {
		changed := s.collect(c)
		select {
		case <-changed:
		case <-ctx.Done():
			return
		case <-s.closed:
			return
		}
		if c.delay(ctx, delay) != nil {
			return
		}
	}
}

// collect deletes what is garbage now. The channel reports the next change.
func (s *Server) collect(c *Client) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.changed
	for _, t := range s.order {
		for _, v := range t.sorted("") {
			switch m, err := objectMeta(v.object); {
			case s.orphaned(v):
				s.discard(c, t, v)
			case err != nil || m.DeletionTimestamp == nil:
			case slices.Contains(m.Finalizers, metav1.FinalizerOrphanDependents):
				s.abandon(c, string(m.UID))
				s.finish(c, t, v, metav1.FinalizerOrphanDependents)
			case slices.Contains(m.Finalizers, metav1.FinalizerDeleteDependents):
				if !s.deleteDependents(c, string(m.UID)) {
					s.finish(c, t, v, metav1.FinalizerDeleteDependents)
				}
			}
		}
	}
	return changed
}

// dependents calls back for each object that a uid owns, with its reference.
func (s *Server) dependents(owner string, visit func(t *table, v *version, reference metav1.OwnerReference)) {
	for _, t := range s.order {
		for _, v := range t.sorted("") {
			m, err := objectMeta(v.object)
			if err != nil {
				continue // it was stored, so it could be read
			}
			for _, reference := range m.OwnerReferences {
				if string(reference.UID) == owner {
					visit(t, v, reference)
				}
			}
		}
	}
}

// abandon removes an owner from its dependents.
func (s *Server) abandon(c *Client, owner string) {
	s.dependents(owner, func(t *table, v *version, _ metav1.OwnerReference) {
		s.rewrite(c, t, v, func(m *metav1.ObjectMeta) {
			m.OwnerReferences = slices.DeleteFunc(m.OwnerReferences, func(r metav1.OwnerReference) bool { return string(r.UID) == owner })
		})
	})
}

// deleteDependents deletes the dependents of an owner, and reports whether one is left that keeps
// the owner.
func (s *Server) deleteDependents(c *Client, owner string) (blocked bool) {
	s.dependents(owner, func(t *table, v *version, reference metav1.OwnerReference) {
		s.discard(c, t, v)
		if t.objects[v.key] != nil && ptr.Deref(reference.BlockOwnerDeletion, false) {
			blocked = true
		}
	})
	return blocked
}

// finish removes a finalizer.
func (s *Server) finish(c *Client, t *table, v *version, finalizer string) {
	s.rewrite(c, t, v, func(m *metav1.ObjectMeta) {
		m.Finalizers = slices.DeleteFunc(m.Finalizers, func(f string) bool { return f == finalizer })
	})
}

// rewrite changes the metadata of an object. If nothing keeps the object any more, it is deleted.
func (s *Server) rewrite(c *Client, t *table, v *version, change func(*metav1.ObjectMeta)) {
	r := &request{
		Request: Request{User: c.user, Verb: "update", Resource: t.Name, Namespace: v.key.namespace, Name: v.key.name},
		client:  c, table: t, query: url.Values{},
	}
	object := runtime.DeepCopyJSON(v.object)
	m, err := objectMeta(object)
	if err == nil {
		change(m)
		err = setObjectMeta(object, m)
	}
	if err == nil && m.DeletionTimestamp != nil && len(m.Finalizers) == 0 {
		_, err = s.remove(r, v, object)
	} else if err == nil {
		_, err = s.commit(r, http.StatusOK, v, object)
	}
	if err != nil {
		panic(err) // the object was stored, and only its metadata has changed
	}
}

func (s *Server) orphaned(v *version) bool {
	owners, _ := metadataOf(v.object)["ownerReferences"].([]any)
	for _, owner := range owners {
		reference, _ := owner.(map[string]any)
		if uid, _ := reference["uid"].(string); s.uids[uid] > 0 {
			return false
		}
	}
	return len(owners) > 0
}

func (s *Server) discard(c *Client, t *table, v *version) {
	if metadataOf(v.object)["deletionTimestamp"] != nil {
		return
	}
	r := &request{
		Request: Request{User: c.user, Verb: "delete", Resource: t.Name, Namespace: v.key.namespace, Name: v.key.name},
		client:  c, table: t, query: url.Values{},
	}
	if _, err := s.deleteOne(r, v, &metav1.DeleteOptions{}); err != nil {
		panic(err) // without preconditions, this cannot fail
	}
}
