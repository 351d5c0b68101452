// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
	"os"
	"sync"
)

// Link is a separate connection to a server that can be cut. While it is cut, connections stay open
// and nothing passes, so its client sees a silent server that all other clients still reach.
type Link struct {
	listener net.Listener
	server   string

	mu    sync.Mutex
	whole chan struct{} // closed while the link is whole
	conns []net.Conn
}

// NewLink listens on a port of its own, and forwards to the server at a URL.
func NewLink(server string) (*Link, error) {
	at, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("link to %s: %w", server, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("link to %s: %w", server, err)
	}
	l := &Link{listener: listener, server: at.Host, whole: make(chan struct{})}
	close(l.whole)
	go l.accept()
	return l, nil
}

// Kubeconfig returns a copy of a kubeconfig that goes through the link.
func (l *Link) Kubeconfig(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	return bytes.ReplaceAll(text, []byte(l.server), []byte(l.listener.Addr().String())), err
}

// Cut holds back all data from now on.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.whole:
		l.whole = make(chan struct{})
	default:
	}
}

// Mend forwards what was held back, and all further data.
func (l *Link) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.whole:
	default:
		close(l.whole)
	}
}

// Close ends the link and all connections.
func (l *Link) Close() {
	l.Mend()
	_ = l.listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		_ = conn.Close()
	}
}

func (l *Link) accept() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		go l.connect(conn)
	}
}

func (l *Link) connect(in net.Conn) {
	out, err := net.Dial("tcp", l.server)
	if err != nil {
		_ = in.Close()
		return
	}
	l.mu.Lock()
	l.conns = append(l.conns, in, out)
	l.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { l.forward(out, in) })
	both.Go(func() { l.forward(in, out) })
	both.Wait()
}

// forward copies until one side ends, and holds data back while the link is cut.
func (l *Link) forward(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		l.mu.Lock()
		whole := l.whole
		l.mu.Unlock()
		<-whole
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
