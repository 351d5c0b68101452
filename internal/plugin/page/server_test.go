// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/overview"
)

// patience is how long a spec that talks over a socket may take.
const patience = 20 * time.Second

// served is a server that runs, and what it shows.
type served struct {
	// link is what a person opens; address is the part of it that everybody on this machine can find out.
	link, address string
	// cookie is the name of the cookie, pass its value.
	cookie, pass string
	shown        chan overview.Overview
	changed      chan struct{}
	stop         func()
	ended        chan error
}

// serve runs a server that shows one overview after the other.
func serve(first overview.Overview) *served {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	listener, err := Listen(ctx, 0)
	Expect(err).NotTo(HaveOccurred())
	s := &served{
		address: "http://" + listener.Addr().String(), shown: make(chan overview.Overview, 1), changed: make(chan struct{}), stop: cancel,
		ended: make(chan error, 1),
	}
	last := first
	source := Source{Changed: s.changed, Read: func() overview.Overview {
		select {
		case last = <-s.shown:
		default:
		}
		return last
	}}
	server := New("test", source, clock.RealClock{}, time.Millisecond)
	s.link, s.cookie, s.pass = server.Address(listener), server.key.cookie(), string(server.key)
	go func() { s.ended <- server.Serve(ctx, listener) }()
	DeferCleanup(cancel)
	return s
}

func (s *served) show(o overview.Overview) {
	s.shown <- o
	s.changed <- struct{}{}
}

func (s *served) load(ctx context.Context, path string) *http.Response {
	GinkgoHelper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.address+path, nil)
	Expect(err).NotTo(HaveOccurred())
	r.AddCookie(&http.Cookie{Name: s.cookie, Value: s.pass})
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(answer.Body.Close)
	return answer
}

func (s *served) read(ctx context.Context, path string) (int, string) {
	GinkgoHelper()
	answer := s.load(ctx, path)
	text, err := io.ReadAll(answer.Body)
	Expect(err).NotTo(HaveOccurred())
	return answer.StatusCode, string(text)
}

// next reads one event of a stream: one line of data, one empty line.
func next(stream *bufio.Reader) update {
	GinkgoHelper()
	line, err := stream.ReadString('\n')
	Expect(err).NotTo(HaveOccurred())
	data, found := strings.CutPrefix(line, "data: ")
	Expect(found).To(BeTrue(), line)
	Expect(stream.ReadString('\n')).To(Equal("\n"))
	var u update
	Expect(json.Unmarshal([]byte(data), &u)).To(Succeed())
	return u
}

var _ = Describe("The server", func() {
	It("sends a whole page, with the address of its updates", func(ctx context.Context) {
		s := serve(world(noon, 3, 2))
		code, text := s.read(ctx, "/")
		Expect(code).To(Equal(http.StatusOK))
		Expect(text).To(And(HavePrefix("<!doctype html>"), ContainSubstring(`data-stream="/events"`), ContainSubstring(`id="pool/garden/pool"`)))
		code, text = s.read(ctx, "/zone/garden/pool-z1")
		Expect(code).To(Equal(http.StatusOK))
		Expect(text).To(And(ContainSubstring(`data-stream="/events?name=pool-z1&amp;namespace=garden"`), ContainSubstring(`id="machine/ma"`)))
	}, NodeTimeout(patience))

	It("answers 404 for objects and paths that do not exist", func(ctx context.Context) {
		s := serve(world(noon, 3, 2))
		code, text := s.read(ctx, "/zone/garden/"+strings.Repeat("%3Cb%3E", 2))
		Expect(code).To(Equal(http.StatusNotFound))
		Expect(text).To(And(ContainSubstring("There is no MachineDeployment &lt;b&gt;"), Not(ContainSubstring("<b><b>"))))
		for _, path := range []string{"/elsewhere", "/assets/../doc.go", "/assets/none.js"} {
			code, _ = s.read(ctx, path)
			Expect(code).To(Equal(http.StatusNotFound), path)
		}
	}, NodeTimeout(patience))

	It("sends styles, script and icon as what they are", func(ctx context.Context) {
		s := serve(world(noon, 1, 0))
		for name, kind := range map[string]string{"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"} {
			answer := s.load(ctx, "/assets/"+name)
			Expect(answer.StatusCode).To(Equal(http.StatusOK))
			Expect(answer.Header.Get("Content-Type")).To(HavePrefix(kind))
		}
	}, NodeTimeout(patience))

	It("streams everything first, then what differs", func(ctx context.Context) {
		s := serve(world(noon, 3, 2))
		stream := bufio.NewReader(s.load(ctx, "/events").Body)
		first := next(stream)
		Expect(first.Fragments).To(HaveLen(len(first.Order)))
		o := world(noon, 3, 2)
		o.Troubles = []overview.Trouble{{What: "It burns"}}
		s.show(o)
		second := next(stream)
		Expect(second.Order).To(Equal(first.Order))
		Expect(second.Fragments).To(And(HaveLen(2), HaveKey("totals"), HaveKey("troubles")))
		Expect(string(second.Fragments["troubles"])).To(ContainSubstring("It burns"))
	}, NodeTimeout(patience))

	It("streams which objects were added and which were removed", func(ctx context.Context) {
		s := serve(world(noon, 3, 2))
		stream := bufio.NewReader(s.load(ctx, "/events").Body)
		Expect(next(stream).Order).To(ContainElement("pool/garden/pool"))
		other := world(noon, 1, 0)
		other.Pools[0].Name = "other"
		s.show(other)
		u := next(stream)
		Expect(u.Order).To(And(ContainElement("pool/garden/other"), Not(ContainElement("pool/garden/pool"))))
		Expect(u.Fragments).To(HaveKey("pool/garden/other"))
	}, NodeTimeout(patience))

	It("listens on this machine alone", func(ctx context.Context) {
		listener, err := Listen(ctx, 0)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(listener.Close)
		Expect(listener.Addr().(*net.TCPAddr).IP.String()).To(Equal("127.0.0.1"))
		_, err = Listen(ctx, listener.Addr().(*net.TCPAddr).Port)
		Expect(err).To(MatchError(ContainSubstring("listen for browsers")), "the port is taken")
	}, NodeTimeout(patience))

	It("ends with all that it started, streams that are open included (law 7)", func(ctx context.Context) {
		before := gleak.Goroutines()
		s := serve(world(noon, 3, 2))
		stream := s.load(ctx, "/events")
		reader := bufio.NewReader(stream.Body)
		next(reader)
		begin := time.Now()
		s.stop()
		Expect(<-s.ended).To(Succeed())
		Expect(time.Since(begin)).To(BeNumerically("<", drainTimeout), "it did not wait until its patience ended")
		_, err := io.ReadAll(reader)
		Expect(err).NotTo(HaveOccurred(), "the stream was ended, not cut off")
		Eventually(gleak.Goroutines).WithContext(ctx).ShouldNot(gleak.HaveLeaked(before))
	}, NodeTimeout(patience))
})
