// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

const (
	// restartPause is how long a service stays down that has ended, and haltPeriod how often a look is taken
	// at whether it is to.
	restartPause = time.Second
	haltPeriod   = 100 * time.Millisecond
	socketPeriod = 20 * time.Millisecond
)

const containerdSocket = "/run/containerd/containerd.sock"

// RunServices runs containerd and the kubelet of the machine in a folder until ctx ends.
func RunServices(ctx context.Context, dir string) error {
	s, err := readSpec(dir)
	if err != nil {
		return err
	}
	s.Dir, s.Programs = ownDir, programsDir
	if err := s.relayInside(); err != nil {
		return fmt.Errorf("relay in machine %s: %w", s.Name, err)
	}
	var services sync.WaitGroup
	services.Go(func() {
		s.keepRunning(ctx, "containerd", s.isHalted, "--config="+s.file("containerd.toml"))
	})
	services.Go(func() {
		waitForSocket(ctx, containerdSocket)
		s.keepRunning(ctx, "kubelet", func() bool { return false }, s.kubeletFlags()...)
	})
	services.Wait()
	return nil
}

func (s *spec) isHalted() bool {
	_, err := os.Stat(s.file(haltedFile))
	return err == nil
}

// waitForSocket waits until a program listens.
func waitForSocket(ctx context.Context, path string) {
	for ctx.Err() == nil {
		if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
			_ = c.Close()
			return
		}
		time.Sleep(socketPeriod)
	}
}

// keepRunning runs a program again and again, as a machine's service manager does, except while it is halted.
func (s *spec) keepRunning(ctx context.Context, program string, halted func() bool, args ...string) {
	for ctx.Err() == nil {
		if !halted() {
			fmt.Println(time.Now().Format(time.RFC3339), program, "has ended:", s.runOnce(ctx, program, halted, args))
		}
		select {
		case <-ctx.Done():
		case <-time.After(restartPause):
		}
	}
}

// runOnce runs a program until it ends, or is halted.
func (s *spec) runOnce(ctx context.Context, program string, halted func() bool, args []string) error {
	log, err := os.OpenFile(s.file(program+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(s.Programs, program), args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		for ; ctx.Err() == nil; time.Sleep(haltPeriod) {
			if halted() {
				cancel()
			}
		}
	}()
	return cmd.Wait()
}
