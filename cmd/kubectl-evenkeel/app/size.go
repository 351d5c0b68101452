// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/evenkeel/evenkeel/internal/demand"
	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/plugin/history"
	"github.com/evenkeel/evenkeel/internal/plugin/picture"
	"github.com/evenkeel/evenkeel/internal/plugin/read"
	"github.com/evenkeel/evenkeel/internal/plugin/screen"
	"github.com/evenkeel/evenkeel/internal/plugin/size"
)

// sizeFormats are the formats of -o; the empty one is the screen.
var sizeFormats = []string{"json", "yaml", "reserve"}

func newSize(o *options) *cobra.Command {
	z := &sizeOptions{options: o}
	c := &cobra.Command{
		Use:   "size [MACHINEDEPLOYMENT] -f trace.csv|--from-cluster|--prometheus ADDRESS",
		Short: "Suggest how many machines to keep in reserve, and when (read-only)",
		Long: `Suggest how many machines to keep in reserve, and when. The command is read-only.

It simulates the controllers with a trace of pods, and prints for each amount how many machine hours it costs and how long pods
wait. It suggests the smallest amount that keeps waits within --wait, or schedules if they are much cheaper, as a Reserve to
apply.

The trace is a CSV file, whose first line names the columns time, cpu and memory, and optionally duration or end, and count; or
it comes from kube-state-metrics in Prometheus, or from the pods and events of the cluster. If you name a MachineDeployment, the
command reads the size, boot times, bounds and excess of its machines, and the flags of the manager. Flags of this command take
precedence, and are enough without a cluster.`,
		Example: `  # How large a reserve must be so that 99 of 100 pods wait 5 seconds at most
  kubectl evenkeel size pool-z1 -f pods.csv

  # Without a cluster, with schedules in the time of Berlin, and a picture
  kubectl evenkeel size -f pods.csv --machine cpu=4,memory=16Gi --boot-time 2m --time-zone Europe/Berlin --svg week.svg

  # From Prometheus, for the pods of some Nodes
  kubectl evenkeel size pool-z1 --prometheus http://127.0.0.1:9090 --prometheus-nodes 'pool-z1-.*'

  # Apply the suggestion
  kubectl evenkeel size pool-z1 -f pods.csv -o reserve | kubectl apply -f -`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: o.completeDeployments,
		RunE: func(c *cobra.Command, args []string) error {
			z.deployment = strings.Join(args, "")
			z.flags = c.Flags()
			return z.run(c.Context())
		},
	}
	z.addSizeFlags(c.Flags())
	complete(c, "output", sizeFormats...)
	return c
}

func (z *sizeOptions) run(ctx context.Context) error {
	if err := z.validate(); err != nil {
		return err
	}
	pool, err := z.readPool(ctx)
	if err != nil {
		return err
	}
	q, err := z.question(pool)
	if err != nil {
		return err
	}
	trace, err := z.readTrace(ctx, pool)
	if err != nil {
		return err
	}
	answer, err := trace.answer(ctx, q)
	if err != nil {
		return err
	}
	if err := z.writePicture(answer); err != nil {
		return err
	}
	return z.print(answer)
}

// answer answers a question for a trace, unless ctx ends.
func (t tracing) answer(ctx context.Context, q size.Question) (size.Answer, error) {
	if len(t.pods) == 0 {
		return size.Answer{}, errNoPods
	}
	q.Trace, q.Notes, q.Setup.From, q.Setup.To = t.pods, t.notes, t.from, t.to
	q.Setup.Interrupted = func() bool { return ctx.Err() != nil }
	return size.Find(q)
}

// writePicture writes the picture if a file for it is given.
func (z *sizeOptions) writePicture(a size.Answer) error {
	if z.svg == "" {
		return nil
	}
	var text bytes.Buffer
	if err := picture.Week(&text, a); err != nil {
		return err
	}
	if err := os.WriteFile(z.svg, text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	return nil
}

// readPool reads the MachineDeployment if one is named. If the cluster does not answer, flags and
// defaults apply.
func (z *sizeOptions) readPool(ctx context.Context) (size.Pool, error) {
	if z.deployment == "" {
		return size.Pool{}, nil
	}
	objects, err := z.readObjects(ctx)
	if err != nil {
		fmt.Fprintf(z.ErrOut, "Note: cannot read MachineDeployment %s, so flags and defaults apply: %v.\n", z.deployment, err)
		return size.Pool{Name: z.deployment}, ctx.Err()
	}
	pool, err := size.ReadPool(objects, z.deployment)
	if errors.Is(err, size.ErrNotFound) && !z.everywhere {
		return pool, fmt.Errorf("%w; this is the namespace of the kubeconfig; use -n for another one", err)
	}
	if err != nil {
		return pool, err
	}
	return pool, z.adoptManagerFlags(ctx, pool.Namespace, z.flags)
}

func (z *sizeOptions) print(a size.Answer) error {
	switch z.output {
	case "json", "yaml":
		return z.encode(a, z.output)
	case "reserve":
		return z.printReserve(a)
	}
	lines := screen.Size(a, z.screenStyle())
	if a.Reserve != nil {
		text, err := a.Reserve.YAML()
		if err != nil {
			return fmt.Errorf("encode the Reserve: %w", err)
		}
		lines = append(lines, "", "To apply it: -o reserve prints only this", "---", strings.TrimSpace(text))
	}
	_, err := fmt.Fprintln(z.Out, strings.Join(lines, "\n"))
	return err
}

func (z *sizeOptions) printReserve(a size.Answer) error {
	switch {
	case a.Amount == nil:
		return errors.New("no reserve keeps waits within --wait, so there is no Reserve to print: see the table without -o")
	case a.Reserve == nil:
		return errors.New("no reserve is necessary: see the table without -o")
	case slices.Contains(a.Reserve.Spec.Pools.Names, size.Unnamed):
		return errors.New("the MachineDeployment is missing: name it, or set --worker-pool")
	}
	text, err := a.Reserve.YAML()
	if err != nil {
		return fmt.Errorf("encode the Reserve: %w", err)
	}
	_, err = fmt.Fprint(z.Out, text)
	return err
}

// completeDeployments completes the name of a MachineDeployment.
func (o *options) completeDeployments(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return o.completeNames(c, func(o overview.Objects) []string { return namesOf(o.Deployments) })
}

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
		return t, errors.New("--from-cluster needs the cluster with the pods: set --target-kubeconfig")
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
		return from, to, fmt.Errorf("the time from %s to %s is empty: change --start or --end", from.Format(time.RFC3339), to.Format(time.RFC3339))
	}
	return from, to, nil
}
