// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestNightly(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Nightly")
}

var _ = Describe("A night", func() {
	scripts := func(ctx context.Context, name string) *exec.Cmd {
		return exec.CommandContext(ctx, "sh", "-c", map[string]string{"good": "echo fine", "bad": "echo broken >&2; exit 3"}[name])
	}

	It("goes on after a failure, has a line for each target, keeps what each printed, and fails", func(ctx SpecContext) {
		var out strings.Builder
		logs := GinkgoT().TempDir()
		Expect(run(ctx, &out, logs, scripts, []string{"bad", "good"})).To(MatchError("1 of 2 failed: bad"))
		Expect(strings.Split(strings.TrimSpace(out.String()), "\n")).To(HaveExactElements(
			MatchRegexp(`^bad +\d+ s  FAILED: exit status 3, see .*bad.log$`), MatchRegexp(`^good +\d+ s  ok$`)))
		Expect(os.ReadFile(filepath.Join(logs, "bad.log"))).To(BeEquivalentTo("broken\n"))
		Expect(os.ReadFile(filepath.Join(logs, "good.log"))).To(BeEquivalentTo("fine\n"))
	})

	It("passes where all do", func(ctx SpecContext) {
		var out strings.Builder
		Expect(run(ctx, &out, GinkgoT().TempDir(), scripts, []string{"good"})).To(Succeed())
		Expect(run(ctx, &out, GinkgoT().TempDir(), scripts, nil)).To(MatchError(ContainSubstring("usage")))
	})

	It("ends when it is interrupted", func(ctx SpecContext) {
		cut, interrupt := context.WithCancel(ctx)
		interrupt()
		var out strings.Builder
		Expect(run(cut, &out, GinkgoT().TempDir(), scripts, []string{"good", "good"})).To(MatchError(ContainSubstring("interrupted")))
		Expect(strings.Count(out.String(), "good")).To(BeNumerically(">=", 1))
	})
})
