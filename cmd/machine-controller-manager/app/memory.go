// SPDX-License-Identifier: Apache-2.0

package app

import (
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// gcPercent is how much the heap grows until garbage is collected, in percent of what is live. At Go's own 100, half of a manager's
// memory is garbage. A manager rests most of the time, so that more collections hardly cost anything.
const gcPercent = 50

// limits of a container's memory, in bytes: of cgroups version 2, and of version 1.
var limits = []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"}

// tuneMemory has Go's garbage collector keep the process small, and collect more often where it comes close to the limit of its
// container. GOGC and GOMEMLIMIT of the environment win. No heap profile is kept unless it is
// served.
func tuneMemory(root fs.FS, profiling bool) {
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

// memoryLimit leaves a tenth of the container's limit to what Go does not count, and is 0 where there is no limit.
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
