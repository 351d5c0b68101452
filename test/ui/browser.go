// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

// ErrNoChromium is returned if Chromium is not installed.
var ErrNoChromium = errors.New("no Chromium in PATH: apt-get install chromium")

// Browser is a Chromium of its own, without a window. It speaks the DevTools protocol over a pipe:
// no port is open.
type Browser struct {
	process *exec.Cmd
	profile string
	out     *os.File
	ended   chan struct{}

	mu      sync.Mutex
	last    int
	answers map[int]chan message
	// events are told to the tab of their session.
	events map[string]func(method string, params json.RawMessage)
}

// message is what goes over the pipe, each ended by a zero byte.
type message struct {
	ID        int             `json:"id,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// NewBrowser starts Chromium. Close ends it.
func NewBrowser() (*Browser, error) {
	path, err := chromium()
	if err != nil {
		return nil, err
	}
	profile, err := os.MkdirTemp("", "evenkeel-ui-")
	if err != nil {
		return nil, err
	}
	b := &Browser{profile: profile, ended: make(chan struct{}), answers: map[int]chan message{}, events: map[string]func(string, json.RawMessage){}}
	in, err := b.start(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", path, err), os.RemoveAll(profile))
	}
	go b.listen(in)
	return b, nil
}

func chromium() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNoChromium
}

// start returns where Chromium's messages come from.
func (b *Browser) start(path string) (*os.File, error) {
	theirIn, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	in, theirOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	b.out = out
	b.process = exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--user-data-dir="+b.profile, "--remote-debugging-pipe", "about:blank")
	// Chromium expects them as its files 3 and 4.
	b.process.ExtraFiles = []*os.File{theirIn, theirOut}
	err = b.process.Start()
	return in, errors.Join(err, theirIn.Close(), theirOut.Close())
}

// listen hands out what Chromium says until it ends.
func (b *Browser) listen(in *os.File) {
	defer close(b.ended)
	defer in.Close()
	reader := bufio.NewReader(in)
	for {
		data, err := reader.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(data[:len(data)-1], &m) == nil {
			b.receive(m)
		}
	}
}

func (b *Browser) receive(m message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if answer, found := b.answers[m.ID]; found {
		delete(b.answers, m.ID)
		answer <- m
	} else if told, found := b.events[m.SessionID]; found && m.Method != "" {
		told(m.Method, m.Params)
	}
}

// call asks Chromium for something and waits for the result, which may be nil if it is not needed.
func (b *Browser) call(ctx context.Context, session, method string, params, result any) error {
	answer, err := b.send(session, method, params)
	if err != nil {
		return fmt.Errorf("call %s: %w", method, err)
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("call %s: %w", method, ctx.Err())
	case <-b.ended:
		return fmt.Errorf("call %s: Chromium has ended", method)
	case m := <-answer:
		if m.Error != nil {
			return fmt.Errorf("call %s: %s", method, m.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(m.Result, result)
	}
}

func (b *Browser) send(session, method string, params any) (<-chan message, error) {
	encoded, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	data, err := json.Marshal(message{ID: b.last, SessionID: session, Method: method, Params: encoded})
	if err != nil {
		return nil, err
	}
	answer := make(chan message, 1)
	b.answers[b.last] = answer
	_, err = b.out.Write(append(data, 0))
	return answer, err
}

// Close ends Chromium and forgets its profile.
func (b *Browser) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if b.call(ctx, "", "Browser.close", struct{}{}, nil) != nil {
		// It did not end by itself, or has ended already.
		_ = b.process.Process.Kill()
	}
	<-b.ended
	_ = b.process.Wait() // the exit status is irrelevant for the page
	return errors.Join(b.out.Close(), os.RemoveAll(b.profile))
}
