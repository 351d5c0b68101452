// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// janitor is a process that removes cgroups after this one has ended: they are all that is left of machines then.
type janitor struct {
	process *exec.Cmd
	control io.Closer
}

func startJanitor(cgroup string) (*janitor, error) {
	process := exec.Command("/proc/self/exe", Janitor, cgroup)
	process.Stdout, process.Stderr = os.Stdout, os.Stderr
	process.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	control, err := process.StdinPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start janitor: %w", err)
	}
	return &janitor{process, control}, nil
}

func (j *janitor) finish() {
	_ = j.control.Close()
	_ = j.process.Wait()
}

// RunJanitor waits until the process that has started it ends, and removes the cgroup.
func RunJanitor(cgroup string) error {
	signal.Ignore(os.Interrupt, syscall.SIGTERM)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return removeCgroup(cgroup)
}
