// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// deciding are the packages that decide: what is measured unless packages are named.
var deciding = []string{
	"pkg/reserve", "pkg/pool", "pkg/distribute", "pkg/fit", "pkg/similar", "pkg/provider/nodegroup/plan",
	"pkg/controller/machinetaint", "pkg/controller/machinedeployment/plan", "pkg/controller/release/plan", "pkg/controller/balance/plan", "pkg/controller/balancer/plan",
	"pkg/controller/federatedhpa/plan", "pkg/controller/reserves/plan", "pkg/controller/capacitybuffer/plan",
}

type options struct {
	root       string
	equivalent string
	since      string
	files      string
	match      *regexp.Regexp
	budget     time.Duration
	limit      time.Duration
	seed       uint64
	workers    int
	lived      bool
	basic      float64
	hard       float64
	packages   []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.StringVar(&o.root, "root", ".", "the repository")
	flags.StringVar(&o.equivalent, "equivalent", "", "the list of equivalent mutants (default: test/mutants/equivalent.txt of the repository)")
	flags.StringVar(&o.since, "since", "", "only packages that changed since this commit")
	flags.StringVar(&o.files, "files", "*", "only files whose name matches this pattern, such as plan.go")
	match := flags.String("match", "", "only mutants whose line in the list matches this regular expression")
	flags.DurationVar(&o.budget, "budget", time.Hour, "how long to try mutants, shared evenly by the packages; the mutants that are tried are a random sample")
	flags.DurationVar(&o.limit, "limit", 10*time.Second, "how long the specs that one mutant meets may take together: slower ones are left out, and what only they would kill lives")
	flags.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "the seed of the sample")
	flags.IntVar(&o.workers, "workers", 2, "test runs at a time")
	flags.BoolVar(&o.lived, "lived", true, "list the mutants that lived")
	flags.Float64Var(&o.basic, "basic", 97, "how many percent of the basic mutants are to be killed in each package")
	flags.Float64Var(&o.hard, "hard", 92, "how many percent of the hard mutants are to be killed in each package")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "Measures what the tests of packages catch, by changing one small place of their code at a time.\n\nusage: mutants [flags] [package folder ...]")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	o.match, err = regexp.Compile(*match)
	o.packages = flags.Args()
	if o.equivalent == "" {
		o.equivalent = filepath.Join(o.root, "test", "mutants", "equivalent.txt")
	}
	return o, err
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	folders, err := o.folders(ctx)
	if err != nil {
		return err
	}
	equivalences, err := readEquivalences(o.equivalent)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintf(out, "seed %d\n", o.seed)
	table := newTable(out, o.basic, o.hard)
	for i, folder := range folders {
		share := o.budget / time.Duration(len(folders)-i)
		start := time.Now()
		if err := o.measure(ctx, folder, equivalences, dir, share, table); err != nil {
			return err
		}
		o.budget -= min(o.budget, time.Since(start))
	}
	return cmp.Or(ctx.Err(), table.total())
}

// measure tries the mutants of one package.
func (o options) measure(ctx context.Context, folder string, equivalences []equivalence, dir string, budget time.Duration, t *table) error {
	start := time.Now()
	p, err := Load(o.root, "./"+folder)
	if err != nil {
		return err
	}
	mutants, insertions := Mutate(p)
	equivalent, err := known(equivalences, folder, mutants)
	if err != nil {
		return err
	}
	work, err := scratch(dir, folder)
	if err != nil {
		return err
	}
	binary, err := Build(p, mutants, insertions, work)
	if err != nil {
		return err
	}
	runner, err := NewRunner(ctx, p, binary, o.limit)
	if err != nil {
		return err
	}
	wanted := slices.DeleteFunc(slices.Clone(mutants), func(m Mutant) bool { return !o.wants(m) })
	verdicts := runner.Run(ctx, wanted, equivalent, o.seed, budget-time.Since(start), o.workers)
	t.add(folder, wanted, verdicts, o.lived)
	return os.RemoveAll(work)
}

// wants reports whether a mutant is to be tried.
func (o options) wants(m Mutant) bool {
	matched, err := path.Match(o.files, m.Position.Filename)
	return err == nil && matched && o.match.MatchString(m.String())
}

// folders are the packages to measure.
func (o options) folders(ctx context.Context) ([]string, error) {
	all := o.packages
	if len(all) == 0 {
		all = deciding
	}
	for i := range all {
		all[i] = strings.TrimPrefix(path.Clean(filepath.ToSlash(all[i])), "./")
	}
	if o.since == "" {
		return all, nil
	}
	cmd := exec.CommandContext(ctx, "git", "-C", o.root, "diff", "--name-only", o.since, "--", "*.go")
	changed, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list what changed since %s: %w", o.since, err)
	}
	return slices.DeleteFunc(slices.Clone(all), func(folder string) bool {
		return !slices.ContainsFunc(strings.Fields(string(changed)), func(name string) bool { return path.Dir(name) == folder })
	}), nil
}
