// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
)

// ServeConnect serves on a socket the requests CONNECT with which the API server reaches kubelets, until ctx ends.
// It forwards what is for no machine as it is.
func (f *Fleet) ServeConnect(ctx context.Context, path string) error {
	l, err := listenUnix(path)
	if err != nil {
		return fmt.Errorf("listen for the API server: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go f.connect(c)
		}
	}()
	return nil
}

func (f *Fleet) connect(from net.Conn) {
	defer from.Close()
	in := bufio.NewReader(from)
	request, err := http.ReadRequest(in)
	if err != nil || request.Method != http.MethodConnect {
		fmt.Fprint(from, "HTTP/1.1 405 Method Not Allowed\r\n\r\n")
		return
	}
	to, err := f.dial(request.Host)
	if err != nil {
		fmt.Fprint(from, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		return
	}
	defer to.Close()
	fmt.Fprint(from, "HTTP/1.1 200 OK\r\n\r\n")
	join(buffered{from, in}, to)
}

func (f *Fleet) dial(address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, m := range f.running {
		if (host == name || host == m.spec.Address) && port == strconv.Itoa(kubeletPort) {
			return m.dialKubelet()
		}
	}
	return net.Dial("tcp", address)
}

// buffered is a connection of which something has been read.
type buffered struct {
	net.Conn
	in io.Reader
}

func (b buffered) Read(p []byte) (int, error) { return b.in.Read(p) }
