// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/evenkeel/evenkeel/internal/plugin/size"
	"github.com/evenkeel/evenkeel/internal/sizing"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
)

// sizeOptions are the options of size.
type sizeOptions struct {
	*options
	// deployment is the name of the MachineDeployment, empty if none is named.
	deployment string
	// flags of the command.
	flags *pflag.FlagSet

	file, output, svg string
	start, end        string

	wait       time.Duration
	percentile float64
	zone       string

	machine                string
	boot                   []time.Duration
	releaseTime            time.Duration
	bounds                 string
	current                int
	autoscaler             bool
	scanInterval, unneeded time.Duration
	// bootReserve is the value of the controllers' flag --reserve-boot-patience.
	bootReserve time.Duration
	price       float64

	fromCluster           bool
	prometheus, tokenFile string
	matchers, nodes       string
	step                  time.Duration

	reserveName, workerPool string
}

const (
	// defaultReleaseTime is more than the median of the largest burst that docs/release.md measures.
	defaultReleaseTime = 300 * time.Millisecond
	// The defaults of cluster-autoscaler's flags.
	defaultScanInterval = 10 * time.Second
	defaultUnneeded     = 10 * time.Minute
)

func (z *sizeOptions) addSizeFlags(flags *pflag.FlagSet) {
	flags.StringVarP(&z.file, "file", "f", "", "CSV file with the trace, or - for standard input")
	flags.BoolVar(&z.fromCluster, "from-cluster", false, "read the trace from the pods and events of the cluster")
	flags.StringVar(&z.prometheus, "prometheus", "", "read the trace from kube-state-metrics in the Prometheus at this address, for example http://127.0.0.1:9090")
	flags.StringVar(&z.tokenFile, "prometheus-token-file", "", "file with a bearer token for Prometheus")
	flags.StringVar(&z.matchers, "prometheus-matchers", "", "labels of the pods that count, for example namespace=\"shop\"")
	flags.StringVar(&z.nodes, "prometheus-nodes", "", "regular expression for the names of Nodes whose pods count, for example pool-z1-.*")
	flags.DurationVar(&z.step, "prometheus-step", time.Minute, "time between samples from Prometheus: how precise the end of deleted pods is")
	flags.StringVarP(&z.output, "output", "o", "", "json, yaml, or reserve (only the Reserve to apply); default: a table")
	flags.StringVar(&z.svg, "svg", "", "file for a picture of the week: demand, the fixed amount, and the suggested schedule")
	flags.StringVar(&z.start, "start", "", "time from which costs and waits count, for example 2026-03-02T00:00:00Z; default: the beginning of the file, or two weeks before the end")
	flags.StringVar(&z.end, "end", "", "time until which costs and waits count; default: the end of the file, or now")
	flags.DurationVar(&z.wait, "wait", 5*time.Second, "longest acceptable wait of the pods in --percentile")
	flags.Float64Var(&z.percentile, "percentile", 99, "percentage of pods that must not wait longer than --wait")
	flags.StringVar(&z.zone, "time-zone", "Etc/UTC", "time zone of schedules")
	flags.StringVar(&z.machine, "machine", "", "what one machine has for workload, for example cpu=4,memory=16Gi,pods=110; default: from the MachineDeployment")
	flags.DurationSliceVar(&z.boot, "boot-time", nil, "how long machines take to boot, as `durations` that are used in turn, for example 2m,150s; default: from the machines of the MachineDeployment")
	flags.DurationVar(&z.releaseTime, "release-time", defaultReleaseTime, "time from the creation of a pod until it is bound to a machine in reserve")
	flags.StringVar(&z.bounds, "bounds", "", "min:max of machines, for example 1:40; default: from the MachineDeployment")
	flags.IntVar(&z.current, "current", 0, "the amount to compare with; default: the excess of the MachineDeployment")
	flags.BoolVar(&z.autoscaler, "autoscaler", true, "whether cluster-autoscaler adds and removes machines")
	flags.DurationVar(&z.scanInterval, "scan-interval", defaultScanInterval, "as for cluster-autoscaler")
	flags.DurationVar(&z.unneeded, "scale-down-unneeded-time", defaultUnneeded, "as for cluster-autoscaler")
	flags.DurationVar(&z.bootReserve, "reserve-boot-patience", machinetaint.DefaultBootPatience, "as for the controllers")
	flags.Float64Var(&z.price, "price", 0, "price of a machine hour, to show costs")
	flags.StringVar(&z.reserveName, "name", "", "name of the Reserve; default: that of the MachineDeployment or the worker pool")
	flags.StringVar(&z.workerPool, "worker-pool", "", "Gardener worker pool that the Reserve selects instead of the MachineDeployment")
}

// validate checks what can be checked before anything is read.
func (z *sizeOptions) validate() error {
	switch {
	case z.output != "" && !slices.Contains(sizeFormats, z.output):
		return fmt.Errorf("--output %q is invalid: use %s", z.output, strings.Join(sizeFormats, ", "))
	case z.sources() != 1:
		return errors.New("the trace is missing: set one of --file, --from-cluster and --prometheus")
	case z.price < 0 || math.IsNaN(z.price) || math.IsInf(z.price, 0):
		return errors.New("--price must not be negative")
	case z.current < 0 || z.current > sizing.MaxMachines:
		return fmt.Errorf("--current %d is invalid: use a number from 0 to %d", z.current, sizing.MaxMachines)
	}
	return nil
}

// sources counts where the trace is to be taken from.
func (z *sizeOptions) sources() int {
	n := 0
	for _, set := range []bool{z.file != "", z.fromCluster, z.prometheus != ""} {
		if set {
			n++
		}
	}
	return n
}

// question combines flags and the MachineDeployment. The trace is still missing.
func (z *sizeOptions) question(pool size.Pool) (q size.Question, err error) {
	q = size.Question{
		Pool: pool, WorkerPool: z.workerPool, Name: cmp.Or(z.reserveName, z.workerPool, pool.Name, "sized"), Price: z.price,
		Goal: sizing.Goal{Percentile: z.percentile, Wait: z.wait},
	}
	if q.Goal.Zone, err = time.LoadLocation(z.zone); err != nil || z.zone == "Local" || z.zone == "" {
		return q, fmt.Errorf("--time-zone %q is unknown: use a name of the IANA database, for example Europe/Berlin", z.zone)
	}
	if z.flags.Changed("current") || pool.Machine != nil {
		current := pool.Current
		if z.flags.Changed("current") {
			current = z.current
		}
		q.Current = &current
	}
	q.Setup, err = z.setup(pool)
	return q, err
}

func (z *sizeOptions) setup(pool size.Pool) (s sizing.Setup, err error) {
	s = sizing.Setup{
		Release: z.releaseTime, Boot: z.boot, BootPatience: z.bootReserve,
	}
	if z.bootReserve < 0 {
		return s, errors.New("--reserve-boot-patience: use a duration, or 0 for no limit")
	}
	if z.autoscaler {
		s.Autoscaler = &sizing.Autoscaler{Up: z.scanInterval, Down: z.unneeded}
	}
	if s.Machine, err = z.machineOf(pool); err != nil {
		return s, err
	}
	if len(s.Boot) == 0 {
		s.Boot = pool.Boot
	}
	if len(s.Boot) == 0 {
		return s, errors.New("the boot time is unknown, because no machine of a MachineDeployment shows it: set --boot-time, for example 2m")
	}
	s.Min, s.Max, err = z.boundsOf(pool)
	return s, err
}

func (z *sizeOptions) machineOf(pool size.Pool) (corev1.ResourceList, error) {
	if z.machine != "" {
		return parseMachine(z.machine)
	}
	if pool.Machine == nil {
		return nil, errors.New("the size of a machine is unknown: set --machine, for example cpu=4,memory=16Gi, or name a MachineDeployment whose MachineClass or Node shows it")
	}
	return pool.Machine, nil
}

// parseMachine parses what a machine has.
func parseMachine(text string) (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		q, err := resource.ParseQuantity(value)
		if err != nil || q.Sign() <= 0 || !slices.Contains([]string{"cpu", "memory", "pods"}, name) {
			return nil, fmt.Errorf("--machine %.80q is invalid: use for example cpu=4,memory=16Gi,pods=110", text)
		}
		list[corev1.ResourceName(name)] = q
	}
	if len(list) == 0 || list.Cpu().IsZero() || list.Memory().IsZero() {
		return nil, fmt.Errorf("--machine %.80q: cpu and memory are required, for example cpu=4,memory=16Gi", text)
	}
	if list.Pods().IsZero() {
		list[corev1.ResourcePods] = size.DefaultPods.DeepCopy()
	}
	return list, nil
}

// boundsOf returns the bounds: 0:0 if there are none.
func (z *sizeOptions) boundsOf(pool size.Pool) (low, high int, err error) {
	bounds := pool.Bounds
	if z.bounds != "" {
		parsed, err := v1alpha1.ParseBounds(z.bounds)
		if err != nil || parsed.Excess != nil {
			return 0, 0, fmt.Errorf("--bounds %.80q is invalid: use min:max, for example 1:40", z.bounds)
		}
		bounds = &parsed
	}
	switch {
	case bounds == nil:
		return 0, 0, nil
	case bounds.Max == 0:
		return 0, 0, errors.New("the bounds allow no machine: set --bounds")
	}
	return int(bounds.Min), int(bounds.Max), nil
}
