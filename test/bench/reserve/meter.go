// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"context"
	"log"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/test/audit"
)

// watchedKinds are what the manager watches.
var watchedKinds = []string{"machinedeployments", "machinesets", "machines", "nodes", "pods"}

// spending is what a part of a life took.
type spending struct {
	name      string
	took, cpu time.Duration
	// memory is the most so far, in MiB.
	memory float64
	// events are the writes of all clients that the manager sees, and writes are its own.
	events, writes int
	// lags are the times from the answer to who created a Node to that of the manager's first write of it, in
	// ascending order.
	lags []time.Duration
}

// perEvent is the CPU time of an event, in milliseconds.
func (s spending) perEvent() float64 { return s.cpu.Seconds() * 1000 / float64(s.events) }

// meter measures the manager of a lab.
type meter struct {
	lab      *lab
	requests *audit.Log
	// pid is the process whose CPU time, so far, is cpu.
	pid   int
	cpu   time.Duration
	spent []spending
}

func (l *lab) newMeter() (*meter, error) {
	requests, err := audit.Open(l.cluster.AuditLog())
	return &meter{lab: l, requests: requests}, err
}

func (m *meter) close() { _ = m.requests.Close() }

func (m *meter) measure(ctx context.Context, name string, do func(context.Context) error) error {
	s := spending{name: name}
	begin := time.Now()
	if err := do(ctx); err != nil {
		return err
	}
	s.took = time.Since(begin)
	pid := m.lab.manager.PID()
	usage, err := footprintOf(pid)
	if err != nil {
		return err
	}
	if pid != m.pid {
		m.pid, m.cpu = pid, 0
	}
	s.memory, s.cpu, m.cpu = usage.memory, usage.cpu-m.cpu, usage.cpu
	if err := m.countRequests(&s); err != nil {
		return err
	}
	log.Printf("%s: %v, %d events", name, s.took.Round(time.Second), s.events)
	m.spent = append(m.spent, s)
	return nil
}

// countRequests fills in requests since the last part.
func (m *meter) countRequests(s *spending) error {
	created := map[string]time.Time{}
	_, err := m.requests.Read(func(r audit.Request) bool {
		if !r.Writes() || r.Refused() {
			return false
		}
		if slices.Contains(watchedKinds, r.Resource) {
			s.events++
		}
		switch {
		case r.Resource == "nodes" && r.Verb == "create":
			created[r.Name] = r.Answered
		case r.User != identity:
		case r.Resource == "nodes" && !created[r.Name].IsZero():
			s.lags = append(s.lags, r.Answered.Sub(created[r.Name]))
			delete(created, r.Name)
			fallthrough
		default:
			s.writes++
		}
		return false
	})
	slices.Sort(s.lags)
	return err
}
