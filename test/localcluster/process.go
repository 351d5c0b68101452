// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// stopGrace is how long a process may take to end after SIGTERM before it is killed.
const stopGrace = 10 * time.Second

// record is what a later process needs to know about one of ours, as stored in the state of a
// detached cluster.
type record struct {
	Name   string   `json:"name"`
	Binary string   `json:"binary"`
	Args   []string `json:"args"`
	// Hash of the binary, if it may change while the process runs.
	Hash     string `json:"hash,omitempty"`
	PID      int    `json:"pid,omitempty"`
	Identity string `json:"identity,omitempty"`
}

// Process is one process of a cluster: a component, or a program of [Cluster.Run]. After it has
// ended, it can be started again with the same command line.
type Process struct {
	name     string
	dir      string
	detached bool
	// ready returns nil when the process serves. If ready is nil, it serves as soon as it runs.
	ready func(context.Context) error
	// changed is called after each start and stop by us.
	changed func() error

	mu     sync.Mutex
	record record
	// reaped is closed when our child has ended; nil if the process is not our child.
	reaped chan struct{}
}

// Name is the name of the component, or the name passed to Run.
func (p *Process) Name() string { return p.name }

// Log is the path of the file with the output of the process, including earlier runs.
func (p *Process) Log() string { return filepath.Join(p.dir, "logs", p.name+".log") }

// PID is the id of the running process, 0 if it does not run.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.runningPID()
}

// Running reports whether the process exists; a paused process does.
func (p *Process) Running() bool { return p.PID() != 0 }

func (p *Process) runningPID() int {
	if p.record.Identity == "" || identify(p.record.PID) != p.record.Identity {
		return 0
	}
	return p.record.PID
}

// Start does nothing if the process runs. It does not wait until it is ready.
func (p *Process) Start() error {
	p.mu.Lock()
	err := p.startLocked()
	p.mu.Unlock()
	return errors.Join(err, p.changed())
}

func (p *Process) startLocked() error {
	if p.runningPID() != 0 {
		return nil
	}
	log, err := os.OpenFile(p.Log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	// The program reads its name from argument zero; the control plane's binary chooses its
	// component by it.
	cmd := &exec.Cmd{Path: p.record.Binary, Args: append([]string{p.name}, p.record.Args...), Dir: p.dir, Stdout: log, Stderr: log}
	if err := startProcess(cmd, p.detached); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.record.PID, p.record.Identity = cmd.Process.Pid, identify(cmd.Process.Pid)
	reaped := make(chan struct{})
	p.reaped = reaped
	go func() {
		_ = cmd.Wait()
		close(reaped)
	}()
	return nil
}

// Stop asks the process to end, kills it after a grace period, and returns when it is gone. The
// process may be paused.
func (p *Process) Stop() error { return p.endWith(syscall.SIGTERM) }

// Kill ends the process as a crash would, and returns when it is gone.
func (p *Process) Kill() error { return p.endWith(syscall.SIGKILL) }

// Restart stops the process and starts it.
func (p *Process) Restart() error {
	if err := p.Stop(); err != nil {
		return err
	}
	return p.Start()
}

// Pause stops the process, and returns when all its threads have stopped: its connections stay open,
// but it does not answer.
func (p *Process) Pause() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for begin := time.Now(); !isPaused(p.PID()); time.Sleep(time.Millisecond) {
		if time.Since(begin) > stopGrace {
			return fmt.Errorf("pause %s: it still runs after %v", p.name, stopGrace)
		}
	}
	return nil
}

// Resume continues a paused process.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

// WaitReady waits until the process serves. It fails early, with the end of the log, if the process
// ends.
func (p *Process) WaitReady(ctx context.Context) error { return p.WaitUntil(ctx, p.ready) }

// WaitUntil waits, like WaitReady, until the process runs and ready returns nil. If ready is nil,
// it returns at once.
func (p *Process) WaitUntil(ctx context.Context, ready func(context.Context) error) error {
	for {
		if !p.Running() {
			return fmt.Errorf("%s ended; its log %s ends with:\n%s", p.name, p.Log(), logTail(p.Log()))
		}
		if ready == nil {
			return nil
		}
		notReady := ready(ctx)
		if notReady == nil {
			return nil
		}
		if err := sleepContext(ctx, pollInterval); errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("wait for %s: %w: %w; its log %s ends with:\n%s", p.name, err, notReady, p.Log(), logTail(p.Log()))
		} else if err != nil {
			return fmt.Errorf("wait for %s: %w", p.name, err)
		}
	}
}

var errNotRunning = errors.New("process does not run")

func (p *Process) signal(signal syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	pid := p.runningPID()
	if pid == 0 {
		return fmt.Errorf("signal %s: %w", p.name, errNotRunning)
	}
	if err := syscall.Kill(pid, signal); err != nil {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}

func (p *Process) endWith(signal syscall.Signal) error {
	p.mu.Lock()
	err := p.endAndWait(signal)
	p.mu.Unlock()
	return errors.Join(err, p.changed())
}

func (p *Process) endAndWait(signal syscall.Signal) error {
	for _, signal := range []syscall.Signal{signal, syscall.SIGKILL} {
		pid := p.runningPID()
		if pid == 0 {
			break
		}
		_ = syscall.Kill(pid, signal)
		_ = syscall.Kill(pid, syscall.SIGCONT)
		p.waitGone(stopGrace)
	}
	if p.runningPID() != 0 {
		return fmt.Errorf("stop %s: process %d survives SIGKILL", p.name, p.record.PID)
	}
	if p.reaped != nil {
		<-p.reaped
	}
	p.record.PID, p.record.Identity, p.reaped = 0, "", nil
	return nil
}

func (p *Process) waitGone(limit time.Duration) {
	deadline := time.Now().Add(limit)
	for p.runningPID() != 0 && time.Now().Before(deadline) {
		time.Sleep(pollInterval / 2)
	}
}
