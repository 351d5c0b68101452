// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

const (
	// OwnLabel marks the Reserves that this controller creates. It changes and deletes no other
	// Reserves.
	OwnLabel = v1beta1.ReserveLabel

	namePrefix = "capacity-buffers."
)

// ReserveName is the name of the Reserve that holds the chunks of all buffers in a
// MachineDeployment.
func ReserveName(deployment string) string { return autoscaling.ReserveNameFor(namePrefix, deployment) }

// NewReserve returns this Reserve.
func NewReserve(namespace string, r Request) *autoscaling.Reserve {
	reserve := &autoscaling.Reserve{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ReserveName(r.Pool), Labels: map[string]string{OwnLabel: "true"}},
	}
	r.setRequest(reserve)
	return reserve
}

// After returns the Reserve of a request as the controller leaves it; nil if it is deleted.
func (r Request) After(namespace string) *autoscaling.Reserve {
	switch {
	case r.Machines == 0:
		return nil
	case r.Reserve == nil:
		return NewReserve(namespace, r)
	}
	after := r.Reserve.DeepCopy()
	r.setRequest(after)
	return after
}

// setRequest makes a Reserve ask for what is requested.
func (r Request) setRequest(reserve *autoscaling.Reserve) {
	reserve.Spec = specOf(r)
	delete(reserve.Annotations, machine.DedicatedAnnotation)
	if len(r.Dedicated) > 0 {
		metav1.SetMetaDataAnnotation(&reserve.ObjectMeta, machine.DedicatedAnnotation, machine.DedicationsText(r.Dedicated))
	}
}

func specOf(r Request) autoscaling.ReserveSpec {
	return autoscaling.ReserveSpec{Pools: autoscaling.ReservePools{Names: []string{r.Pool}}, Replicas: int32(r.Machines), Prepare: r.Prepare}
}

// isMet reports whether the Reserve asks for this and nothing else.
func (r Request) isMet() bool {
	return reflect.DeepEqual(r.Reserve.Spec, specOf(r)) && r.Reserve.Annotations[machine.DedicatedAnnotation] == machine.DedicationsText(r.Dedicated)
}

// dedications returns the machines of a Reserve that are dedicated to owners.
func dedications(r *autoscaling.Reserve) []machine.Dedication {
	all, err := machine.ParseDedications(r.Annotations[machine.DedicatedAnnotation])
	if err != nil {
		return nil // it is written anew
	}
	return all
}

// holding is how many machines a MachineDeployment holds for chunks, and to whom some of them are
// dedicated.
type holding struct {
	machines  int
	dedicated []machine.Dedication
}

func (h *holding) add(owner machine.Owner, machines int) {
	h.machines += machines
	if owner != "" && machines > 0 {
		h.dedicated = append(h.dedicated, machine.Dedication{Owner: owner, Machines: int32(machines)})
	}
}

// requests returns the Reserves that differ from the decisions about sites and held machines, and
// those that nothing asks for.
func (r *round) requests(all []holding) []Request {
	wanted := map[string]Request{}
	want := func(name string, h holding) {
		if h.machines > 0 {
			wanted[ReserveName(name)] = Request{Pool: name, Machines: h.machines, Dedicated: h.dedicated, Prepare: r.prepare[name]}
		}
	}
	for i, h := range all {
		want(r.sites[i].Deployment.Name, h)
	}
	if r.unread > 0 || slices.ContainsFunc(r.classes, (*class).hasChunks) {
		for name, h := range r.held {
			want(name, h)
		}
	}
	var changes []Request
	unread := r.unread > 0
	for _, reserve := range r.byUnread() {
		w, is := wanted[reserve.Name]
		delete(wanted, reserve.Name)
		if _, held := r.held[w.Pool]; held || unread {
			w.Prepare = mergePrepared(w.Prepare, reserve.Spec.Prepare)
		}
		if kept := min(int(reserve.Spec.Replicas)-w.Machines, r.unread); kept > 0 {
			r.unread -= kept
			name := poolOf(reserve, w)
			if name == "" {
				continue // another client has moved its machines: they stay until buffers can be read again
			}
			w, is = Request{Pool: name, Machines: w.Machines + kept, Dedicated: r.keepDedicated(reserve, w.Dedicated, kept), Prepare: w.Prepare}, true
		}
		if w.Reserve = reserve; !is || !w.isMet() {
			changes = append(changes, w)
		}
	}
	changes = slices.AppendSeq(changes, maps.Values(wanted))
	slices.SortFunc(changes, func(a, b Request) int { return cmp.Compare(a.Name(), b.Name()) })
	return changes
}

// keepDedicated adds to what is dedicated those of the kept machines of a Reserve that are dedicated
// to the owners of buffers that cannot be read now (law 5).
func (r *round) keepDedicated(reserve *autoscaling.Reserve, all []machine.Dedication, kept int) []machine.Dedication {
	all = slices.Clone(all)
	for _, before := range dedications(reserve) {
		at := slices.IndexFunc(all, func(d machine.Dedication) bool { return d.Owner == before.Owner })
		if at < 0 {
			at, all = len(all), append(all, machine.Dedication{Owner: before.Owner})
		}
		n := max(0, min(int(before.Machines-all[at].Machines), r.unreadOf[before.Owner], kept))
		all[at].Machines += int32(n)
		r.unreadOf[before.Owner] -= n
		kept -= n
	}
	slices.SortFunc(all, func(a, b machine.Dedication) int { return cmp.Compare(a.Owner, b.Owner) })
	return slices.DeleteFunc(all, func(d machine.Dedication) bool { return d.Machines == 0 })
}

// byUnread returns the Reserves by name, but first those that certainly hold chunks of buffers that
// cannot be read, because of their owners or the pools that they name: the others may be needless.
func (r *round) byUnread() []*autoscaling.Reserve {
	certain := map[string]bool{}
	for _, p := range r.Pools {
		name := pool.WorkerPoolOf(p.Deployment)
		certain[ReserveName(p.Deployment.Name)] = r.unreadIn[p.Deployment.Name] || name != "" && r.unreadIn[name]
	}
	owned := func(d machine.Dedication) bool { return r.unreadOf[d.Owner] > 0 }
	rank := func(reserve *autoscaling.Reserve) int {
		if certain[reserve.Name] || slices.ContainsFunc(dedications(reserve), owned) {
			return 0
		}
		return 1
	}
	return slices.SortedFunc(slices.Values(r.Reserves), func(a, b *autoscaling.Reserve) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
	})
}

// poolOf returns the MachineDeployment of a Reserve; empty if it does not name exactly one.
func poolOf(reserve *autoscaling.Reserve, w Request) string {
	if w.Pool == "" && len(reserve.Spec.Pools.Names) == 1 {
		return reserve.Spec.Pools.Names[0]
	}
	return w.Pool
}

// reserveOf returns the Reserve for a MachineDeployment; nil if there is none.
func (v *View) reserveOf(name string) *autoscaling.Reserve {
	for _, r := range v.Reserves {
		if r.Name == ReserveName(name) {
			return r
		}
	}
	return nil
}
