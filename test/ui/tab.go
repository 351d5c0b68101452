// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

// Look is how the reader looks at a page.
type Look struct {
	Name          string
	Width, Height int
	Phone, Dark   bool
}

// Tab is one page in a browser.
type Tab struct {
	browser *Browser
	session string
	// arrived gets the address of each document that the tab comes to.
	arrived chan string

	mu       sync.Mutex
	problems []string
	asked    []string
}

// Open shows an address. Problems are collected from the first byte on.
func (b *Browser) Open(ctx context.Context, address string, look Look) (*Tab, error) {
	var target struct{ TargetID string }
	if err := b.call(ctx, "", "Target.createTarget", object{"url": "about:blank"}, &target); err != nil {
		return nil, err
	}
	var attached struct{ SessionID string }
	if err := b.call(ctx, "", "Target.attachToTarget", object{"targetId": target.TargetID, "flatten": true}, &attached); err != nil {
		return nil, err
	}
	t := &Tab{browser: b, session: attached.SessionID, arrived: make(chan string, 16)}
	b.mu.Lock()
	b.events[t.session] = t.told
	b.mu.Unlock()
	scheme := "light"
	if look.Dark {
		scheme = "dark"
	}
	for _, step := range []struct {
		method string
		params object
	}{
		{"Runtime.enable", object{}}, {"Log.enable", object{}}, {"Network.enable", object{}}, {"Page.enable", object{}},
		{"Emulation.setDeviceMetricsOverride", object{"width": look.Width, "height": look.Height, "deviceScaleFactor": 1, "mobile": look.Phone}},
		{"Emulation.setEmulatedMedia", object{"features": []object{{"name": "prefers-color-scheme", "value": scheme}}}},
		{"Page.navigate", object{"url": address}},
	} {
		if err := b.call(ctx, t.session, step.method, step.params, nil); err != nil {
			return nil, err
		}
	}
	return t, t.Until(ctx, `document.readyState === "complete" && location.href !== "about:blank"`)
}

// object is a JSON object.
type object map[string]any

func (t *Tab) told(method string, params json.RawMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch method {
	case "Runtime.exceptionThrown":
		t.problems = append(t.problems, "exception: "+string(params))
	case "Runtime.consoleAPICalled":
		t.problems = append(t.problems, "console: "+string(params))
	case "Log.entryAdded":
		t.problems = append(t.problems, "log: "+string(params))
	case "Page.frameNavigated":
		var came struct{ Frame struct{ URL string } }
		if json.Unmarshal(params, &came) == nil {
			t.arrived <- came.Frame.URL
		}
	case "Network.requestWillBeSent":
		var sent struct{ Request struct{ URL string } }
		if json.Unmarshal(params, &sent) == nil {
			t.asked = append(t.asked, sent.Request.URL)
		}
	}
}

// Problems are what the browser complained of: errors in the console, exceptions, violations of the
// page's policy.
func (t *Tab) Problems() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.problems)
}

// Asked are the addresses of all requests that the page made.
func (t *Tab) Asked() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.asked)
}

// Evaluate runs a JavaScript expression in the page. A promise is waited for.
func (t *Tab) Evaluate(ctx context.Context, expression string, result any) error {
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	params := object{"expression": expression, "awaitPromise": true, "returnByValue": true}
	if err := t.browser.call(ctx, t.session, "Runtime.evaluate", params, &answer); err != nil {
		return err
	}
	if e := answer.ExceptionDetails; e != nil {
		return fmt.Errorf("evaluate %s: %s %s", expression, e.Text, e.Exception.Description)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(answer.Result.Value, result)
}

// Leave does what leads to another document, and waits until the tab has come to an address that
// contains a text.
func (t *Tab) Leave(ctx context.Context, expression, text string) error {
	if err := t.Evaluate(ctx, expression, nil); err != nil {
		return err
	}
	for {
		select {
		case address := <-t.arrived:
			if strings.Contains(address, text) {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("leave for %s: %w", text, ctx.Err())
		}
	}
}

// Until waits until a condition holds. The page itself looks again whenever it changes.
func (t *Tab) Until(ctx context.Context, condition string) error {
	return t.Evaluate(ctx, `new Promise(done => {
		const holds = () => `+condition+`;
		if (holds()) return done(true);
		const watcher = new MutationObserver(() => { if (holds()) { watcher.disconnect(); done(true); } });
		watcher.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
		addEventListener("load", () => { if (holds()) { watcher.disconnect(); done(true); } });
	})`, nil)
}

// Text is what a reader sees of the elements that a selector finds.
func (t *Tab) Text(ctx context.Context, selector string) (string, error) {
	var texts []string
	err := t.Evaluate(ctx, fmt.Sprintf(`[...document.querySelectorAll(%q)].map(e => e.innerText)`, selector), &texts)
	return strings.Join(texts, "\n"), err
}

// Picture writes what the page looks like, from its top to its end.
func (t *Tab) Picture(ctx context.Context, path string) error {
	var layout struct {
		CSSContentSize struct{ Width, Height float64 }
	}
	if err := t.browser.call(ctx, t.session, "Page.getLayoutMetrics", object{}, &layout); err != nil {
		return err
	}
	size := layout.CSSContentSize
	clip := object{"x": 0, "y": 0, "width": size.Width, "height": size.Height, "scale": 1}
	var shot struct{ Data []byte }
	params := object{"format": "png", "captureBeyondViewport": true, "clip": clip}
	if err := t.browser.call(ctx, t.session, "Page.captureScreenshot", params, &shot); err != nil {
		return err
	}
	return os.WriteFile(path, shot.Data, 0o644)
}

// Close ends the tab.
func (t *Tab) Close(ctx context.Context) error {
	return t.browser.call(ctx, t.session, "Page.close", object{}, nil)
}
