// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

// progress reads the output of go build -v, and reports how many packages are compiled.
type progress struct {
	what  string
	out   io.Writer
	start time.Time

	mu sync.Mutex
	// waiting are the packages that have yet to be compiled, of so many.
	waiting map[string]bool
	all     int
	// part is the beginning of a line, and other are the lines that do not name a package.
	part, other []byte
}

// setPackages sets what is to be compiled.
func (p *progress) setPackages(packages []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting, p.all = map[string]bool{}, len(packages)
	for _, name := range packages {
		p.waiting[name] = true
	}
}

// Write implements [io.Writer].
func (p *progress) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.part = append(p.part, text...)
	for {
		line, rest, whole := bytes.Cut(p.part, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		if name := string(line); p.waiting[name] {
			delete(p.waiting, name)
		} else {
			p.other = append(append(p.other, line...), '\n')
		}
		p.part = rest
	}
}

// otherOutput returns what was printed beside the names of packages.
func (p *progress) otherOutput() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(p.other, p.part...)
}

// String describes what is in progress.
func (p *progress) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	share := ""
	switch done := p.all - len(p.waiting); {
	case p.all > 0 && done == p.all:
		share = ", linking"
	case p.all > 0:
		share = fmt.Sprintf(", %d of %d packages", done, p.all)
	}
	return fmt.Sprintf("%s ... %.0fs%s", p.what, time.Since(p.start).Seconds(), share)
}

// report prints every now and then what is in progress, until it is stopped.
func (p *progress) report(every time.Duration) (stop func()) {
	ended, quiet := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(quiet)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				fmt.Fprintln(p.out, p)
			case <-ended:
				return
			}
		}
	}()
	return func() { close(ended); <-quiet }
}
