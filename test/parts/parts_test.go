// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// soon is when a spec has failed that waits for processes.
const soon = time.Minute

func TestParts(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Parts")
}

var _ = Describe("Parts", func() {
	var out *strings.Builder
	BeforeEach(func() { out = &strings.Builder{} })
	// scripts are parts that are what a shell makes of them.
	scripts := func(lines map[string]string) func(context.Context, string) *exec.Cmd {
		return func(ctx context.Context, name string) *exec.Cmd {
			return exec.CommandContext(ctx, "sh", "-c", lines[name])
		}
	}

	It("run at the same time", func(ctx SpecContext) {
		// Each of the two waits for the other, in a pipe that both have to open.
		pipe := filepath.Join(GinkgoT().TempDir(), "pipe")
		Expect(exec.CommandContext(ctx, "mkfifo", pipe).Run()).To(Succeed())
		Expect(run(ctx, out, scripts(map[string]string{"says": "echo hello > " + pipe, "hears": "cat " + pipe}), []string{"says", "hears"})).To(Succeed())
		Expect(out.String()).To(ContainSubstring("hello"))
	}, SpecTimeout(soon))

	It("that all went well say at the end how each of them closed", func(ctx SpecContext) {
		Expect(run(ctx, out, scripts(map[string]string{"long": "seq 100", "short": "echo done"}), []string{"long", "short"})).To(Succeed())
		body, end, found := strings.Cut(out.String(), "\n== ")
		Expect(found).To(BeTrue())
		Expect(body).To(And(ContainSubstring("\n49\n50\n51\n"), ContainSubstring("done\n")))
		Expect(end).To(And(ContainSubstring("\n95\n96\n97\n98\n99\n100\n"), Not(ContainSubstring("\n94\n")), ContainSubstring("\ndone\n"), ContainSubstring("2 parts in ")))
	})

	It("say which tools specs had to do without", func() {
		Expect(report(out, []part{{name: "one"}}, time.Second, []string{"promtool"})).To(Succeed())
		Expect(out.String()).To(HaveSuffix("1 parts in 1 s, 0 s of processors; not installed, so that specs passed without them: promtool\n"))
	})

	It("that fail fail the whole, and come last and in full, though the others end later", func(ctx SpecContext) {
		err := run(ctx, out, scripts(map[string]string{"bad": "seq 100; echo no >&2; exit 3", "good": "seq 200 300"}), []string{"bad", "good"})
		Expect(err).To(MatchError(And(ContainSubstring("1 of 2 failed"), ContainSubstring("bad"))))
		var exit *exec.ExitError
		Expect(errors.As(err, &exit)).To(BeTrue())
		Expect(exit.ExitCode()).To(Equal(3))
		Expect(strings.Count(out.String(), "\n49\n50\n51\n")).To(Equal(1), "its output is shown once")
		Expect(strings.Index(out.String(), "\n49\n50\n")).To(BeNumerically(">", strings.LastIndex(out.String(), "\n299\n300\n")))
		Expect(out.String()).To(ContainSubstring("\n100\nno\n== bad "))
	})

	It("that cannot be started fail", func(ctx SpecContext) {
		nowhere := func(ctx context.Context, _ string) *exec.Cmd { return exec.CommandContext(ctx, "/no/such/program") }
		Expect(run(ctx, out, nowhere, []string{"one"})).To(MatchError(os.ErrNotExist))
		Expect(run(ctx, out, nowhere, nil)).To(MatchError(ContainSubstring("usage")))
	})

	It("are targets of the Makefile, which end with all that they started", func(ctx SpecContext) {
		folder := GinkgoT().TempDir()
		pipe := filepath.Join(folder, "pipe")
		makefile := fmt.Sprintf("waits:\n\t@echo begun > %s; sleep 1000\n", pipe)
		Expect(os.WriteFile(filepath.Join(folder, "Makefile"), []byte(makefile), 0o600)).To(Succeed())
		Expect(exec.CommandContext(ctx, "mkfifo", pipe).Run()).To(Succeed())
		cut, interrupt := context.WithCancel(ctx)
		defer interrupt()
		ended := make(chan error)
		go func() {
			defer GinkgoRecover()
			ended <- run(cut, out, func(ctx context.Context, name string) *exec.Cmd {
				cmd := target(ctx, name)
				cmd.Dir = folder
				return cmd
			}, []string{"waits"})
		}()
		Expect(os.ReadFile(pipe)).To(Equal([]byte("begun\n")))
		interrupt()
		// It returns when no process holds its output any more, and so when sleep has ended.
		var err error
		Eventually(ended).WithContext(ctx).Should(Receive(&err))
		Expect(err).To(HaveOccurred())
	}, SpecTimeout(soon))
})
