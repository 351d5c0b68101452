// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/overview"
)

var _ = Describe("The guard", func() {
	answer := func(method, host string, header map[string]string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "/", nil)
		r.Host = host
		for name, value := range header {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		guarded(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })).ServeHTTP(w, r)
		return w
	}
	const here = "127.0.0.1:8001"

	DescribeTable("lets in",
		func(host string, header map[string]string) {
			Expect(answer(http.MethodGet, host, header).Code).To(Equal(http.StatusTeapot))
		},
		Entry("this machine by its address", here, nil),
		Entry("this machine by its name", "localhost:8001", nil),
		Entry("this machine on the usual port", "localhost", nil),
		Entry("this machine in the other protocol", "[::1]:8001", nil),
		Entry("this page", here, map[string]string{"Origin": "http://127.0.0.1:8001", "Sec-Fetch-Site": "same-origin"}),
		Entry("who typed the address", here, map[string]string{"Sec-Fetch-Site": "none"}),
		Entry("who followed a link", here, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}),
	)

	DescribeTable("keeps out",
		func(host string, header map[string]string) {
			Expect(answer(http.MethodGet, host, header).Code).To(Equal(http.StatusForbidden))
		},
		Entry("a name that was pointed here", "attacker.example:8001", nil),
		Entry("a name that begins like this machine's", "localhost.attacker.example", nil),
		Entry("no name", "", nil),
		Entry("another machine's address", "10.0.0.1:8001", nil),
		Entry("another origin", here, map[string]string{"Origin": "https://attacker.example"}),
		Entry("another port of this machine", here, map[string]string{"Origin": "http://127.0.0.1:3000"}),
		Entry("an origin that hides", here, map[string]string{"Origin": "null"}),
		Entry("a script or picture in another page", here, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}),
		Entry("a frame in another page", here, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}),
		Entry("a page of another port", here, map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}),
	)

	It("answers nothing but GET", func() {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodHead, http.MethodConnect} {
			w := answer(method, here, nil)
			Expect(w.Code).To(Equal(http.StatusMethodNotAllowed), method)
			Expect(w.Header().Get("Allow")).To(Equal("GET"))
		}
	})

	It("sends a policy that allows nothing but this server, also to those it keeps out", func() {
		for _, host := range []string{here, "attacker.example"} {
			header := answer(http.MethodGet, host, nil).Header()
			Expect(header.Get("Content-Security-Policy")).To(And(HavePrefix("default-src 'none'; "), Not(ContainSubstring("unsafe")), Not(ContainSubstring("http"))))
			Expect(header.Get("Cross-Origin-Resource-Policy")).To(Equal("same-origin"))
			Expect(header.Get("X-Content-Type-Options")).To(Equal("nosniff"))
			Expect(header.Get("Cache-Control")).To(Equal("no-store"))
		}
	})
})

// without asks for a path as another user of this machine does: who knows the port and nothing else.
func (s *served) without(ctx context.Context, path string, header map[string]string) int {
	GinkgoHelper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.address+path, nil)
	Expect(err).NotTo(HaveOccurred())
	for name, value := range header {
		r.Header.Set(name, value)
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	Expect(err).NotTo(HaveOccurred())
	Expect(answer.Body.Close()).To(Succeed())
	return answer.StatusCode
}

// cable is a listener with one connection, which keeps deadlines in virtual time.
type cable struct {
	connection chan net.Conn
	closed     chan struct{}
	close      func()
}

func newCable(connection net.Conn) *cable {
	c := &cable{connection: make(chan net.Conn, 1), closed: make(chan struct{})}
	c.connection <- connection
	c.close = sync.OnceFunc(func() { close(c.closed) })
	return c
}

func (c *cable) Accept() (net.Conn, error) {
	select {
	case connection := <-c.connection:
		return connection, nil
	case <-c.closed:
		return nil, net.ErrClosed
	}
}

func (c *cable) Close() error   { c.close(); return nil }
func (c *cable) Addr() net.Addr { return &net.TCPAddr{} }

var _ = Describe("The key", func() {
	It("opens everything, and without it nothing opens (law 8)", func(ctx context.Context) {
		s := serve(world(noon, 3, 2))
		key := strings.TrimPrefix(s.link, s.address+"/?key=")
		Expect(key).To(MatchRegexp(`^[A-Za-z0-9_-]{43}$`), "256 bits")
		for _, path := range []string{"/", "/?key=", "/?key=" + key[1:], "/?key=" + strings.Repeat("A", 43), "/zone/garden/pool-z1", "/events", "/events?key=" + key, "/assets/page.js"} {
			Expect(s.without(ctx, path, nil)).To(Equal(http.StatusForbidden), path)
		}
		_, other, _ := strings.Cut(serve(world(noon, 1, 0)).link, "key=")
		Expect(s.without(ctx, "/", map[string]string{"Cookie": s.cookie + "=" + other})).To(Equal(http.StatusForbidden), "another page's")
		for _, path := range []string{"/", "/zone/garden/pool-z1", "/assets/page.js"} {
			code, _ := s.read(ctx, path)
			Expect(code).To(Equal(http.StatusOK), path)
		}
	}, NodeTimeout(patience))

	It("leaves the address for a cookie that scripts and other sites' requests do not get", func(ctx context.Context) {
		s := serve(world(noon, 3, 2))
		jar, err := cookiejar.New(nil)
		Expect(err).NotTo(HaveOccurred())
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.link, nil)
		Expect(err).NotTo(HaveOccurred())
		answer, err := (&http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.Body.Close()).To(Succeed())
		Expect(answer.StatusCode).To(Equal(http.StatusOK))
		Expect(answer.Request.URL.String()).To(Equal(s.address+"/"), "no key in the history of the browser")
		set := answer.Request.Response.Header.Get("Set-Cookie")
		Expect(set).To(And(ContainSubstring("; HttpOnly"), ContainSubstring("; SameSite=Lax"), ContainSubstring("; Path=/"), Not(ContainSubstring("Domain"))))
		Expect(answer.Request.Response.Header.Get("Cache-Control")).To(Equal("no-store"))
		address, err := url.Parse(s.address)
		Expect(err).NotTo(HaveOccurred())
		Expect(jar.Cookies(address)).To(HaveLen(1))
	}, NodeTimeout(patience))

	It("is another one for each page, under another name: browsers do not keep cookies of different ports apart", func() {
		one, other := serve(world(noon, 1, 0)), serve(world(noon, 1, 0))
		Expect(one.cookie).NotTo(Equal(other.cookie))
		Expect(one.link).NotTo(HaveSuffix(strings.SplitAfter(other.link, "key=")[1]))
	})

	It("does not help requests for another host or from another page (law 2)", func(ctx context.Context) {
		s := serve(world(noon, 1, 0))
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.link, nil)
		Expect(err).NotTo(HaveOccurred())
		r.Host = "attacker.example"
		answer, err := http.DefaultTransport.RoundTrip(r)
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.Body.Close()).To(Succeed())
		Expect(answer.StatusCode).To(Equal(http.StatusForbidden))
		Expect(s.without(ctx, strings.TrimPrefix(s.link, s.address), map[string]string{"Origin": "https://attacker.example"})).To(Equal(http.StatusForbidden))
	}, NodeTimeout(patience))

	It("limits how long a connection may be slow or idle", func() {
		server := New("test", Source{}, nil, time.Second).server(context.Background())
		for _, limit := range []time.Duration{server.ReadHeaderTimeout, server.ReadTimeout, server.WriteTimeout, server.IdleTimeout} {
			Expect(limit).To(And(BeNumerically(">", 0), BeNumerically("<=", 2*time.Minute)))
		}
	})

	It("keeps a stream open however long nothing changes", bubble(func() {
		near, far := net.Pipe()
		listener, changed := newCable(far), make(chan struct{}, 1)
		var machines atomic.Int64
		server := New("test", Source{Changed: changed, Read: func() overview.Overview { return world(noon, int(machines.Load()), 0) }}, clock.RealClock{}, time.Millisecond)
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(ctx, listener) }()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/events", nil)
		Expect(err).NotTo(HaveOccurred())
		r.AddCookie(&http.Cookie{Name: server.key.cookie(), Value: string(server.key)})
		answer, err := (&http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return near, nil }}).RoundTrip(r)
		Expect(err).NotTo(HaveOccurred())
		stream := bufio.NewReader(answer.Body)
		Expect(next(stream).Fragments).To(HaveKey("pool/garden/pool"))
		time.AfterFunc(10*time.Minute, func() {
			machines.Store(2)
			changed <- struct{}{}
		})
		for next(stream).Fragments["pool/garden/pool"] == "" {
		}
		stop()
		Expect(<-ended).To(Succeed())
		Expect(answer.Body.Close()).To(Succeed())
	}))
})
