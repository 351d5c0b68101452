// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
)

// identify returns what tells the process pid from any other that ever had or will have that number: the boot it
// belongs to and when it started in it. Empty: no such process, or one that has ended and waits for its parent to notice.
func identify(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil || pid <= 0 {
		return ""
	}
	// The second field is the name in parentheses and may hold anything; the third is the state, the 22nd the start time.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const state, startTime = 0, 19
	if len(fields) <= startTime || bytes.ContainsAny(fields[state], "ZX") && !othersLeft(pid) {
		return ""
	}
	return bootID() + "/" + string(fields[startTime])
}

// othersLeft tells whether a process whose first thread has ended has others that are still ending: until the last is
// gone the process holds its ports.
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
