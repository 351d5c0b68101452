// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"net"
	"net/url"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// link is the way from the hub to a member. When it is cut, connections stay open and nothing comes through.
type link struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	whole chan struct{} // closed while the link is whole
	conns []net.Conn
}

// newLink listens on a port of its own for the server at that URL.
func newLink(server string) *link {
	GinkgoHelper()
	at, err := url.Parse(server)
	Expect(err).NotTo(HaveOccurred())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	l := &link{listener: listener, target: at.Host, whole: make(chan struct{})}
	close(l.whole)
	go l.accept()
	DeferCleanup(l.close)
	return l
}

func (l *link) url() string { return "https://" + l.listener.Addr().String() }

func (l *link) accept() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		go l.join(conn)
	}
}

func (l *link) join(in net.Conn) {
	out, err := net.Dial("tcp", l.target)
	if err != nil {
		_ = in.Close()
		return
	}
	l.mu.Lock()
	l.conns = append(l.conns, in, out)
	l.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { l.carry(out, in) })
	both.Go(func() { l.carry(in, out) })
	both.Wait()
}

// carry copies until one side ends, and keeps back what comes while the link is cut.
func (l *link) carry(to, from net.Conn) {
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

func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.whole = make(chan struct{})
}

// mend lets through what was kept back.
func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.whole:
	default:
		close(l.whole)
	}
}

func (l *link) close() {
	l.mend()
	_ = l.listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		_ = conn.Close()
	}
}
