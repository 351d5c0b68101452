// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Snapshot is what a server stored at one time, as in a backup of etcd.
type Snapshot struct {
	version uint64
	objects map[*table]map[key]*version
}

// Snapshot takes a backup.
func (s *Server) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &Snapshot{version: s.version, objects: map[*table]map[key]*version{}}
	for _, t := range s.order {
		b.objects[t] = maps.Clone(t.objects)
	}
	return b
}

// Restore replaces everything that is stored by a backup. As with a restore of etcd without bumped
// revisions, resourceVersions go back, and are assigned a second time. Watches break. A watch that
// starts at a version that the server has not reached yet is silent until it has.
func (s *Server) Restore(b *Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = b.version
	s.uids = map[string]int{}
	s.restores++
	for _, t := range s.order {
		t.objects = maps.Clone(b.objects[t])
		for _, v := range t.objects {
			s.uids[uidOf(v)]++
		}
		t.base += len(t.log)
		t.log, t.forgotten = nil, s.version
	}
	s.struck["restore"]++
	s.wakeAll()
}

// stored is a snapshot as JSON.
type stored struct {
	Version uint64                      `json:"version"`
	Objects map[string][]map[string]any `json:"objects"`
}

// MarshalJSON has the objects of each resource, sorted by name.
func (b *Snapshot) MarshalJSON() ([]byte, error) {
	all := stored{b.version, map[string][]map[string]any{}}
	for t, objects := range b.objects {
		sorted := slices.SortedFunc(maps.Values(objects), func(a, b *version) int { return a.key.compare(b.key) })
		for _, v := range sorted {
			all.Objects[t.fullName()] = append(all.Objects[t.fullName()], v.object)
		}
	}
	return json.Marshal(all)
}

func (t *table) fullName() string { return t.gvr.GroupResource().String() }

// Decode returns the snapshot in a text, of resources that the server serves.
func (s *Server) Decode(text []byte) (*Snapshot, error) {
	var all stored
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("decode snapshot: %w", err)
	}
	b := &Snapshot{version: all.Version, objects: map[*table]map[key]*version{}}
	for _, t := range s.order {
		b.objects[t] = map[key]*version{}
		for _, object := range all.Objects[t.fullName()] {
			u := unstructured.Unstructured{Object: object}
			k := key{u.GetNamespace(), u.GetName()}
			var rv uint64
			if _, err := fmt.Sscan(u.GetResourceVersion(), &rv); err != nil {
				return nil, fmt.Errorf("decode snapshot: %s %s: resource version %q", t.fullName(), u.GetName(), u.GetResourceVersion())
			}
			b.objects[t][k] = &version{key: k, rv: rv, object: object}
		}
		delete(all.Objects, t.fullName())
	}
	for resource := range all.Objects {
		return nil, fmt.Errorf("decode snapshot: no resource %q", resource)
	}
	return b, nil
}
