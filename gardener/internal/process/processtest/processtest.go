// SPDX-License-Identifier: Apache-2.0

// Package processtest runs a program as a process of its own, with real arguments and signals.
package processtest

import (
	"os"
	"os/exec"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
)

// mark has the test's binary be the program.
const mark = "EVENKEEL_TEST_PROCESS"

// Main runs the program or its tests. It does not return.
func Main(m *testing.M, program func()) {
	if os.Getenv(mark) != "" {
		program()
	}
	os.Exit(m.Run())
}

// Start starts the program. It ends with the spec.
func Start(environment []string, arguments ...string) *gexec.Session {
	GinkgoHelper()
	command := exec.Command(os.Args[0], arguments...)
	command.Env = append(append(os.Environ(), mark+"=1"), environment...)
	session, err := gexec.Start(command, nil, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { session.Kill().Wait(time.Minute) })
	return session
}

// Ended starts the program and waits until it ends.
func Ended(environment []string, arguments ...string) (exitCode int, out, err string) {
	GinkgoHelper()
	session := Start(environment, arguments...).Wait(time.Minute)
	return session.ExitCode(), string(session.Out.Contents()), string(session.Err.Contents())
}
