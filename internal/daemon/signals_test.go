// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// toldTwice makes the test binary a process that goes on after it was told to stop.
const toldTwice = "EVENKEEL_TEST_TOLD_TWICE"

func init() {
	if os.Getenv(toldTwice) == "" {
		return
	}
	ctx := Signals()
	fmt.Println("started")
	<-ctx.Done()
	fmt.Println("stopping")
	select {}
}

var _ = DescribeTable("The first signal ends the context, and the second the process", func(ctx SpecContext, signal syscall.Signal) {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), toldTwice+"=yes")
	out, err := cmd.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(cmd.Start()).To(Succeed())
	lines := bufio.NewScanner(out)
	for _, line := range []string{"started", "stopping"} {
		Expect(lines.Scan()).To(BeTrue())
		Expect(lines.Text()).To(Equal(line))
		Expect(cmd.Process.Signal(signal)).To(Succeed())
	}
	var ended *exec.ExitError
	Expect(errors.As(cmd.Wait(), &ended)).To(BeTrue())
	Expect(ended.Sys().(syscall.WaitStatus).Signal()).To(Equal(signal))
},
	Entry("of a kubelet", syscall.SIGTERM),
	Entry("of a person", syscall.SIGINT),
)
