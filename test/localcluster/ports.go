// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The listeners. Each has a port of its own, the same at every start of a cluster unless another
// process took it.
const (
	etcdClientPort = "etcd"
	etcdPeerPort   = "etcd-peer"
)

var listeners = []string{etcdClientPort, etcdPeerPort, APIServer, ControllerManager, Scheduler, Kwok}

// Ports are below the range that the kernel uses for outgoing connections, so that a restarted
// component finds its port free.
const (
	firstPort = 20000
	lastPort  = 32000
)

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// choosePorts completes the ports of the cluster. Ports that are free are kept. Clusters of this
// repository never share ports, running or not.
func choosePorts(o Options, s *state, listeners ...string) error {
	lock, err := waitLock(context.Background(), filepath.Join(o.clustersDir(), ".ports.lock"), func() {})
	if err != nil {
		return err
	}
	defer lock.release()
	if s.Ports == nil {
		s.Ports = map[string]int{}
	}
	taken := othersPorts(o)
	for listener, port := range s.Ports {
		if !slices.Contains(listeners, listener) {
			taken = append(taken, port)
		}
	}
	for _, listener := range listeners {
		port := s.Ports[listener]
		if slices.Contains(taken, port) || !isFree(port) {
			if port, err = freePort(taken); err != nil {
				return err
			}
		}
		s.Ports[listener] = port
		taken = append(taken, port)
	}
	return s.save(o.clusterDir())
}

// Port returns a port for a program of Run: always the same one for a name, unless no process of
// that name runs and another one took the port. The name may have a suffix after a slash, for an
// additional port.
func (c *Cluster) Port(name string) (int, error) {
	program, _, _ := strings.Cut(name, "/")
	if p := c.Process(program); p != nil && p.Running() && c.portOf(name) != 0 {
		return c.portOf(name), nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := choosePorts(c.options, c.state, name); err != nil {
		return 0, err
	}
	return c.state.Ports[name], nil
}

func (c *Cluster) portOf(listener string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Ports[listener]
}

func othersPorts(o Options) []int {
	var ports []int
	dirs, _ := filepath.Glob(filepath.Join(o.clustersDir(), "*"))
	for _, dir := range dirs {
		if dir == o.clusterDir() {
			continue
		}
		if other, err := loadState(dir); err == nil {
			for _, port := range other.Ports {
				ports = append(ports, port)
			}
		}
	}
	return ports
}

func freePort(taken []int) (int, error) {
	for range lastPort - firstPort {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if !slices.Contains(taken, port) && isFree(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("choose port: %w", errors.New("none is free between 20000 and 32000"))
}

func isFree(port int) bool {
	if port == 0 {
		return false
	}
	listener, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	_ = listener.Close()
	return true
}
