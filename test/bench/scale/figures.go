// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"time"

	"github.com/evenkeel/evenkeel/test/audit"
)

// figures are what one run took.
type figures struct {
	up, down time.Duration
	writes   writes
	// memory is the peak of the resident set, in MiB.
	memory float64
	cpu    time.Duration
}

// writes are what one identity wrote, Leases and events left out.
type writes struct {
	all, refused, machinesCreated int
}

func countWrites(path, user string) (w writes, err error) {
	log, err := audit.Open(path)
	if err != nil {
		return w, err
	}
	defer log.Close()
	requests, err := log.Read(func(r audit.Request) bool { return r.User == user && r.Writes() })
	for _, r := range requests {
		w.all++
		if r.Refused() {
			w.refused++
		} else if r.Verb == "create" && r.Resource == "machines" {
			w.machinesCreated++
		}
	}
	return w, err
}
