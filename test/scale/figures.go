// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
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

// auditEvent is what we read of a line of the audit log.
type auditEvent struct {
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	User  struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource string `json:"resource"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

func countWrites(log, user string) (w writes, err error) {
	file, err := os.Open(log)
	if err != nil {
		return w, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e auditEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return w, fmt.Errorf("read %s: %w", log, err)
		}
		if e.Stage == "ResponseComplete" && e.User.Username == user {
			w.add(e)
		}
	}
	return w, lines.Err()
}

func (w *writes) add(e auditEvent) {
	switch e.Verb {
	case "create", "update", "patch", "delete":
	default:
		return
	}
	if e.ObjectRef.Resource == "leases" || e.ObjectRef.Resource == "events" {
		return
	}
	w.all++
	if e.ResponseStatus.Code >= 400 {
		w.refused++
	} else if e.Verb == "create" && e.ObjectRef.Resource == "machines" {
		w.machinesCreated++
	}
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
