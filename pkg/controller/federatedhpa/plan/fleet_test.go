// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
)

// fleet is a hub and its members as plain values, with a network that loses, delays and repeats nothing but what real ones
// do: a write lands at any later time, or never, and only on the version that it was decided on.
type fleet struct {
	random  *rand.Rand
	now     time.Time
	object  *v1alpha1.FederatedHorizontalPodAutoscaler
	members []*member
	// trail tells what happened, for a failure.
	trail []string
	// ceiling is what the maxima may add up to: the maximum, or more while a lowered one is taken back.
	ceiling int64
	// steady reports that no one edits the object or the choice of clusters, and minimaMet that the minima have once been met.
	steady, minimaMet bool
}

// member is one cluster, and what the hub knows of it.
type member struct {
	name     string
	selected bool
	up       bool
	heard    time.Time
	// The truth: version 0 is that there is no autoscaler.
	real     local
	versions int
	load     int64
	capacity int64
	gone     bool // its workload was deleted
	// What the hub remembers; a restart forgets it.
	seen     *local
	inFlight *sent
	rejected int64
	// late are writes whose sender has given up.
	late []sent
	// removed is the last autoscaler, and until is when it may last have an effect.
	removed plan.Bounds
	until   time.Time
	looked  time.Time // when the hub last saw it
	managed bool      // someone else has another autoscaler scale what is left
}

// sent is a write under way.
type sent struct {
	plan.Order
	at time.Time
	// capacity of the cluster when it was decided.
	capacity int64
}

type local struct {
	plan.Bounds
	version          int
	desired, current int64
	left             int64 // what runs without an autoscaler since it was removed
}

func newFleet(seed uint64) *fleet {
	f := &fleet{random: rand.New(rand.NewPCG(seed, 7)), now: noon}
	f.object = Federated(int32(1+f.random.IntN(6)), int32(6+f.random.IntN(30)))
	s := &f.object.Spec
	s.LeavePolicy = []v1alpha1.LeavePolicy{"", v1alpha1.LeaveKeep, v1alpha1.LeaveScaleToZero}[f.random.IntN(3)]
	s.MinPolicy = []v1alpha1.MinPolicy{v1alpha1.Strict, v1alpha1.AtLeastOne, v1alpha1.AtLeastOne}[f.random.IntN(3)]
	s.Rebalance = &v1alpha1.Rebalance{Minima: f.random.IntN(2) == 0, CooldownSeconds: ptr.To(int32(f.random.IntN(3) * 60)), MaxStepPercent: ptr.To(int32(20 + f.random.IntN(81)))}
	if f.random.IntN(3) == 0 {
		s.Joining = &v1alpha1.Joining{OnDemand: true, QuietSeconds: ptr.To[int32](120)}
	}
	if f.steady = f.random.IntN(2) == 0; !f.steady && f.random.IntN(3) == 0 {
		s.Unreachable = &v1alpha1.Unreachable{Policy: v1alpha1.ReleaseAfter, AfterSeconds: ptr.To[int32](90)}
	}
	for i := range 1 + f.random.IntN(5) {
		m := &member{name: fmt.Sprint("c", i), selected: true, up: true, heard: f.now, load: int64(f.random.IntN(8)), capacity: 100}
		if f.random.IntN(4) == 0 {
			s.Clusters = append(s.Clusters, v1alpha1.ClusterPreference{Name: m.name, Tier: int32(f.random.IntN(2)), Weight: ptr.To(int32(1 + f.random.IntN(3))), MaxReplicas: ptr.To(int32(3 + f.random.IntN(20)))})
		}
		f.members = append(f.members, m)
	}
	f.ceiling = int64(s.MaxReplicas)
	return f
}

// room is how many replicas can run.
func (m *member) room() int64 {
	if m.gone {
		return 0
	}
	return m.capacity
}

func (f *fleet) note(format string, args ...any) {
	f.trail = append(f.trail, fmt.Sprintf(format, args...))
}

// view is what the hub sees.
func (f *fleet) view() plan.View {
	v := plan.View{Now: f.now, Object: f.object}
	for _, m := range f.members {
		c := plan.Cluster{Name: m.name, Registered: true, Selected: m.selected, Reachable: m.up && m.seen != nil, Since: m.heard, Rejected: m.rejected}
		if m.seen != nil && m.seen.version > 0 {
			l := m.seen
			c.Local = &plan.Local{Bounds: l.Bounds, Version: strconv.Itoa(l.version), UID: m.name, Current: l.current, Desired: l.desired, Demand: m.load, Limit: limit(m.load, l.Bounds)}
			c.Workload = plan.Workload{Known: true, Exists: !m.gone, Counted: !m.gone}
			if !m.gone {
				c.Workload.Ready = min(l.current, m.capacity)
			}
		} else if m.seen != nil {
			c.Absent = true
			c.Workload = plan.Workload{Known: true, Exists: !m.gone, Requested: m.seen.left, AsOf: m.looked, Autoscaled: m.managed, UID: m.name}
		}
		if m.inFlight != nil {
			c.InFlight, c.Sent = ptr.To(m.inFlight.Bounds), m.inFlight.at
			if m.inFlight.Operation == plan.Remove {
				c.InFlight = &plan.Bounds{}
			}
		}
		v.Clusters = append(v.Clusters, c)
	}
	return v
}

// sync is one of the hub's: it writes the ledger and sends the orders, unless it dies at some point of that.
func (f *fleet) sync(mayDie bool) (plan.Plan, error) {
	v := f.view()
	p := plan.New(v)
	if err := f.judgePlan(v, p); err != nil {
		return p, err
	}
	if mayDie && f.random.IntN(20) == 0 {
		f.crash()
		return p, nil
	}
	f.object = f.object.DeepCopy()
	f.object.Status = status(v, p)
	for _, o := range p.Placings {
		if m := f.member(o.Cluster); o.Operation == plan.Scale && o.Replicas == 0 && m.real.version == 0 && f.random.IntN(2) == 0 {
			m.real.left, m.until = 0, f.now
		}
	}
	for i, o := range p.Orders {
		if mayDie && f.random.IntN(20) == 0 {
			f.crash()
			return p, nil
		}
		f.note("%v %s %s %v at %q", f.now.Format("15:04:05"), o.Cluster, o.Operation, o.Bounds, o.Version)
		m := f.member(o.Cluster)
		m.inFlight, m.rejected = &sent{p.Orders[i], f.now, m.room()}, 0
	}
	return p, nil
}

func (f *fleet) member(name string) *member {
	return f.members[slices.IndexFunc(f.members, func(m *member) bool { return m.name == name })]
}

// crash is the hub's. What is on its way stays on its way.
func (f *fleet) crash() {
	f.note("the hub dies")
	for _, m := range f.members {
		if m.inFlight != nil {
			m.late = append(m.late, *m.inFlight)
		}
		m.inFlight, m.seen, m.rejected = nil, nil, 0
	}
}

// land has a write arrive. It tells whether it had an effect.
func (f *fleet) land(m *member, o sent) (bool, error) {
	if o.Operation == plan.Create && f.now.Sub(o.at) > 2*time.Minute {
		return false, nil // no request takes longer
	}
	if o.Operation == plan.Create && m.real.version != 0 || o.Operation != plan.Create && strconv.Itoa(m.real.version) != o.Version {
		return false, nil
	}
	m.versions++
	if o.Operation == plan.Remove {
		m.removed, m.until, m.managed = m.real.Bounds, f.now.Add(15*time.Second), false
		m.real = local{left: min(m.real.desired, m.room())}
		return true, f.judge()
	}
	if f.steady && o.Max < m.real.Max && o.Max < m.real.desired && o.Max < o.capacity {
		return true, fmt.Errorf("%s is lowered to %d while it runs %d", m.name, o.Max, m.real.desired)
	}
	if m.real.version == 0 && f.steady && o.Max < min(m.real.left, o.capacity) {
		return true, fmt.Errorf("%s gets %d when it is used again and runs %d", m.name, o.Max, m.real.left)
	}
	if m.real.version == 0 {
		m.real.desired = m.real.left
	}
	m.real.Bounds, m.real.version, m.real.left = o.Bounds, m.versions, 0
	f.note("   landed in %s: %v", m.name, o.Bounds)
	return true, f.judge()
}

// scale is what the member's own autoscaler does.
func (m *member) scale(now time.Time) {
	if m.real.version == 0 && m.real.left > 0 && now.Before(m.until) {
		m.real.left = max(m.removed.Min, min(m.load, m.removed.Max)) // what it had begun
	}
	if m.real.version == 0 || m.gone {
		return
	}
	desired := max(m.real.Min, min(m.load, m.real.Max))
	if desired != m.real.desired || m.real.current != desired {
		m.versions++
		m.real.desired, m.real.current, m.real.version = desired, desired, m.versions
	}
}

// observe returns everything that is known of a cluster about one object.
func (m *member) observe(now time.Time) {
	if m.up {
		m.looked, m.seen = now, ptr.To(m.real)
	}
}

// answer ends a write that is under way, in one of the ways in which writes end.
func (f *fleet) answer(m *member, how int) error {
	if m.inFlight == nil {
		return nil
	}
	o := *m.inFlight
	m.inFlight = nil
	if !m.up && how < 3 {
		how = 3 + how%2
	}
	switch how {
	case 0, 1, 2: // it is carried out, and answered
		done, err := f.land(m, o)
		if done {
			m.observe(f.now)
		} else {
			m.rejected = o.Epoch
		}
		return err
	case 3: // it is carried out, and the answer is lost
		_, err := f.land(m, o)
		return err
	case 4: // it may arrive at any time
		m.late = append(m.late, o)
	case 5: // it is refused
		m.rejected = o.Epoch
	}
	return nil
}

// happen is one thing that happens.
func (f *fleet) happen() error {
	f.now = f.now.Add(time.Duration(f.random.IntN(40)) * time.Second)
	m := f.members[f.random.IntN(len(f.members))]
	switch f.random.IntN(12) {
	case 0:
		m.load = int64(f.random.IntN(2 + f.random.IntN(25)))
		m.scale(f.now)
	case 1:
		f.note("%v link of %s: %v", f.now.Format("15:04:05"), m.name, !m.up)
		m.up = !m.up
	case 2, 3, 4:
		return f.answer(m, f.random.IntN(6))
	case 5, 6, 7:
		for _, m := range f.members {
			m.scale(f.now)
			if m.up {
				m.heard = f.now
				if f.random.IntN(4) > 0 {
					m.observe(f.now)
				}
			}
		}
	case 8:
		if len(m.late) > 0 {
			i := f.random.IntN(len(m.late))
			o := m.late[i]
			m.late = slices.Delete(m.late, i, i+1)
			f.note("%v late:", f.now.Format("15:04:05"))
			_, err := f.land(m, o)
			return err
		}
	case 9:
		if f.random.IntN(4) == 0 {
			f.crash()
		}
	case 10:
		if m.real.version == 0 && m.real.left > 0 && f.random.IntN(4) == 0 {
			f.note("%s is taken over", m.name)
			m.managed, m.until = true, f.now
			return nil
		}
		if m.gone = f.random.IntN(4) == 0; f.random.IntN(3) == 0 {
			m.capacity = int64(2 + f.random.IntN(10))
		} else {
			m.capacity = 100
		}
		if m.gone {
			m.real.left = 0
		}
	case 11:
		f.edit(m)
	}
	return nil
}
