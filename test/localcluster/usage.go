// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process takes. Memory is in MiB.
type Usage struct {
	// Private memory is the process' own, Resident is all that it has in memory, and Peak the most
	// that Resident has been.
	Private, Resident, Peak float64
	// CPU is the user and system time so far.
	CPU time.Duration
}

// tick is the unit of CPU time in procfs.
const tick = time.Second / 100

// ReadUsage reads the usage of the process pid.
func ReadUsage(pid int) (u Usage, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, err
	}
	for name, into := range map[string]*float64{"RssAnon:": &u.Private, "VmRSS:": &u.Resident, "VmHWM:": &u.Peak} {
		_, kib, _ := strings.Cut(string(status), "\n"+name)
		if _, err := fmt.Sscan(kib, into); err != nil {
			return u, fmt.Errorf("read %s of process %d: %w", name, pid, err)
		}
		*into /= 1024
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, err
	}
	// The second field is the name in parentheses and may hold anything; user and system time are
	// the 14th and 15th.
	for _, field := range bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])[11:13] {
		ticks, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return u, fmt.Errorf("read CPU time of process %d: %w", pid, err)
		}
		u.CPU += time.Duration(ticks) * tick
	}
	return u, nil
}
