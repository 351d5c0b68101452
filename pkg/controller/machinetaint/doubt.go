// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
)

// doubt is a write of a Machine or a Node whose outcome may be unknown.
type doubt struct {
	version string    // that it was decided on: once the object has another one, that one shows the outcome
	until   time.Time // when that version, too, shows the outcome: the write had no effect
}

// beginRelease keeps a Machine from being deleted.
func (s *state) beginRelease(machine types.UID) { putEntry(&s.releases, machine, true) }

// noteDoubt records that a Machine may have entered the reserve.
func (s *states) noteDoubt(key string, m *mcm.Machine, now time.Time) {
	s.locked(key, func(one *state) {
		putEntry(&one.doubts, m.UID, doubt{version: m.ResourceVersion, until: now.Add(unknownFor)})
	})
}

// setDoubtful sets which machines may have entered the reserve, and forgets the doubts about all
// others.
func (s *states) setDoubtful(key string, machines []plan.Machine, now time.Time) {
	s.locked(key, func(one *state) {
		var left map[types.UID]doubt
		for i := range machines {
			m := &machines[i]
			d, noted := one.doubts[m.Object.UID]
			m.Doubtful = noted && m.Object.ResourceVersion == d.version && !passed(d.until, now)
			if m.Doubtful {
				putEntry(&left, m.Object.UID, d)
			}
		}
		one.doubts = left
	})
}

// noteOpening records that the Node of a Machine may have been opened. It is as before the write.
func (s *states) noteOpening(key string, machine types.UID, before *corev1.Node, now time.Time) {
	s.locked(key, func(one *state) {
		putEntry(&one.openings, machine, doubt{version: before.ResourceVersion, until: now.Add(unknownFor)})
	})
}

// forgetOpening records that the Node of a Machine cannot be closed again. It is then like any other
// Node without the reserve taint.
func (s *states) forgetOpening(key string, machine types.UID) {
	s.locked(key, func(one *state) { delete(one.openings, machine) })
}

// setOpened sets which machines in reserve may have pods that are not shown, and forgets all others.
// While Nodes cannot be read, none is forgotten.
func (s *states) setOpened(key string, v plan.View, l *latest) {
	s.locked(key, func(one *state) {
		var left map[types.UID]doubt
		for i := range v.Machines {
			m := &v.Machines[i]
			d, noted := one.openings[m.Object.UID]
			if !noted || !m.Marked() {
				continue
			}
			if v.Unreachable != "" {
				d.until = v.Now.Add(unknownFor)
			}
			if m.Opened = l.mayHavePods(m.Object, d, v.Now); m.Opened {
				putEntry(&left, m.Object.UID, d)
			}
		}
		one.openings = left
	})
}
