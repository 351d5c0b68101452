// SPDX-License-Identifier: Apache-2.0

package sizing

import (
	"cmp"
	"math"
	"slices"
	"time"
)

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
