// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/evenkeel/evenkeel/internal/overview"
)

// Preview is the page in a process of its own. It shows what it is given.
type Preview struct {
	// Address is what a person opens; Root is the beginning of all addresses there.
	Address, Root string

	process *exec.Cmd
	given   io.WriteCloser
}

// BuildPreview makes the program that serves the page, in a folder, and returns its path.
func BuildPreview(folder string) (string, error) {
	path := filepath.Join(folder, "preview")
	build := exec.Command("go", "build", "-o", path, "github.com/evenkeel/evenkeel/test/ui/preview")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build preview: %w: %s", err, out)
	}
	return path, nil
}

// StartPreview serves the page of the first overviews, of which the last is what it shows; the
// others are its past.
func StartPreview(program string, first ...overview.Overview) (*Preview, error) {
	p := &Preview{process: exec.Command(program)}
	p.process.Stderr = os.Stderr
	given, err := p.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.given = given
	if err := p.process.Start(); err != nil {
		return nil, fmt.Errorf("start preview: %w", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	p.Address = strings.TrimSpace(line)
	p.Root, _, _ = strings.Cut(p.Address, "?")
	for _, o := range first {
		err = errors.Join(err, p.Show(o))
	}
	if err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// Show gives the page something new.
func (p *Preview) Show(o overview.Overview) error {
	if err := json.NewEncoder(p.given).Encode(o); err != nil {
		return fmt.Errorf("show overview: %w", err)
	}
	return nil
}

// Stop ends the page as a person does, and tells how that went.
func (p *Preview) Stop() error {
	if err := p.process.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop preview: %w", err)
	}
	return p.process.Wait()
}
