// SPDX-License-Identifier: Apache-2.0

package sim

import "maps"

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
