// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"maps"
	"slices"
	"sync"
)

// fleet is what the leading process knows about its machines. Only this process writes records.
type fleet struct {
	mu     sync.Mutex
	loaded bool
	vms    map[string]VM
	// claims are machines that are being created, by class. They count against the quota.
	claims map[string]string
}

func (f *fleet) loadVMs(vms []VM) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loaded, f.vms, f.claims = true, map[string]VM{}, map[string]string{}
	for _, v := range vms {
		f.vms[v.Name] = v
	}
}

func (f *fleet) isLoaded() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loaded
}

func (f *fleet) findVM(name string) (VM, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v, found := f.vms[name]
	return v, found
}

// latest returns what is known about a machine now. It is false if the machine was deleted, even if
// there is another one of that name.
func (f *fleet) latest(v VM) (VM, bool) {
	now, found := f.findVM(v.Name)
	return now, found && now.ProviderID() == v.ProviderID()
}

func (f *fleet) allVMs() []VM {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.vms))
}

// reserveSlot takes a slot of the class's quota; false if none is left. put or remove frees it.
func (f *fleet) reserveSlot(name, class string, quota *int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if quota != nil && f.countClass(class) >= *quota {
		return false
	}
	f.claims[name] = class
	return true
}

func (f *fleet) countClass(class string) int {
	n := 0
	for _, v := range f.vms {
		if v.Class == class {
			n++
		}
	}
	for _, claimed := range f.claims {
		if claimed == class {
			n++
		}
	}
	return n
}

func (f *fleet) put(v VM) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.claims, v.Name)
	f.vms[v.Name] = v
}

func (f *fleet) remove(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.claims, name)
	delete(f.vms, name)
}

// registered records that the machine's Node was created. There may be another machine of its name
// by now.
func (f *fleet) registered(v VM) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now, found := f.vms[v.Name]; found && now.ProviderID() == v.ProviderID() {
		now.Registered = true
		f.vms[v.Name] = now
	}
}
