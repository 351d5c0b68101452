// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// echo answers each line with itself, and returns the port of it.
func echo() int {
	GinkgoHelper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(l.Close)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// ask sends a line, and returns what comes back.
func ask(c net.Conn, line string) (string, error) {
	if _, err := fmt.Fprintln(c, line); err != nil {
		return "", err
	}
	answer, err := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(answer), err
}

var _ = Describe("A relay", func() {
	var dir string

	BeforeEach(func() {
		dir = filepath.Join(GinkgoT().TempDir(), strings.Repeat("long/", 30)) // longer than the kernel lets a socket's path be
		Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
	})

	It("leads from a socket to a port, is cut, and leads there again", func() {
		r, err := relay(dir, map[string]dialer{"it.sock": dialPort(echo())})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(r.close)
		c, err := dialUnix(filepath.Join(dir, "it.sock"))
		Expect(err).NotTo(HaveOccurred())
		Expect(ask(c, "hello")).To(Equal("hello"))
		r.cut(true)
		_, err = ask(c, "hello")
		Expect(err).To(HaveOccurred())
		other, err := dialUnix(filepath.Join(dir, "it.sock"))
		Expect(err).NotTo(HaveOccurred())
		_, err = ask(other, "hello")
		Expect(err).To(HaveOccurred())
		r.cut(false)
		c, err = dialUnix(filepath.Join(dir, "it.sock"))
		Expect(err).NotTo(HaveOccurred())
		Expect(ask(c, "again")).To(Equal("again"))
	})

	It("ends a connection where there is nothing", func() {
		r, err := relay(dir, map[string]dialer{"it.sock": func() (net.Conn, error) { return nil, errors.New("nothing") }})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(r.close)
		c, err := dialUnix(filepath.Join(dir, "it.sock"))
		Expect(err).NotTo(HaveOccurred())
		_, err = ask(c, "hello")
		Expect(err).To(HaveOccurred())
	})

	It("replaces the socket of an earlier process", func() {
		for range 2 {
			r, err := relay(dir, map[string]dialer{"it.sock": dialPort(echo())})
			Expect(err).NotTo(HaveOccurred())
			r.close()
		}
	})

	It("connects the API server to kubelets by their names and addresses, and to all else as it is", func() {
		f := New(Options{})
		m := &machine{spec: &spec{Name: "a", Dir: dir, Address: "10.200.0.1"}, relays: &relays{open: map[net.Conn]bool{}}}
		f.running["a"] = m
		kubelet, err := relay(dir, map[string]dialer{kubeletSocket: dialPort(echo())})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(kubelet.close)
		ctx, cancel := context.WithCancel(context.Background())
		DeferCleanup(cancel)
		socket := filepath.Join(dir, "connect.sock")
		Expect(f.ServeConnect(ctx, socket)).To(Succeed())
		through := func(address string) (string, error) {
			c, err := dialUnix(socket)
			Expect(err).NotTo(HaveOccurred())
			defer c.Close()
			fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", address)
			in := bufio.NewReader(c)
			status, err := in.ReadString('\n')
			if err != nil || !strings.Contains(status, "200") {
				return strings.TrimSpace(status), err
			}
			_, _ = in.ReadString('\n')
			fmt.Fprintln(c, "hello")
			answer, err := in.ReadString('\n')
			return strings.TrimSpace(answer), err
		}
		Expect(through("a:10250")).To(Equal("hello"))
		Expect(through("10.200.0.1:10250")).To(Equal("hello"))
		Expect(through(loopback(echo()))).To(Equal("hello"))
		m.relays.cut(true)
		Expect(through("a:10250")).To(ContainSubstring("502"))
		c, err := dialUnix(socket)
		Expect(err).NotTo(HaveOccurred())
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		Expect(bufio.NewReader(c).ReadString('\n')).To(ContainSubstring("405"))
	})
})
