// SPDX-License-Identifier: Apache-2.0

//go:build !race

package main

import (
	"os"
	"slices"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	balancer "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
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

func TestWorkloads(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "evenkeel-workloads' process")
}

var served = slices.Concat(sim.Core, sim.Workloads, []sim.Resource{
	{Group: balancer.GroupName, Version: "v1alpha1", Name: "balancers", Kind: "Balancer", Namespaced: true, Status: true},
	{Group: autoscaling.GroupName, Version: "v1alpha1", Name: "federatedhorizontalpodautoscalers", Kind: "FederatedHorizontalPodAutoscaler", Namespaced: true, Status: true},
})

func with(controller string) running.Daemon {
	return running.Daemon{Name: controller, Served: served, Flags: func(cluster, _ string) []string {
		return []string{"--controllers=" + controller, "--kubeconfig=" + cluster}
	}}
}

var (
	_ = with("balancer").EndsInTime()
	_ = with("federatedhpa").EndsInTime()
)
