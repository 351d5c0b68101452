// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
)

// identify returns a value that distinguishes process pid from all others that ever have this
// number: the boot, and when the process started in it. It is empty if there is no such process, or
// if it has ended and its parent has not noticed yet.
func identify(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil || pid <= 0 {
		return ""
	}
	// The second field is the name in parentheses, which may contain anything. The third one is the
	// state, the 22nd the start time.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const state, startTime = 0, 19
	if len(fields) <= startTime || bytes.ContainsAny(fields[state], "ZX") && !othersLeft(pid) {
		return ""
	}
	return bootID() + "/" + string(fields[startTime])
}

// othersLeft reports whether a process whose first thread has ended has other threads that are
// still ending. Until the last one ends, the process holds its ports.
func othersLeft(pid int) bool {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	return err == nil && len(threads) > 1
}

var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(id))
})
