// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Arguments with which the program that boots machines runs as a part of one. Init and Serve are followed by the
// machine's folder, and Janitor by a cgroup.
const (
	Init    = "init"
	Serve   = "serve"
	Janitor = "janitor"
)

// controlFile is the descriptor of the pipe from the process that has started the machine.
const controlFile = 3

// RunInit is the init of the machine in a folder: it prepares what is to be the machine's own, starts its
// services, and collects processes that have lost their parents. It returns once the process that has started
// it ends, and with it ends everything in the machine.
func RunInit(dir string) error {
	control := os.NewFile(controlFile, "control")
	if _, err := io.ReadFull(control, make([]byte, 1)); err != nil {
		return fmt.Errorf("wait for the cgroup: %w", err)
	}
	unix.CloseOnExec(controlFile)
	s, err := readSpec(dir)
	if err != nil {
		return err
	}
	for _, prepare := range []func() error{s.mount, s.replaceSysctls, s.setUpNetwork} {
		if err := prepare(); err != nil {
			return fmt.Errorf("prepare machine %s: %w", s.Name, err)
		}
	}
	services, err := os.StartProcess("/proc/self/exe", []string{os.Args[0], Serve, ownDir}, &os.ProcAttr{Env: os.Environ(), Files: []*os.File{nil, os.Stdout, os.Stderr}})
	if err != nil {
		return fmt.Errorf("start services of machine %s: %w", s.Name, err)
	}
	ended := make(chan error, 2)
	go func() {
		for {
			pid, err := unix.Wait4(-1, nil, 0, nil)
			if pid == services.Pid || errors.Is(err, unix.ECHILD) {
				ended <- fmt.Errorf("the services of machine %s have ended", s.Name)
				return
			}
		}
	}()
	go func() {
		_, _ = io.Copy(io.Discard, control)
		ended <- nil
	}()
	return <-ended
}

// mount gives the machine its own view of this computer.
func (s *spec) mount() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("detach mounts: %w", err)
	}
	run := s.file("run")
	for _, m := range []struct {
		from, to string
	}{
		{s.Dir, filepath.Join(run, filepath.Base(ownDir))},
		{s.Programs, filepath.Join(run, filepath.Base(programsDir))},
		{run, "/run"},
		{filepath.Join(ownDir, "var"), "/var"},
	} {
		from, flags, kind, data := m.from, uintptr(unix.MS_BIND|unix.MS_REC), "", ""
		if m.to == "/var" && s.Disk > 0 {
			from, flags, kind, data = "disk", 0, "tmpfs", fmt.Sprintf("size=%d,mode=755", s.Disk)
		}
		if err := os.MkdirAll(m.to, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(from, m.to, kind, flags, data); err != nil {
			return fmt.Errorf("mount %s on %s: %w", from, m.to, err)
		}
	}
	for _, dir := range []string{"/run", "/var"} { // kubelets and containerd share mounts with containers that ask for it
		if err := unix.Mount("", dir, "", unix.MS_SHARED, ""); err != nil {
			return fmt.Errorf("share %s: %w", dir, err)
		}
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	for _, dir := range []string{"/var/lib/kubelet", "/var/log/pods", "/var/lib/cni", "/var/tmp", "/run/lock"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return unix.Sethostname([]byte(s.Name))
}

// sysctls are set by kubelets, and are the same in all namespaces.
var sysctls = []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops"}

// replaceSysctls gives the machine files in their place.
func (s *spec) replaceSysctls() error {
	for _, name := range sysctls {
		value, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if err != nil {
			return err
		}
		own := filepath.Join("/run", filepath.Base(name))
		if err := os.WriteFile(own, value, 0o644); err != nil {
			return err
		}
		if err := unix.Mount(own, filepath.Join("/proc/sys", name), "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount sysctl %s: %w", name, err)
		}
	}
	return nil
}
