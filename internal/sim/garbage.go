// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Collector is the identity under which garbage is collected.
const Collector = "garbage-collector"

// CollectGarbage deletes objects all of whose owners are gone, that long after
// the latest change, until ctx or the server ends. An owner is known by its
// uid: another object of its name is not it. References to owners that are
// gone stay on objects that have others; the propagation policies Orphan and
// Foreground are taken for Background.
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
		if c.pause(ctx, delay) != nil {
			return
		}
	}
}

// collect deletes what is garbage now. The channel tells of the next change.
func (s *Server) collect(c *Client) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.changed
	for _, t := range s.order {
		for _, v := range t.sorted("") {
			if s.orphaned(v) {
				s.discard(c, t, v)
			}
		}
	}
	return changed
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
		panic(err) // without preconditions nothing can be wrong with it
	}
}
