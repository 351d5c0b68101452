// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/evenkeel/evenkeel/internal/demand"
	"github.com/evenkeel/evenkeel/internal/plugin/history"
	"github.com/evenkeel/evenkeel/internal/plugin/read"
	"github.com/evenkeel/evenkeel/internal/plugin/size"
)

// usualSpan is how much of the past is read if nothing else is said: enough to tell days of the week
// apart, and what Prometheus keeps by default.
const usualSpan = 14 * 24 * time.Hour

// tracing is a trace with the time that counts, and notes about what its source does not know.
type tracing struct {
	pods     demand.Trace
	from, to time.Time
	notes    []string
}

// readTrace reads the trace from where it is.
func (z *sizeOptions) readTrace(ctx context.Context, pool size.Pool) (tracing, error) {
	switch {
	case z.fromCluster:
		return z.traceOfConnected(ctx, pool)
	case z.prometheus != "":
		return z.traceOfPrometheus(ctx)
	}
	return z.traceOfFile(ctx)
}

var errNoPods = errors.New("the trace contains no pods")

// traceOfFile reads a file. Its ends are rounded to hours, because schedules change at hours.
func (z *sizeOptions) traceOfFile(ctx context.Context) (t tracing, err error) {
	if t.pods, err = z.readFile(ctx); err != nil {
		return t, fmt.Errorf("read %s: %w", z.file, err)
	}
	if len(t.pods) == 0 {
		return t, nil
	}
	t.from = t.pods[0].Created.Truncate(time.Hour)
	t.to = t.pods[len(t.pods)-1].Created.Truncate(time.Hour).Add(time.Hour)
	t.from, t.to, err = z.period(t.from, t.to)
	return t, err
}

func (z *sizeOptions) readFile(ctx context.Context) (demand.Trace, error) {
	if z.file == "-" {
		return demand.ReadCSV(z.interruptibleInput(ctx))
	}
	file, err := os.Open(z.file)
	if err != nil {
		return nil, errors.Unwrap(err) // which names the file, as the caller does
	}
	defer file.Close()
	return demand.ReadCSV(file)
}

func (z *sizeOptions) traceOfConnected(ctx context.Context, pool size.Pool) (tracing, error) {
	clusters, err := z.connect()
	if err != nil {
		return tracing{}, err
	}
	return z.traceOfCluster(ctx, clusters, pool)
}

func (z *sizeOptions) traceOfCluster(ctx context.Context, clusters read.Clusters, pool size.Pool) (t tracing, err error) {
	if clusters.Target == nil {
		return t, errors.New("--from-cluster needs the cluster with the pods: see --target-kubeconfig")
	}
	objects, missing, err := history.Read(ctx, clusters.Target)
	if err != nil {
		return t, err
	}
	objects.Now, objects.Nodes = clusters.Clock.Now(), pool.Nodes
	if t.from, t.to, err = z.recent(objects.Now); err != nil {
		return t, err
	}
	t.pods, t.notes = history.Cluster(objects)
	t.notes = append(missing, t.notes...)
	if pool.Name != "" && pool.Nodes == nil {
		t.notes = append(t.notes, "pods of all Nodes count, because the machines of MachineDeployment "+pool.Name+" could not be read")
	}
	return t, nil
}

func (z *sizeOptions) traceOfPrometheus(ctx context.Context) (t tracing, err error) {
	p := history.Prometheus{URL: z.prometheus, Matchers: z.matchers, Nodes: z.nodes, Step: z.step}
	if z.tokenFile != "" {
		token, err := os.ReadFile(z.tokenFile)
		if err != nil {
			return t, fmt.Errorf("read the token of Prometheus: %w", err)
		}
		p.Token = string(bytes.TrimSpace(token))
	}
	if t.from, t.to, err = z.recent(time.Now()); err != nil {
		return t, err
	}
	t.pods, t.notes, err = p.Trace(ctx, t.from, t.to)
	if z.deployment != "" && z.nodes == "" {
		t.notes = append(t.notes, "pods of all Nodes count: select those of MachineDeployment "+z.deployment+" with --prometheus-nodes")
	}
	return t, err
}

// recent returns the time that counts if a source knows the past until now.
func (z *sizeOptions) recent(now time.Time) (from, to time.Time, err error) {
	from, to, err = z.period(time.Time{}, now.UTC().Truncate(time.Second))
	if z.start == "" {
		from = to.Add(-usualSpan)
	}
	return from, to, err
}

// period returns the time whose cost counts: a given one, where flags do not name another.
func (z *sizeOptions) period(from, to time.Time) (time.Time, time.Time, error) {
	for _, flag := range []struct {
		name, text string
		at         *time.Time
	}{{"--start", z.start, &from}, {"--end", z.end, &to}} {
		if flag.text == "" {
			continue
		}
		at, err := demand.ParseTime(flag.text)
		if err != nil {
			return from, to, fmt.Errorf("%s %w", flag.name, err)
		}
		*flag.at = at
	}
	if !to.After(from) {
		return from, to, fmt.Errorf("the time from %s to %s is empty: see --start and --end", from.Format(time.RFC3339), to.Format(time.RFC3339))
	}
	return from, to, nil
}
