// SPDX-License-Identifier: Apache-2.0

package size

import (
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/internal/demand"
	"github.com/evenkeel/evenkeel/internal/plural"
	"github.com/evenkeel/evenkeel/internal/sizing"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

// Question is what is asked.
type Question struct {
	Trace demand.Trace
	Setup sizing.Setup
	Goal  sizing.Goal
	// Pool is the MachineDeployment; without a name if none is named.
	Pool Pool
	// WorkerPool is the Gardener worker pool that the Reserve selects; empty selects the
	// MachineDeployment.
	WorkerPool string
	// Name of the Reserve.
	Name string
	// Current is the amount that is kept now, nil if that is unknown.
	Current *int
	// Price of a machine hour; 0 if that is unknown.
	Price float64
	// Notes are about the source of the trace.
	Notes []string
}

// Answer contains everything that is printed.
type Answer struct {
	MachineDeployment string    `json:"machineDeployment,omitempty"`
	Start             time.Time `json:"start"`
	End               time.Time `json:"end"`
	TimeZone          string    `json:"timeZone"`
	Pods              int       `json:"pods"`

	Machine     corev1.ResourceList `json:"machine"`
	BootSeconds []sizing.Seconds    `json:"bootSeconds"`
	Percentile  float64             `json:"percentile"`
	WaitSeconds sizing.Seconds      `json:"waitSeconds"`
	// Price of a machine hour.
	Price float64 `json:"price,omitempty"`

	// Points is what fixed amounts cost, and how long pods wait with them.
	Points []sizing.Point `json:"amounts"`
	// Current is the amount that is kept now.
	Current *int `json:"currentAmount,omitempty"`
	// Amount is the smallest fixed amount that keeps the goal. Schedule is nil if there is no
	// cheaper one.
	Amount   *sizing.Point `json:"suggestedAmount,omitempty"`
	Schedule *sizing.Point `json:"suggestedSchedule,omitempty"`
	// Week is when pods are created, and when a reserve is needed, by days from Monday and hours.
	Week sizing.Week `json:"week"`
	// Reserve can be applied; nil if none is needed, or none keeps the goal.
	Reserve *Manifest `json:"reserve,omitempty"`
	Notes   []string  `json:"notes,omitempty"`
}

// Find answers a question.
func Find(q Question) (Answer, error) {
	var others []int
	if q.Current != nil {
		others = append(others, *q.Current)
	}
	report, err := sizing.Size(q.Trace, q.Setup, q.Goal, others...)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{
		MachineDeployment: q.Pool.Name, Start: q.Setup.From.UTC(), End: q.Setup.To.UTC(), TimeZone: q.Goal.Zone.String(), Pods: report.Points[0].Pods,
		Machine: q.Setup.Machine, Percentile: q.Goal.Percentile, WaitSeconds: sizing.Seconds(q.Goal.Wait.Seconds()), Price: q.Price,
		Points: report.Points, Current: q.Current, Amount: report.Amount, Schedule: report.Schedule, Week: report.Week,
	}
	for _, boot := range q.Setup.Boot {
		a.BootSeconds = append(a.BootSeconds, sizing.Seconds(boot.Seconds()))
	}
	if p := a.Suggested(); p != nil && (p.Machines > 0 || len(p.Schedules) > 0) {
		a.Reserve = newManifest(q, p.Policy)
	}
	a.Notes = append(slices.Clone(q.Notes), a.limitations(q)...)
	return a, nil
}

// Suggested returns the cheapest policy that keeps the goal, nil if none does.
func (a Answer) Suggested() *sizing.Point {
	if a.Schedule != nil {
		return a.Schedule
	}
	return a.Amount
}

// PercentileText names the percentile of the goal.
func (a Answer) PercentileText() string { return fmt.Sprintf("p%g", a.Percentile) }

// Boot returns the shortest and the longest boot.
func (a Answer) Boot() (shortest, longest time.Duration) {
	if len(a.BootSeconds) == 0 {
		return 0, 0
	}
	return slices.Min(a.BootSeconds).Duration(), slices.Max(a.BootSeconds).Duration()
}

// Saving is the part of the cost of another policy that a policy saves, in percent.
func Saving(of, than sizing.Point) int {
	if than.ReserveHours == 0 {
		return 0
	}
	return int(math.Round(100 * (1 - of.ReserveHours/than.ReserveHours)))
}

// week is how long a trace has to be to know days of the week.
const week = 7 * 24 * time.Hour

// limitations say what limits the answer.
func (a Answer) limitations(q Question) []string {
	var notes []string
	one := a.Points[0]
	if one.TooLarge > 0 {
		notes = append(notes, "omitted: "+plural.Of(one.TooLarge, "pod")+" with larger requests than a machine can hold")
	}
	if a.End.Sub(a.Start) < week {
		notes = append(notes, "the trace covers less than a week, so no schedule can depend on the day of the week")
	}
	if len(q.Setup.Boot) == 1 {
		notes = append(notes, "all machines boot in the same time: if they differ, set several with --boot-time")
	}
	if q.Pool.DaemonsUnknown {
		notes = append(notes, "pods could not be read, so the requests of DaemonSets are unknown: set --machine to what they leave")
	}
	if q.Pool.Namespace != "" && q.Setup.Max == 0 { // it was read, and has none
		notes = append(notes, fmt.Sprintf("MachineDeployment %s has no bounds, so instant release does not raise its replicas, and pods wait as if there were no reserve: set the annotation bounds", q.Pool.Name))
	}
	if p := a.Suggested(); p != nil && q.Pool.Own > p.Machines {
		notes = append(notes, fmt.Sprintf("MachineDeployment %s itself requests %d by %s, which counts where it is more than the Reserve: lower it",
			q.Pool.Name, q.Pool.Own, q.Pool.Where))
	}
	return notes
}

// Unnamed stands for a MachineDeployment in a Reserve if none was named.
const Unnamed = "your-machinedeployment"

// Manifest is a Reserve without status.
type Manifest struct {
	APIVersion string               `json:"apiVersion"`
	Kind       string               `json:"kind"`
	Metadata   Metadata             `json:"metadata"`
	Spec       v1alpha1.ReserveSpec `json:"spec"`
}

// Metadata is what a Manifest names.
type Metadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

func newManifest(q Question, p sizing.Policy) *Manifest {
	m := &Manifest{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Reserve", Metadata: Metadata{Name: q.Name, Namespace: q.Pool.Namespace},
		Spec: v1alpha1.ReserveSpec{Replicas: int32(p.Machines), Schedules: p.Schedules},
	}
	switch {
	case q.WorkerPool != "":
		m.Spec.Pools.WorkerPools = []string{q.WorkerPool}
	case q.Pool.Name != "":
		m.Spec.Pools.Names = []string{q.Pool.Name}
	default:
		m.Spec.Pools.Names = []string{Unnamed}
	}
	return m
}

// YAML is what kubectl apply reads.
func (m Manifest) YAML() (string, error) {
	text, err := yaml.Marshal(m)
	return string(text), err
}
