// SPDX-License-Identifier: Apache-2.0

package sizing

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/internal/demand"
)

// MaxMachines is how many machines a simulated MachineDeployment has at most.
const MaxMachines = 5000

// Setup describes everything but the demand and the reserve.
type Setup struct {
	// Machine is what one machine offers to pods: cpu, memory and pods.
	Machine corev1.ResourceList
	// Boot contains times from the creation of a machine until pods can run on it.
	Boot []time.Duration
	// Release is the time from when a pod waits until it runs on a machine of the reserve.
	Release time.Duration
	// Autoscaler is nil if nothing but instant release changes the number of machines.
	Autoscaler *Autoscaler
	// Min and Max are the bounds of the MachineDeployment. At most MaxMachines; 0 means that.
	Min, Max int
	// From and To are the time whose cost counts. Pods that are created after it are ignored.
	From, To time.Time
	// BootPatience is the flag of the controller of MachineDeployments. Its patience with a surplus has no
	// effect here: machines that a pod runs on are never more than replicas.
	BootPatience time.Duration
	// Interrupted is called now and then. If it returns true, the simulation ends with
	// ErrInterrupted; nil never interrupts.
	Interrupted func() bool
}

// Autoscaler is how an autoscaler reacts.
type Autoscaler struct {
	// Up is the time from when a pod waits until machines are requested for it.
	Up time.Duration
	// Down is how long a machine is empty before it is removed.
	Down time.Duration
}

// ErrInterrupted is returned if Setup.Interrupted ended a simulation.
var ErrInterrupted = errors.New("interrupted")

func (s Setup) validate() error {
	cpu, memory, pods := s.Machine.Cpu(), s.Machine.Memory(), s.Machine.Pods()
	switch {
	case cpu.Sign() <= 0 || memory.Sign() <= 0 || pods.Sign() <= 0:
		return errors.New("a machine needs cpu, memory and pods")
	case len(s.Boot) == 0:
		return errors.New("the time that a machine takes to boot is missing")
	case s.Release < 0 || s.Autoscaler != nil && (s.Autoscaler.Up < 0 || s.Autoscaler.Down < 0):
		return errors.New("times must not be negative")
	case s.Min < 0 || s.Max < 0 || s.Min > s.max():
		return fmt.Errorf("bounds %d:%d are invalid: write from 0 to %d machines, the smaller number first", s.Min, s.Max, MaxMachines)
	case s.Min > MaxMachines || s.Max > MaxMachines:
		return fmt.Errorf("bounds %d:%d are too large: at most %d machines are simulated", s.Min, s.Max, MaxMachines)
	case !s.To.After(s.From):
		return errors.New("the time to simulate must not end before it begins")
	case s.To.Sub(s.From) > demand.MaxSpan:
		return fmt.Errorf("the time to simulate is longer than %v", time.Duration(demand.MaxSpan))
	}
	for _, b := range s.Boot {
		if b < 0 {
			return errors.New("times must not be negative")
		}
	}
	return nil
}

func (s Setup) max() int {
	if s.Max == 0 {
		return MaxMachines
	}
	return s.Max
}

// hours is the length of the time whose cost counts.
func (s Setup) hours() float64 { return s.To.Sub(s.From).Hours() }

// Outcome is what a policy costs, and how long pods wait with it.
type Outcome struct {
	// ReserveHours are the machine hours of machines in reserve, MachineHours those of all
	// machines.
	ReserveHours float64 `json:"reserveHours"`
	MachineHours float64 `json:"machineHours"`
	// Peak is the largest number of machines.
	Peak int `json:"peakMachines"`
	// Pods is the number of pods that were created, without those of TooLarge, which are larger
	// than a machine. Late is how many of them waited for a machine that was not ready when they
	// were created, and Unbound how many still waited at the end.
	Pods     int `json:"pods"`
	Late     int `json:"late"`
	Unbound  int `json:"neverBound"`
	TooLarge int `json:"tooLarge"`
	// Median, P95, P99 and Longest are waits: from the creation of a pod until it is bound.
	Median  Seconds `json:"medianSeconds"`
	P95     Seconds `json:"p95Seconds"`
	P99     Seconds `json:"p99Seconds"`
	Longest Seconds `json:"longestSeconds"`
}

// Seconds is a duration that is printed in seconds.
type Seconds float64

// Duration returns the duration.
func (s Seconds) Duration() time.Duration {
	return time.Duration(math.Round(float64(s) * float64(time.Second)))
}

// waits counts pods by how long they waited.
type waits map[time.Duration]int

// quantile returns the wait that a part of the pods does not exceed.
func (w waits) quantile(part float64) time.Duration {
	sorted, total := make([]time.Duration, 0, len(w)), 0
	for wait, n := range w {
		sorted = append(sorted, wait)
		total += n
	}
	slices.SortFunc(sorted, cmp.Compare)
	rank := int(math.Ceil(part * float64(total)))
	for _, wait := range sorted {
		if rank -= w[wait]; rank <= 0 {
			return wait
		}
	}
	return 0
}

func seconds(d time.Duration) Seconds { return Seconds(d.Seconds()) }
