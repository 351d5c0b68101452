// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"context"
	"sync"

	"k8s.io/klog/v2"
)

// fleet are the members that the registry names, each begun when it appears and ended when it goes.
type fleet struct {
	registry Registry
	o        *Options
	changed  func(keys ...string)

	mu      sync.Mutex
	ctx     context.Context // nil before the fleet has begun, and after it has ended
	members map[string]*member
	faults  map[string]Hold // of those that cannot be begun
	ended   []*member
}

// begin lets members run until ctx ends.
func (f *fleet) begin(ctx context.Context) {
	f.mu.Lock()
	f.ctx = ctx
	f.mu.Unlock()
	f.follow()
}

// end stops all members and waits for them.
func (f *fleet) end() {
	f.mu.Lock()
	f.ctx = nil
	all := f.ended
	for _, m := range f.members {
		m.stop()
		all = append(all, m)
	}
	f.mu.Unlock()
	for _, m := range all {
		m.wait()
	}
}

// follow makes the members be those of the registry.
func (f *fleet) follow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx == nil {
		return
	}
	named := map[string]bool{}
	f.faults = map[string]Hold{}
	for _, r := range f.registry.Members() {
		named[r.Name] = true
		if r.Config == nil {
			f.faults[r.Name] = r.Fault
			f.drop(r.Name)
			continue
		}
		f.keep(r)
	}
	for name := range f.members {
		if !named[name] {
			f.drop(name)
		}
	}
}

// keep begins a member, unless it runs with the same access. The lock is held.
func (f *fleet) keep(r Registration) {
	if m := f.members[r.Name]; m != nil && m.registration.Print == r.Print {
		return
	}
	f.drop(r.Name)
	m, err := newMember(r, f.o, f.changed)
	if err != nil {
		f.faults[r.Name] = Hold{"KubeconfigInvalid", err.Error()}
		return
	}
	klog.FromContext(f.ctx).Info("Watching a cluster", "cluster", r.Name)
	f.members[r.Name] = m
	m.start(f.ctx)
}

// drop ends a member. What it has under way goes on counting in the ledgers. The lock is held.
func (f *fleet) drop(name string) {
	m := f.members[name]
	if m == nil {
		return
	}
	delete(f.members, name)
	m.stop()
	f.ended = append(f.ended, m)
}

// of returns a member, or why there is none.
func (f *fleet) of(name string) (*member, Hold) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.members[name], f.faults[name]
}

func (f *fleet) all() []*member {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*member
	for _, m := range f.members {
		all = append(all, m)
	}
	return all
}
