// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/evenkeel/evenkeel/test/localcluster"
)

// plugin is `kubectl evenkeel ui` as a person runs it.
type plugin struct {
	address string
	process *exec.Cmd
	folder  string
}

func startPlugin(ctx context.Context, kubeconfig string) (*plugin, error) {
	folder, err := os.MkdirTemp("", "evenkeel-bench-ui-")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, "kubectl-evenkeel")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/kubectl-evenkeel").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the plugin: %w: %s", err, out)
	}
	p := &plugin{process: exec.Command(path, "ui", "--kubeconfig", kubeconfig), folder: folder}
	p.process.Stderr = os.Stderr
	out, err := p.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.process.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	p.address = strings.TrimSpace(line)
	return p, err
}

// stop ends the plugin as a person does, and forgets its binary.
func (p *plugin) stop() error {
	if err := p.process.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := p.process.Wait(); err != nil {
		return err
	}
	return os.RemoveAll(p.folder)
}

// memory is what the plugin has taken at most, in MiB.
func (p *plugin) memory() (float64, error) {
	usage, err := localcluster.ReadUsage(p.process.Process.Pid)
	return usage.Peak, err
}
