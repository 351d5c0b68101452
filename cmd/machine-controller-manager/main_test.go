// SPDX-License-Identifier: Apache-2.0

//go:build !race

package main

import (
	"os"
	"slices"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/running"
	"github.com/evenkeel/evenkeel/test/sim"
)

func TestMain(m *testing.M) {
	if running.IsProcess() {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestMachineControllerManager(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "machine-controller-manager's process")
}

var _ = running.Daemon{
	Name: "manager", Served: slices.Concat(sim.Core, sim.Machine, sim.Workloads),
	Flags: func(control, target string) []string {
		return []string{"--controllers=mcm,nodegroup,release,balance", "--control-kubeconfig=" + control, "--target-kubeconfig=" + target}
	},
}.EndsInTime()
