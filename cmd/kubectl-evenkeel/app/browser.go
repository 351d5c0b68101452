// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// openers are the programs that open a file in the user's browser.
var openers = map[string][]string{
	"darwin":  {"open"},
	"windows": {"rundll32", "url.dll,FileProtocolHandler"},
	"linux":   {"xdg-open"},
}

// openBrowser opens an address in a browser, if there is one. The address was printed before. The
// caller calls forget when the page ends.
func (o *options) openBrowser(address string) (forget func()) {
	folder, err := leadTo(address)
	forget = func() { _ = os.RemoveAll(folder) }
	if err == nil {
		err = startBrowser(filepath.Join(folder, leading))
	}
	if err != nil {
		fmt.Fprintln(o.ErrOut, "open a browser:", err)
	}
	return forget
}

// leading is the name of the file that leads to the page.
const leading = "evenkeel.html"

// leadTo writes a file that only its owner can read, and that redirects a browser to an address. An
// address on the browser's command line would show its key to every user of this machine.
func leadTo(address string) (folder string, err error) {
	// A sandboxed browser may have access only to the home folder.
	cache, err := os.UserCacheDir()
	if err != nil || os.MkdirAll(cache, 0o700) != nil {
		cache = os.TempDir()
	}
	if folder, err = os.MkdirTemp(cache, "evenkeel-ui-"); err != nil {
		return "", err
	}
	text := fmt.Sprintf("<!doctype html><meta http-equiv=refresh content=\"0; url=%s\"><title>Evenkeel</title>\n", html.EscapeString(address))
	return folder, os.WriteFile(filepath.Join(folder, leading), []byte(text), 0o600)
}

func startBrowser(path string) error {
	opener, found := openers[runtime.GOOS]
	if !found {
		return fmt.Errorf("no browser is known for %s", runtime.GOOS)
	}
	// The browser outlives this command.
	browser := exec.Command(opener[0], append(opener[1:len(opener):len(opener)], path)...)
	if err := browser.Start(); err != nil {
		return err
	}
	return browser.Process.Release()
}
