// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// startProcess starts cmd in a process group of its own, so that the terminal's Ctrl-C does not
// reach it. A detached process outlives this one; the kernel kills any other when this one ends.
func startProcess(cmd *exec.Cmd, detached bool) error {
	if detached {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return cmd.Start()
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return onEternalThread(cmd.Start)
}

// onEternalThread runs f on a thread that lives as long as this process. Danger: the kernel sends
// the parent-death signal when the thread that forked ends, and Go may end any thread unless a
// goroutine is locked to it.
func onEternalThread(f func() error) error {
	result := make(chan error)
	eternalThread() <- func() { result <- f() }
	return <-result
}

var eternalThread = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})
