// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
)

// dialer connects to where a relay leads.
type dialer func() (net.Conn, error)

func dialPort(port int) dialer {
	return func() (net.Conn, error) { return net.Dial("tcp", loopback(port)) }
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// relays forward connections from sockets of a machine's folder to addresses of this computer.
type relays struct {
	listeners []net.Listener
	mu        sync.Mutex
	open      map[net.Conn]bool
	refusing  bool
}

// relay listens on sockets of a folder, by name.
func relay(dir string, targets map[string]dialer) (*relays, error) {
	r := &relays{open: map[net.Conn]bool{}}
	for name, dial := range targets {
		l, err := listenUnix(filepath.Join(dir, name))
		if err != nil {
			r.close()
			return nil, err
		}
		r.listeners = append(r.listeners, l)
		go r.serve(l, dial)
	}
	return r, nil
}

// listenUnix listens on a socket. The kernel limits how long a path may be, so it gets one by way of the folder.
func listenUnix(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	short, done, err := shortPath(path)
	if err != nil {
		return nil, err
	}
	defer done()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // that path is not valid then
	return l, nil
}

func dialUnix(path string) (net.Conn, error) {
	short, done, err := shortPath(path)
	if err != nil {
		return nil, err
	}
	defer done()
	return net.Dial("unix", short)
}

func shortPath(path string) (short string, done func(), err error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), func() { _ = dir.Close() }, nil
}

// serve forwards each connection that a listener accepts, until it is closed.
func (r *relays) serve(l net.Listener, dial dialer) {
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer from.Close()
			to, err := dial()
			if err != nil {
				return
			}
			defer to.Close()
			if r.add(from, to) {
				join(from, to)
			}
			r.remove(from, to)
		}()
	}
}

// join copies both ways until both ends are done.
func join(a, b net.Conn) {
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			if c, ok := way[0].(interface{ CloseWrite() error }); ok {
				_ = c.CloseWrite()
			}
		})
	}
	both.Wait()
}

// add notes connections, so that they can be closed. It is false if they are to be closed at once.
func (r *relays) add(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		r.open[c] = true
	}
	return !r.refusing
}

func (r *relays) remove(conns ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		delete(r.open, c)
	}
}

// cut ends all connections and refuses others, or accepts them again.
func (r *relays) cut(off bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refusing = off; off {
		for c := range r.open {
			_ = c.Close()
		}
	}
}

func (r *relays) isCut() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refusing
}

// close ends all connections, and no more are accepted.
func (r *relays) close() {
	for _, l := range r.listeners {
		_ = l.Close()
	}
	r.cut(true)
}

// relayInside listens, inside a machine, on loopback for what its folder's sockets lead to, and on a socket for
// its kubelet.
func (s *spec) relayInside() error {
	r := &relays{open: map[net.Conn]bool{}}
	for port, socket := range map[int]string{s.APIServer: apiServerSocket, registryPort: registrySocket} {
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			return err
		}
		go r.serve(l, func() (net.Conn, error) { return dialUnix(s.file(socket)) })
	}
	l, err := listenUnix(s.file(kubeletSocket))
	if err != nil {
		return err
	}
	go r.serve(l, dialPort(kubeletPort))
	return nil
}
