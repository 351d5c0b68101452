// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"os"
	"os/exec"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
)

// failing makes the test binary a program that fails.
const failing = "EVENKEEL_TEST_FAILING"

func init() {
	if os.Getenv(failing) == "" {
		return
	}
	os.Exit(Main(Program{
		Name: "daemon", Flags: pflag.NewFlagSet("daemon", pflag.ContinueOnError), PrintVersion: new(bool),
		Validate: func() error { return nil }, Run: func(context.Context) error { return errors.New("broken") },
	}))
}

var _ = It("A program that fails says why, and ends with exit code 1", func(ctx SpecContext) {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), failing+"=yes")
	printed, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	Expect(errors.As(err, &ended)).To(BeTrue())
	Expect(ended.ExitCode()).To(Equal(1))
	Expect(string(printed)).To(ContainSubstring("daemon: broken"))
})
