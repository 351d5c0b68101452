// SPDX-License-Identifier: Apache-2.0

package live_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/overview"
	. "github.com/evenkeel/evenkeel/internal/plugin/live"
	"github.com/evenkeel/evenkeel/internal/plugin/screen"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// suite is what virtual time wants to know; specs run while TestLive does.
var suite *testing.T

func TestLive(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Live")
}

// terminal takes what is written, and counts the screens.
type terminal struct {
	mu     sync.Mutex
	text   bytes.Buffer
	frames []time.Time
	broken error
}

func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken != nil {
		return 0, t.broken
	}
	if bytes.HasPrefix(p, []byte("\x1b[H")) {
		t.frames = append(t.frames, time.Now())
	}
	return t.text.Write(p)
}

func (t *terminal) written() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// drawn is how many screens were.
func (t *terminal) drawn() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.frames)
}

// visit is a user at a terminal that shows the page.
type visit struct {
	*terminal
	view    *View
	keys    *io.PipeWriter
	changed chan struct{}
	looks   int
	size    [2]int
	ended   chan error
}

// visited runs a view in virtual time; what it shows differs at each look.
func visited(body func(v *visit, cancel func())) {
	GinkgoHelper()
	storm.Bubble(suite, func() {
		in, keys := io.Pipe()
		ctx, cancel := context.WithCancel(context.Background())
		v := &visit{terminal: &terminal{}, keys: keys, changed: make(chan struct{}, 1), size: [2]int{80, 24}, ended: make(chan error, 1)}
		v.view = &View{
			Look: func() overview.Overview {
				v.mu.Lock()
				defer v.mu.Unlock()
				v.looks++
				return overview.Overview{At: time.Unix(int64(v.looks), 0), Pools: pools(v.looks)}
			},
			Changed: v.changed, Keys: in, Out: v.terminal, Clock: clock.RealClock{},
			Size: func() (int, int) {
				v.mu.Lock()
				defer v.mu.Unlock()
				return v.size[0], v.size[1]
			},
		}
		go func() { v.ended <- v.view.Run(ctx) }()
		synctest.Wait()
		body(v, cancel)
		cancel()
		_ = keys.Close()
		synctest.Wait()
	})
}

func pools(n int) []overview.Pool {
	var all []overview.Pool
	for i := range n {
		all = append(all, overview.Pool{Namespace: "default", Name: fmt.Sprint("pool-", i), Zones: []overview.Zone{{Name: "z"}}})
	}
	return all
}

// looked is how often an overview was made.
func (v *visit) looked() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.looks
}

func (v *visit) resize(columns, lines int) {
	v.mu.Lock()
	v.size = [2]int{columns, lines}
	v.mu.Unlock()
	time.Sleep(time.Second)
}

func (v *visit) press(key string) {
	GinkgoHelper()
	_, err := v.keys.Write([]byte(key))
	Expect(err).NotTo(HaveOccurred())
	synctest.Wait()
}

var _ = Describe("A view", func() {
	for _, key := range []string{"q", "\x03", "\x1b", "jq", "\x1b[B\x03"} {
		It(fmt.Sprintf("ends with %q and leaves the terminal as it was", key), func() {
			visited(func(v *visit, _ func()) {
				v.press(key)
				Expect(v.ended).To(Receive(BeNil()))
				Expect(v.written()).To(HavePrefix("\x1b[?1049h\x1b[?25l"))
				Expect(v.written()).To(HaveSuffix("\x1b[?25h\x1b[?1049l"))
			})
		})
	}

	It("ends when it is told to, and leaves the terminal as it was", func() {
		visited(func(v *visit, cancel func()) {
			cancel()
			synctest.Wait()
			Expect(v.ended).To(Receive(BeNil()))
			Expect(v.written()).To(HaveSuffix("\x1b[?25h\x1b[?1049l"))
		})
	})

	It("reports that the terminal was closed", func() {
		visited(func(v *visit, _ func()) {
			v.mu.Lock()
			v.broken = errors.New("gone")
			v.mu.Unlock()
			time.Sleep(time.Minute)
			Expect(v.ended).To(Receive(MatchError(ContainSubstring("write to the terminal: gone"))))
		})
	})

	It("draws changes, twice a second at most", func() {
		visited(func(v *visit, _ func()) {
			began := v.drawn()
			for range 200 {
				select {
				case v.changed <- struct{}{}:
				default:
				}
				time.Sleep(50 * time.Millisecond)
			}
			Expect(v.drawn()-began).To(And(BeNumerically(">=", 15), BeNumerically("<=", 20)), "in ten seconds")
		})
	})

	It("draws now and then though nothing has changed", func() {
		visited(func(v *visit, _ func()) {
			began := v.looked()
			time.Sleep(time.Minute + time.Second) // not at the very instant of a look
			Expect(v.looked() - began).To(Equal(12))
		})
	})

	It("draws anew when the screen has another size", func() {
		visited(func(v *visit, _ func()) {
			v.resize(100, 5)
			Expect(v.written()).To(ContainSubstring("1-4 of 9"))
		})
	})

	It("scrolls as far as there is something to see", func() {
		visited(func(v *visit, _ func()) {
			v.resize(80, 6)
			for _, step := range []struct{ key, foot string }{
				{"j", "2-6 of 9"}, {"j", "3-7 of 9"}, {"k", "2-6 of 9"}, {"G", "5-9 of 9"}, {"j", "5-9 of 9"}, {"g", "1-5 of 9"},
				{"k", "1-5 of 9"}, {" ", "5-9 of 9"}, {"\x1b[6~", "5-9 of 9"}, {"b", "1-5 of 9"}, {"\x1b[B", "2-6 of 9"}, {"\x1b[A", "1-5 of 9"},
				{"jj", "3-7 of 9"}, {"\x1b[A\x1b[A", "1-5 of 9"}, {"\x1b[6~kk", "3-7 of 9"},
			} {
				v.press(step.key)
				last := v.written()[strings.LastIndex(v.written(), "\x1b[H"):]
				Expect(last).To(ContainSubstring(step.foot), "%q", step.key)
			}
		})
	})
})

var escapes = regexp.MustCompile("\x1b\\[[0-9]*[A-Za-z]")

var _ = DescribeTable("A frame fills the screen exactly",
	func(columns, lines, offset int) {
		frame, at := Frame(overview.Overview{Pools: pools(9), Troubles: []overview.Trouble{{Object: "a", What: "b", Do: "c"}}}, screen.Style{Width: columns}, columns, lines, offset)
		rows := strings.Split(escapes.ReplaceAllString(frame, ""), "\r\n")
		Expect(rows).To(HaveLen(lines))
		for _, row := range rows {
			Expect(len([]rune(row))).To(BeNumerically("<=", columns))
		}
		Expect(rows[lines-1]).To(HavePrefix("1 wrong  q quit"))
		Expect(at).To(BeNumerically(">=", 0))
		Expect(at).To(BeNumerically("<=", max(0, offset)))
	},
	Entry("small", 80, 24, 0), Entry("large", 200, 50, 0), Entry("scrolled", 80, 24, 5), Entry("scrolled too far", 80, 24, 1000),
	Entry("scrolled too far up", 80, 24, -5), Entry("narrow", 60, 5, 0),
)

var _ = It("Nothing is cleared after a line that is as wide as the screen, which would lose its last character", func() {
	full := overview.Trouble{Object: "pod/default/a", What: strings.Repeat("x", 200), Do: "look"}
	frame, _ := Frame(overview.Overview{Troubles: []overview.Trouble{full}}, screen.Style{Width: 80}, 80, 24, 0)
	widest := 0
	for _, row := range strings.Split(frame, "\r\n") {
		widest = max(widest, len([]rune(escapes.ReplaceAllString(row, ""))))
		cleared := max(strings.LastIndex(row, "\x1b[K"), strings.LastIndex(row, "\x1b[J"))
		Expect(len([]rune(escapes.ReplaceAllString(row[:max(0, cleared)], "")))).To(BeNumerically("<", 80), "%q", row)
	}
	Expect(widest).To(Equal(80))
})

var _ = It("A frame shows in its last line what is not up to date, however long the content is", func() {
	v := overview.Overview{Pools: pools(99), Missing: []string{"nodes: not up to date since 12:00:05 UTC: 拒绝", "pods: no rights to list them"}}
	frame, _ := Frame(v, screen.Style{Width: 120}, 120, 10, 0)
	rows := strings.Split(escapes.ReplaceAllString(frame, ""), "\r\n")
	Expect(rows[9]).To(ContainSubstring("nodes: not up to date since 12:00:05 UTC: 拒绝"))
	frame, _ = Frame(v, screen.Style{Width: 70}, 70, 10, 0)
	rows = strings.Split(escapes.ReplaceAllString(frame, ""), "\r\n")
	Expect(rows[9]).To(HaveSuffix("nodes: not up to da…"))
})

var _ = It("A screen that is too small shows that", func() {
	frame, _ := Frame(overview.Overview{}, screen.Style{}, 20, 2, 0)
	Expect(frame).To(ContainSubstring("needs 60x3"))
})
