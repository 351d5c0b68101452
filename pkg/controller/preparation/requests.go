// SPDX-License-Identifier: Apache-2.0

package preparation

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/internal/stores"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Requests are what Reserves ask for, as soon as they are read. The zero value has none.
type Requests struct {
	mu          sync.Mutex
	reserves    cache.SharedIndexInformer // nil before Read
	expected    bool
	subscribers []func()
}

// ExpectReserves sets whether Reserves are read later. They are not if the API server does not serve them.
func (r *Requests) ExpectReserves(expected bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expected = expected
}

// Read has requests come from an informer of Reserves from now on.
func (r *Requests) Read(reserves cache.SharedIndexInformer) error {
	r.mu.Lock()
	r.reserves = reserves
	r.mu.Unlock()
	_, err := reserves.AddEventHandler(handlers.OnChange(func(was, is any) {
		before, _ := was.(*autoscaling.Reserve)
		after, _ := is.(*autoscaling.Reserve)
		if asksForImages(before) != asksForImages(after) || asksForImages(after) && before.Generation != after.Generation {
			r.changed()
		}
	}))
	return err
}

// Subscribe makes Requests call changed when something else is asked for. changed must not block.
func (r *Requests) Subscribe(changed func()) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subscribers = append(r.subscribers, changed)
}

func (r *Requests) changed() {
	r.mu.Lock()
	subscribers := slices.Clone(r.subscribers)
	r.mu.Unlock()
	for _, call := range subscribers {
		call()
	}
}

// all returns the Reserves that ask for something, by name.
func (r *Requests) all() (all []*autoscaling.Reserve) {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reserves == nil {
		return nil
	}
	for one := range stores.All[*autoscaling.Reserve](r.reserves.GetIndexer()) {
		if asksForImages(one) {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b *autoscaling.Reserve) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// unread reports whether there may be Reserves that have not been read yet.
func (r *Requests) unread() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reserves == nil {
		return r.expected
	}
	return !r.reserves.HasSynced()
}

func asksForImages(r *autoscaling.Reserve) bool {
	return r != nil && len(r.Spec.Prepare) > 0 && !r.Spec.Suspend && r.DeletionTimestamp == nil
}

// Any reports whether a Reserve asks for something.
func (r *Requests) Any() bool { return len(r.all()) > 0 }

// selections are the requests of Reserves with what they select.
type selections []selection

type selection struct {
	*autoscaling.Reserve
	selects func(*v1alpha1.MachineDeployment) bool
}

func (r *Requests) selections() (all selections) {
	for _, one := range r.all() {
		if selects, err := pool.Selection(one.Spec.Pools); err == nil {
			all = append(all, selection{one, selects})
		}
	}
	return all
}

// askedOn returns what Reserves ask for on the machines of a MachineDeployment.
func (s selections) askedOn(d *v1alpha1.MachineDeployment) (all []asking) {
	for _, one := range s {
		if one.Namespace == d.Namespace && one.selects(d) {
			all = append(all, asking{one.Spec.Prepare, one.Labels[v1beta1.ReserveLabel] != ""})
		}
	}
	return all
}
