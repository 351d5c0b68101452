// SPDX-License-Identifier: Apache-2.0

// Command parts makes several targets of the Makefile side by side. It prints the closing lines of
// each, and the whole output of those that failed, and fails if one does.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/evenkeel/evenkeel/test/absent"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, target, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "parts:", err)
		os.Exit(1)
	}
}

// run runs all parts at once, and prints the result of each when it ends.
func run(ctx context.Context, out io.Writer, command func(context.Context, string) *exec.Cmd, names []string) error {
	if len(names) == 0 {
		return errors.New("usage: go run ./test/parts <targets>")
	}
	begin := time.Now()
	ended := make(chan part)
	for _, name := range names {
		fmt.Fprintf(out, "%s ...\n", name)
		go func() { ended <- runCommand(name, command(ctx, name)) }()
	}
	var all []part
	for range names {
		p := <-ended
		all = append(all, p)
		if p.err == nil {
			_, _ = out.Write(p.output)
		}
		fmt.Fprintln(out, p)
	}
	missing, err := absent.Noted(".")
	if err != nil {
		return err
	}
	return report(out, all, time.Since(begin), missing)
}

// target is a target of the Makefile here. Its processes are a group of their own, which is told to
// end. SIGINT would not do: what a shell starts in the background ignores it, and so do all
// processes below.
func target(ctx context.Context, name string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "make", "--no-print-directory", name)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	return cmd
}
