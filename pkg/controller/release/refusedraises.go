// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"maps"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/controller/release/plan"
)

// asideTime is how long replicas of a MachineDeployment are not raised after an admission policy has
// refused that. Meanwhile, pods can get machines of others.
const asideTime = 30 * time.Second

// refusedRaises are the raises that an admission policy has refused, by the UID of the
// MachineDeployment.
type refusedRaises map[types.UID]refusedRaise

type refusedRaise struct {
	basis plan.Basis
	until time.Time
}

// record remembers a raise that has failed, if it was refused.
func (r refusedRaises) record(basis plan.Basis, err error, now time.Time) {
	var refused refusedError
	if errors.As(err, &refused) {
		r[basis.UID] = refusedRaise{basis, now.Add(asideTime)}
	}
}

// isAside reports whether the replicas of a MachineDeployment are not raised now: nothing has changed
// since that was refused.
func (r refusedRaises) isAside(basis plan.Basis) bool {
	refused, known := r[basis.UID]
	return known && reflect.DeepEqual(refused.basis, basis)
}

// forgetExpired forgets the raises that may be tried again.
func (r refusedRaises) forgetExpired(now time.Time) {
	maps.DeleteFunc(r, func(_ types.UID, one refusedRaise) bool { return !now.Before(one.until) })
}

// retryAfter returns how long it takes until the next raise may be tried again; 0 if there is none.
func (r refusedRaises) retryAfter(now time.Time) (wait time.Duration) {
	for _, one := range r {
		wait = requeue.Sooner(wait, one.until.Sub(now))
	}
	return wait
}
