// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/evenkeel/evenkeel/test/audit"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

const (
	mib = 1 << 20
	// often is how often memory is looked at.
	often = 50 * time.Millisecond
)

// requests are the manager's, and what the API server sends to all who watch.
type requests struct {
	reads, watches, events float64
	// writes by resource.
	writes map[string]float64
}

func (r requests) allWrites() (sum float64) {
	for _, n := range r.writes {
		sum += n
	}
	return sum
}

// meter measures one manager.
type meter struct {
	lab *lab
	url string
	log *audit.Log
	// cpu and events are what was spent and sent before the phase that is measured.
	cpu    time.Duration
	events float64
}

func (l *lab) newMeter() (*meter, error) {
	port, err := l.cluster.Port("manager")
	if err != nil {
		return nil, err
	}
	log, err := audit.Open(l.cluster.AuditLog())
	if err != nil {
		return nil, err
	}
	return &meter{lab: l, url: fmt.Sprintf("http://127.0.0.1:%d", port), log: log}, nil
}

func (m *meter) close() { _ = m.log.Close() }

// measure returns what a part of the story cost.
func (m *meter) measure(ctx context.Context, do func() error) (p phase, err error) {
	begin := time.Now()
	peaks := m.watchMemory()
	err = do()
	p.took = time.Since(begin)
	p.peakPrivate, p.peakResident = peaks()
	if err != nil {
		return p, err
	}
	return p, errors.Join(m.memory(ctx, &p), m.count(ctx, &p))
}

// watchMemory looks at the process until the function that it returns is called, which returns the
// most that was seen.
func (m *meter) watchMemory() (peaks func() (private, resident float64)) {
	type both struct{ private, resident float64 }
	stop, result := make(chan struct{}), make(chan both)
	go func() {
		var most both
		for {
			if usage, err := m.usage(); err == nil {
				most = both{max(most.private, usage.Private), max(most.resident, usage.Resident)}
			}
			select {
			case <-stop:
				result <- most
				return
			case <-time.After(often):
			}
		}
	}()
	return func() (float64, float64) {
		close(stop)
		most := <-result
		return most.private, most.resident
	}
}

func (m *meter) usage() (localcluster.Usage, error) {
	return localcluster.ReadUsage(m.lab.manager.PID())
}

func (m *meter) memory(ctx context.Context, p *phase) (err error) {
	usage, err := m.usage()
	if err != nil {
		return err
	}
	p.private, p.resident = usage.Private, usage.Resident
	text, err := m.get(ctx, "/metrics")
	if err != nil {
		return err
	}
	if p.heap, err = sum(text, "go_memstats_heap_alloc_bytes"); err != nil {
		return err
	}
	if p.stacks, err = sum(text, "go_memstats_stack_inuse_bytes"); err != nil {
		return err
	}
	p.heap, p.stacks = p.heap/mib, p.stacks/mib
	p.goroutines, err = sum(text, "go_goroutines")
	return err
}

// count fills in CPU time and requests since the last phase.
func (m *meter) count(ctx context.Context, p *phase) error {
	usage, err := m.usage()
	if err != nil {
		return err
	}
	events, err := m.sent(ctx)
	if err != nil {
		return err
	}
	p.cpu, p.events = usage.CPU-m.cpu, events-m.events
	m.cpu, m.events = usage.CPU, events
	p.writes = map[string]float64{}
	_, err = m.log.Read(func(r audit.Request) bool {
		switch {
		case r.User != identity:
		case r.Verb == "watch":
			p.watches++
		case r.Verb == "get" || r.Verb == "list":
			p.reads++
		default:
			p.writes[r.Resource]++
		}
		return false
	})
	return err
}

// sent is how many watch events the API server has sent so far, to everybody.
func (m *meter) sent(ctx context.Context) (float64, error) {
	text, err := m.lab.kube.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	return sum(text, "apiserver_watch_events_total")
}

func (m *meter) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("get %s: %s", path, response.Status)
	}
	return io.ReadAll(response.Body)
}

// sum adds all series of a metric.
func sum(text []byte, name string) (total float64, err error) {
	for line := range strings.Lines(string(text)) {
		rest, is := strings.CutPrefix(line, name)
		if !is || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		fields := strings.Fields(rest)
		value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			return 0, fmt.Errorf("read metric %s: %w", name, err)
		}
		total += value
	}
	return total, nil
}

// profiles of a manager at rest. The first asks for a collection, so it comes after what is measured.
var profiles = map[string]string{"heap.pb.gz": "/debug/pprof/heap?gc=1", "goroutines.txt": "/debug/pprof/goroutine?debug=1"}

// cpuProfile is a profile of where time goes, from now on.
const cpuProfile = "/debug/pprof/profile?seconds=90"

// keep writes profiles into a folder; none if it has no name.
func (m *meter) keep(ctx context.Context, profiles map[string]string, folder string) error {
	if folder == "" {
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for file, path := range profiles {
		profile, err := m.get(ctx, path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, m.lab.name+"."+file), profile, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// keepRequests copies the audit log into a folder; none if it has no name.
func (m *meter) keepRequests(folder string) error {
	if folder == "" {
		return nil
	}
	text, err := os.ReadFile(m.lab.cluster.AuditLog())
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, m.lab.name+".audit.log"), text, 0o644)
}
