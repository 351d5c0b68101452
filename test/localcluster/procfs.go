// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
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
	fields := statFields(stat)
	if len(fields) <= startTime || bytes.ContainsAny(fields[stateField], "ZX") && !othersLeft(pid) {
		return ""
	}
	return bootID() + "/" + string(fields[startTime])
}

// The third and the 22nd field of stat, see statFields.
const stateField, startTime = 0, 19

// statFields returns the fields of a stat file from the third one on. The second field is the name
// in parentheses, which may contain anything.
func statFields(stat []byte) [][]byte { return bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) }

// isPaused reports whether every thread of a process has stopped. SIGSTOP returns before that.
func isPaused(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if fields := statFields(stat); err == nil && len(fields) > startTime && !bytes.ContainsAny(fields[stateField], "TZX") {
			return false
		}
	}
	return true
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
