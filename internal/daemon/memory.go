// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// gcPercent is how much the heap grows until garbage is collected, in percent of the live heap.
// With Go's default of 100, half of a manager's memory is garbage. A manager is idle most of the
// time, so more collections cost almost nothing.
const gcPercent = 50

// limits are the files with the memory limit of a container, in bytes: for cgroups version 2, and
// for version 1.
var limits = []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"}

// TuneMemory makes Go's garbage collector keep the process small, and collect more often near the
// memory limit of its container. GOGC and GOMEMLIMIT in the environment take precedence. A heap
// profile is recorded only if it is served.
func TuneMemory(root fs.FS, profiling bool) {
	if !profiling {
		runtime.MemProfileRate = 0
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if limit := memoryLimit(root); limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
}

// memoryLimit returns the limit less a tenth for what Go does not count, 0 if there is no limit.
func memoryLimit(root fs.FS) int64 {
	for _, path := range limits {
		text, err := fs.ReadFile(root, path)
		if err != nil {
			continue
		}
		limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil || limit >= 1<<60 { // "max", or version 1's number for it
			return 0
		}
		return limit / 10 * 9
	}
	return 0
}
