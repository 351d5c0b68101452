// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/evenkeel/evenkeel/internal/audit"
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

// usage reads a process' peak memory in MiB and its CPU time.
func usage(pid int) (memory float64, cpu time.Duration, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(status)) {
		if peak, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseFloat(strings.Fields(peak)[0], 64)
			if err != nil {
				return 0, 0, err
			}
			memory = kib / 1024
		}
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	// After the name, which ends with the last parenthesis, the 12th and 13th fields are user and system time in ticks.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	for _, field := range fields[11:13] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, 0, err
		}
		cpu += time.Duration(ticks) * 10 * time.Millisecond
	}
	return memory, cpu, nil
}
