// SPDX-License-Identifier: Apache-2.0

// Command nightly makes targets of the Makefile one after the other, prints one line of result for
// each, and keeps their output in .local/nightly. It fails if one of them does.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// logs is where the output of each target is kept.
const logs = ".local/nightly"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, logs, target, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "nightly:", err)
		os.Exit(1)
	}
}

// run makes the targets in their order.
func run(ctx context.Context, out io.Writer, logs string, command func(context.Context, string) *exec.Cmd, names []string) error {
	if len(names) == 0 {
		return errors.New("usage: go run ./test/nightly <targets>")
	}
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return fmt.Errorf("keep output: %w", err)
	}
	var failed []string
	for _, name := range names {
		log := filepath.Join(logs, name+".log")
		begin := time.Now()
		verdict := "ok"
		if err := runCommand(command(ctx, name), log); err != nil {
			failed = append(failed, name)
			verdict = fmt.Sprintf("FAILED: %v, see %s", err, log)
		}
		fmt.Fprintf(out, "%-24s %6.0f s  %s\n", name, time.Since(begin).Seconds(), verdict)
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted in %s", name)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d failed: %s", len(failed), len(names), strings.Join(failed, ", "))
	}
	return nil
}

// runCommand runs a command to its end, and keeps what it prints.
func runCommand(cmd *exec.Cmd, log string) error {
	file, err := os.Create(log)
	if err != nil {
		return fmt.Errorf("keep output: %w", err)
	}
	cmd.Stdout, cmd.Stderr = file, file
	return errors.Join(cmd.Run(), file.Close())
}

// target is a target of the Makefile here. Its processes are a group of their own, which is told to
// end as Ctrl-C would.
func target(ctx context.Context, name string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "make", "--no-print-directory", name)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	return cmd
}
