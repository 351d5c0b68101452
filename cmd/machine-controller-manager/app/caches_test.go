// SPDX-License-Identifier: Apache-2.0

//go:build !race

package app

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/internal/sim"
)

// watches counts the watches of a server by resource.
func watches(server *sim.Server) func() map[string]int {
	var mu sync.Mutex
	all := map[string]int{}
	server.LatencyOf(func(r sim.Request) (before, after time.Duration) {
		if r.Verb == "watch" {
			mu.Lock()
			defer mu.Unlock()
			all[r.Resource]++
		}
		return 0, 0
	})
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(all)
	}
}

var _ = Describe("A process with all controllers", Serial, func() {
	It("watches each kind of the target cluster once, and each of the control cluster twice: as it is, and through the lens", func() {
		resources := slices.Concat(sim.Core, sim.Machine, sim.Workloads, []sim.Resource{
			{Group: "storage.k8s.io", Version: "v1", Name: "storageclasses", Kind: "StorageClass"},
			{Group: "storage.k8s.io", Version: "v1", Name: "csidrivers", Kind: "CSIDriver"},
		})
		control, target := sim.New(sim.Options{Resources: resources}), sim.New(sim.Options{Resources: resources})
		machines, nodes := watches(control), watches(target)
		r := start(control, "--control-kubeconfig="+onSocket(control, "mcm"), "--target-kubeconfig="+onSocket(target, "mcm"),
			fmt.Sprint("--autoscaler-listen-address=127.0.0.1:", freePort()))
		Eventually(r.status("/readyz"), eventually).Should(Equal(http.StatusOK))
		Eventually(nodes, eventually).Should(Equal(map[string]int{
			"pods": 1, "nodes": 1, "persistentvolumeclaims": 1, "persistentvolumes": 1, "poddisruptionbudgets": 1,
			"daemonsets": 1, "replicasets": 1, "storageclasses": 1, "csidrivers": 1,
		}))
		Expect(machines()).To(And(HaveKeyWithValue("machines", 2), HaveKeyWithValue("machinesets", 2), HaveKeyWithValue("machinedeployments", 2)))
		r.stop()
		Eventually(r.ended, eventually).Should(Receive(BeNil()))
	})
})
