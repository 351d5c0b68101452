// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/test/sim"
)

// terminal is a pseudo terminal with a user in front of it: inside is what a program has, outside are keys and the screen.
type terminal struct {
	inside, outside *os.File

	mu   sync.Mutex
	seen strings.Builder
}

func newTerminal(columns, lines uint16) *terminal {
	GinkgoHelper()
	outside, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(outside.Close)
	Expect(unix.IoctlSetPointerInt(int(outside.Fd()), unix.TIOCSPTLCK, 0)).To(Succeed())
	number, err := unix.IoctlGetInt(int(outside.Fd()), unix.TIOCGPTN)
	Expect(err).NotTo(HaveOccurred())
	inside, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(inside.Close)
	t := &terminal{inside: inside, outside: outside}
	t.resize(columns, lines)
	go func() { _, _ = io.Copy(t, outside) }() // until there is no inside any more
	return t
}

func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen.Write(p)
}

// written is all that a program has written.
func (t *terminal) written() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen.String()
}

func (t *terminal) resize(columns, lines uint16) {
	GinkgoHelper()
	Expect(unix.IoctlSetWinsize(int(t.inside.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: lines, Col: columns})).To(Succeed())
}

func (t *terminal) press(key string) {
	GinkgoHelper()
	_, err := t.outside.WriteString(key)
	Expect(err).NotTo(HaveOccurred())
}

// mode is how the terminal treats keys.
func (t *terminal) mode() unix.Termios {
	GinkgoHelper()
	mode, err := unix.IoctlGetTermios(int(t.inside.Fd()), unix.TCGETS)
	Expect(err).NotTo(HaveOccurred())
	return *mode
}

// code is one of a terminal's commands, or a piece of text.
var code = regexp.MustCompile(`\x1b\[[?0-9;]*[a-zA-Z]|[^\x1b]`)

// screen is what one sees: lines of text, and whether that is the second screen, with no cursor on it.
func (t *terminal) screen() (lines []string, second bool) {
	line, text := 0, ""
	put := func() {
		for len(lines) <= line {
			lines = append(lines, "")
		}
		lines[line] = text
	}
	for _, c := range code.FindAllString(t.written(), -1) {
		switch c {
		case "\x1b[?1049h", "\x1b[?1049l":
			second, lines = strings.HasSuffix(c, "h"), nil
		case "\x1b[H":
			line, text = 0, ""
		case "\x1b[K":
			text = ""
		case "\x1b[J":
			put()
			lines = lines[:line+1]
		case "\r":
			put()
			text = ""
		case "\n":
			line++
		default:
			if c[0] != '\x1b' {
				text += c
			}
		}
	}
	if second {
		put()
	}
	return lines, second
}

// shows is the screen from where it begins to where it ends.
func (t *terminal) shows() string {
	lines, _ := t.screen()
	return strings.Join(lines, "\n")
}

// widths of the lines that it shows.
func (t *terminal) widths() (all []int) {
	lines, _ := t.screen()
	for _, line := range lines {
		all = append(all, utf8.RuneCountInString(line))
	}
	return all
}

// soon waits for as long as a busy machine may need.
func soon(actual any) AsyncAssertion { return Eventually(actual).WithTimeout(time.Minute) }

var _ = Describe("top on a terminal", func() {
	It("fills it whatever its size, follows keys and the cluster, and leaves it as it was", func() {
		GinkgoT().Setenv("TERM", "xterm")
		GinkgoT().Setenv("LC_ALL", "C.UTF-8")
		DeferCleanup(klog.CaptureState().Restore)
		s := newScene(everything)
		s.pool("pool")
		s.publish("--drain-reserve")
		t := newTerminal(80, 24)
		before := t.mode()
		klog.LogToStderr(false)
		klog.SetOutput(t.inside)
		interruptible := make(chan bool, 100)
		s.LatencyOf(func(r sim.Request) (before, after time.Duration) {
			if r.Resource == "configmaps" {
				interruptible <- t.mode().Lflag&unix.ISIG != 0
			}
			return 0, 0
		})
		root := s.root(genericiooptions.IOStreams{In: t.inside, Out: t.inside, ErrOut: io.Discard}, "top")
		ended := make(chan error, 1)
		go func() { ended <- root.ExecuteContext(GinkgoT().Context()) }()

		soon(t.shows).Should(ContainSubstring("1/1 serve, 1/0 reserve ready"))
		lines, second := t.screen()
		Expect(second).To(BeTrue())
		Expect(lines).To(HaveLen(24))
		Expect(lines[23]).To(HavePrefix("q quit"))
		Expect(lines[23]).To(HaveLen(80))
		Expect(t.mode().Lflag&(unix.ECHO|unix.ICANON)).To(BeZero(), "keys come one by one, and are not shown")
		Expect(interruptible).To(Receive(BeTrue()), "while the manager's flags are read")

		t.resize(60, 9)
		soon(t.widths).Should(And(HaveLen(9), HaveEach(BeNumerically("<=", 60))))
		Expect(t.shows()).NotTo(ContainSubstring("pool-waits"))
		t.resize(100, 40)
		t.press("w")
		soon(t.shows).Should(ContainSubstring("pool-waits"))
		s.pool("later")
		soon(t.shows).Should(ContainSubstring("later-waits"))

		klog.Info("what libraries say")
		t.press("q")
		soon(ended).Should(Receive(BeNil()))
		soon(t.written).Should(HaveSuffix("\x1b[?25h\x1b[?1049l"), "the cursor is there again, and the first screen")
		Expect(t.written()).NotTo(ContainSubstring("what libraries say"))
		Expect(t.mode()).To(Equal(before))
	})
})
