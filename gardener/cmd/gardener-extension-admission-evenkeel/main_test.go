// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/gardener/internal/process/processtest"
)

func TestMain(m *testing.M) { processtest.Main(m, main) }

func TestProcess(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "gardener-extension-admission-evenkeel's process")
}

var _ = Describe("The process", func() {
	It("prints how to use it, with loopback as the default", func() {
		code, out, _ := processtest.Ended(nil, "--help")
		Expect(code).To(BeZero())
		Expect(strings.Join(strings.Fields(out), " ")).To(And(HavePrefix("gardener-extension-admission-evenkeel checks"),
			ContainSubstring(`(default "127.0.0.1:8080")`), ContainSubstring(`The webhook server host. (default "127.0.0.1")`)))
	})

	It("prints its version", func() {
		_, out, _ := processtest.Ended(nil, "--version")
		Expect(out).To(HavePrefix("evenkeel gardener-extension-admission-evenkeel "))
	})

	It("reads access to the garden from the environment, unless a flag is set", func() {
		garden := []string{"GARDEN_KUBECONFIG=/environment"}
		_, _, message := processtest.Ended(garden)
		Expect(message).To(ContainSubstring("/environment"))
		_, _, message = processtest.Ended(garden, "--kubeconfig=/flag")
		Expect(message).To(And(ContainSubstring("/flag"), Not(ContainSubstring("/environment"))))
	})
})
