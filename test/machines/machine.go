// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// machine is one that runs.
type machine struct {
	spec    *spec
	init    *exec.Cmd
	control *os.File // the init ends once this is closed
	relays  *relays
	ended   chan struct{}
}

// boot starts a machine. Its Node registers once its kubelet runs.
func boot(s *spec, kubeconfig []byte, targets map[string]dialer) (*machine, error) {
	if err := s.writeFiles(kubeconfig); err != nil {
		return nil, fmt.Errorf("prepare machine %s: %w", s.Name, err)
	}
	m := &machine{spec: s, ended: make(chan struct{})}
	var err error
	if m.relays, err = relay(s.Dir, targets); err != nil {
		return nil, fmt.Errorf("relay for machine %s: %w", s.Name, err)
	}
	if err := m.start(); err != nil {
		m.relays.close()
		return nil, fmt.Errorf("start machine %s: %w", s.Name, err)
	}
	go func() {
		defer close(m.ended)
		_ = m.init.Wait()
	}()
	return m, nil
}

// start begins the init, and lets it go on once it is in its cgroup.
func (m *machine) start() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	log, err := os.OpenFile(m.spec.file("machine.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return errors.Join(err, w.Close())
	}
	defer log.Close()
	m.init = exec.Command("/proc/self/exe", Init, m.spec.Dir)
	m.init.Stdout, m.init.Stderr, m.init.ExtraFiles = log, log, []*os.File{r}
	m.init.Env = []string{"PATH=" + programsDir + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	m.init.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: namespaces}
	if err := m.init.Start(); err != nil {
		return errors.Join(err, w.Close())
	}
	m.control = w
	err = joinCgroup(m.spec.Cgroup, m.init.Process.Pid)
	if err == nil {
		_, err = w.Write([]byte{1})
	}
	if err != nil {
		_, _ = m.init.Process.Kill(), m.init.Wait()
		return errors.Join(err, w.Close())
	}
	return nil
}

const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC

// end ends a machine as a power failure does. Its disk stays.
func (m *machine) end() error {
	_ = m.control.Close()
	_ = m.init.Process.Kill()
	<-m.ended
	m.relays.close()
	return removeCgroup(m.spec.Cgroup)
}

// isRunning reports whether the init has not ended.
func (m *machine) isRunning() bool {
	select {
	case <-m.ended:
		return false
	default:
		return true
	}
}

// suffer makes a machine cut off from everything else, or halts its container runtime, or ends that.
func (m *machine) suffer(cut, halted bool) error {
	m.relays.cut(cut)
	if halted {
		return os.WriteFile(m.spec.file(haltedFile), nil, 0o600)
	}
	if err := os.Remove(m.spec.file(haltedFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// dialKubelet connects to its kubelet.
func (m *machine) dialKubelet() (net.Conn, error) {
	if m.relays.isCut() {
		return nil, fmt.Errorf("machine %s is cut off", m.spec.Name)
	}
	return dialUnix(m.spec.file(kubeletSocket))
}
