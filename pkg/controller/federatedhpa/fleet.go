// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
)

// fleet contains a member for each registered cluster. It starts a member when the cluster is
// registered, and stops it when the cluster is removed.
type fleet struct {
	registry Registry
	o        *Options
	changed  func(keys ...string)

	mu       sync.Mutex
	ctx      context.Context // nil before startMembers, and after stopMembers
	members  map[string]*member
	faults   map[string]plan.Hold // faults of clusters without a member
	expelled map[string]string    // clusters that exceeded their limits, with the access that they had
	stopping sync.WaitGroup       // members that were stopped and still run
	// leaving counts the members that were stopped and have not released everything yet.
	leaving int
}

// startMembers runs members until ctx ends.
func (f *fleet) startMembers(ctx context.Context) {
	f.mu.Lock()
	f.ctx = ctx
	f.mu.Unlock()
	f.follow()
}

// stopMembers stops all members and waits for them.
func (f *fleet) stopMembers() {
	f.mu.Lock()
	f.ctx = nil
	for name := range f.members {
		f.stopMember(name)
	}
	f.mu.Unlock()
	f.stopping.Wait()
}

// follow starts and stops members so that they match the registry.
func (f *fleet) follow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx == nil {
		return
	}
	registered := f.registry.Members()
	named := map[string]bool{}
	for _, r := range registered {
		named[r.Name] = r.Config != nil
	}
	for name := range f.members {
		if !named[name] {
			f.stopMember(name)
		}
	}
	maps.DeleteFunc(f.expelled, func(name, _ string) bool { return !named[name] })
	f.faults = map[string]plan.Hold{}
	for _, r := range registered {
		if r.Config == nil {
			f.faults[r.Name] = r.Fault
		} else if fault := f.ensureMember(r); fault != (plan.Hold{}) {
			f.faults[r.Name] = fault
		}
	}
}

// ensureMember starts a member, unless it runs with the same access already, and returns why that
// is not possible. The caller holds the lock.
func (f *fleet) ensureMember(r Registration) plan.Hold {
	if m := f.members[r.Name]; m != nil && m.registration.Print == r.Print {
		return plan.Hold{}
	}
	if print, ok := f.expelled[r.Name]; ok && print == r.Print {
		return tooMuchCached
	}
	delete(f.expelled, r.Name)
	f.stopMember(r.Name)
	if len(f.members)+f.leaving >= f.o.MaxClusters {
		return plan.Hold{Reason: "TooManyClusters", Message: fmt.Sprintf("the hub watches at most %d clusters: raise --federation-max-clusters", f.o.MaxClusters)}
	}
	m, err := newMember(r, f)
	if err != nil {
		return plan.Hold{Reason: "KubeconfigInvalid", Message: err.Error()}
	}
	klog.FromContext(f.ctx).Info("Watching a cluster", "cluster", r.Name)
	f.members[r.Name] = m
	m.start(f.ctx)
	return plan.Hold{}
}

// stopMember ends a member. Requests under way continue to count in the ledgers. The caller holds
// the lock.
func (f *fleet) stopMember(name string) {
	m := f.members[name]
	if m == nil {
		return
	}
	delete(f.members, name)
	f.leaving++
	m.stop()
	f.stopping.Add(1)
	go func() {
		m.wait()
		f.stopping.Done()
		m.release()
		f.memberEnded(name)
	}()
}

// memberEnded records that a member has ended, which may make room for another one.
func (f *fleet) memberEnded(name string) {
	f.mu.Lock()
	f.leaving--
	if f.members[name] == nil {
		f.o.metrics.forget(name)
	}
	waited := f.ctx != nil && len(f.faults) > 0
	f.mu.Unlock()
	if waited {
		f.follow()
		f.changed()
	}
}

// replace ends a member, and starts it again if again is set.
func (f *fleet) replace(m *member, again bool) {
	f.mu.Lock()
	if f.members[m.registration.Name] != m {
		f.mu.Unlock()
		return
	}
	f.stopMember(m.registration.Name)
	if !again {
		f.expelled[m.registration.Name] = m.registration.Print
	}
	f.mu.Unlock()
	f.follow()
	f.changed()
}

// memberFor returns a member, or why there is none.
func (f *fleet) memberFor(name string) (*member, plan.Hold) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.members[name], f.faults[name]
}

func (f *fleet) allMembers() []*member {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*member
	for _, m := range f.members {
		all = append(all, m)
	}
	return all
}

// forgetKind stops the caches of a kind that no object scales any more.
func (f *fleet) forgetKind(gvk schema.GroupVersionKind) {
	for _, m := range f.allMembers() {
		m.kinds.forget(gvk)
	}
}
