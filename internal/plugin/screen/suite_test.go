// SPDX-License-Identifier: Apache-2.0

package screen_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/overview"
)

// update writes the screens anew, to be looked at before they are committed.
var update = flag.Bool("update", false, "write testdata")

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestScreen(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Screen")
}

// golden holds a screen against the file that shows how it should be.
func golden(name, text string) {
	GinkgoHelper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		Expect(os.WriteFile(path, []byte(text), 0o644)).To(Succeed())
	}
	want, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	Expect(text).To(Equal(string(want)))
}

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// crew is how many machines of each state there are.
type crew map[overview.State]int

// zoneOf returns a zone with machines; unhealthy ones have a reason.
func zoneOf(name, place string, replicas, excess int, all crew) overview.Zone {
	z := overview.Zone{Name: name, Zone: place, Replicas: replicas, Excess: excess, Applied: excess, Count: all}
	for _, state := range overview.States {
		for i := range all[state] {
			m := overview.Machine{
				Name: fmt.Sprintf("%s-6586f-%c%c%c", name, state[0], 'a'+i/26%26, 'a'+i%26), State: state, Since: now.Add(-time.Duration(i+1) * 7 * time.Minute),
			}
			m.Node = m.Name
			if state == overview.Working {
				m.Pods = 4 + i
			}
			if state == overview.Failed {
				m.Why = "its Node does not respond"
			}
			z.Machines = append(z.Machines, m)
		}
	}
	return z
}

func bounded(z overview.Zone, low, high int) overview.Zone {
	z.Bounds = &overview.Bounds{Min: low, Max: high}
	return z
}

// small returns three zones with five machines each, and what a user wants to see beside them.
func small() overview.Overview {
	pool := overview.Pool{Namespace: "default", Name: "pool"}
	for i, place := range []string{"a", "b", "c"} {
		z := zoneOf(fmt.Sprintf("pool-z%d", i+1), "eu-1"+place, 3, 2, crew{overview.Working: 3, overview.ReserveReady: 2})
		pool.Zones = append(pool.Zones, bounded(z, 1, 10))
	}
	most := 7
	return overview.Overview{
		At: now, Pools: []overview.Pool{pool},
		Balancers: []overview.Balancer{{Namespace: "default", Name: "shop", Policy: "proportional", Replicas: 10, Targets: []overview.Target{
			{Name: "shop-a", Min: 1, Max: &most, Wanted: 3, Current: 3, Ready: 3}, {Name: "shop-b", Wanted: 7, Current: 6, Ready: 4},
		}}},
		Federated: []overview.Federated{{Namespace: "default", Name: "web", Workload: "Deployment/web", Min: 3, Max: 30, Clusters: []overview.Cluster{
			{Name: "munich", Min: 1, Max: 14, Current: 12, Desired: 14, Ready: 11, State: "Used", Reachable: true, Limited: true},
			{Name: "paris", Min: 1, Max: 6, Current: 2, Desired: 2, Ready: 2, State: "Used", Reachable: true},
		}}},
	}
}

// prepared is small, with images on some machines in reserve.
func prepared() overview.Overview {
	v := small()
	for i, z := range v.Pools[0].Zones {
		v.Pools[0].Zones[i].Prepared = ptr.To(i)
		for m, one := range z.Machines {
			if one.State == overview.ReserveReady {
				z.Machines[m].Images = []string{"being pulled", "pulled", "ImageNotFound: registry.example/web:v9: not found"}[i]
			}
		}
	}
	return v
}

// large has three zones with 200 machines each.
func large() overview.Overview {
	pool := overview.Pool{Namespace: "shoot--garden--production", Name: "worker-m5", Excess: "10%", Skew: 4}
	for i, place := range []string{"a", "b", "c"} {
		z := zoneOf(fmt.Sprintf("shoot--garden--production-worker-m5-z%d", i+1), "eu-central-1"+place, 180-4*i/2, 20,
			crew{overview.Working: 176 - i, overview.Booting: 3, overview.ReserveReady: 15, overview.ReserveBooting: 4, overview.Leaving: 1, overview.Failed: 1 + i})
		pool.Zones = append(pool.Zones, bounded(z, 30, 240))
	}
	return overview.Overview{At: now, Pools: []overview.Pool{pool}}
}

// broken has everything wrong at once.
func broken() overview.Overview {
	v := small()
	v.Pools[0].Skew, v.Pools[0].Excess = 3, "4"
	v.Pools[0].Zones[0] = bounded(zoneOf("pool-z1", "eu-1a", 6, 0, crew{overview.Working: 3, overview.Failed: 3}), 1, 5)
	v.Pools[0].Zones[1] = zoneOf("pool-z2", "", 4, 2, crew{overview.Working: 2, overview.Booting: 2, overview.ReserveBooting: 2, overview.Leaving: 1})
	v.Pools[0].Zones[2] = zoneOf("pool-z3", "eu-1c", 3, 0, crew{})
	v.Balancers[0].Targets[1].Why = "blocked, 3 fail to start"
	v.Federated[0].Clusters[0].Reachable, v.Federated[0].Clusters[0].State, v.Federated[0].Clusters[0].Why = false, "Unreachable", "the cluster does not answer"
	v.Federated[0].Clusters[1].State, v.Federated[0].Clusters[1].Why = "Frozen", "its metrics cannot be read"
	v.PodsWaiting = 12
	v.Reserves = []overview.Reserve{
		{Namespace: "default", Name: "new"},
		{Namespace: "default", Name: "night", Next: &overview.Change{At: now.Add(7 * time.Hour), Wanted: 3}, Ready: overview.Condition{Status: "True", Reason: "NotRequested", Message: "no machines are requested now"}},
		{
			Namespace: "default", Name: "office-hours", Wanted: 5, Current: 4, ReadyMachines: 3, Active: []string{"day"}, Next: &overview.Change{At: now.Add(7 * time.Hour), Wanted: 2},
			Ready: overview.Condition{Status: "False", Reason: "CannotBeMade", Message: "3 of 5 machines are ready in 3 MachineDeployments; machines cannot be created in pool-z1, and other MachineDeployments replace only some of them; active: day"},
		},
	}
	v.Buffers = []overview.Buffer{
		{Namespace: "ci", Name: "build", Shape: "PodTemplate/build", Chunks: -1},
		{Namespace: "shop", Name: "web", Shape: "Deployment/web", Chunks: 2, Dedicated: "workload", Ready: overview.Condition{Status: "True", Reason: "Complete", Message: "room for 2 of 2 chunks is ready in pool-z1"}},
		{Namespace: "shop", Name: "worker", Shape: "Deployment/worker", Chunks: 40, Ready: overview.Condition{Status: "False", Reason: "NoRoom", Message: "there is no room for 12 of 40 chunks: raise max in the bounds of pool-z1, pool-z2"}},
	}
	v.Missing = []string{"machineclasses: no rights to list them", "pods: the target cluster does not answer: Get \"https://10.0.0.1:6443/api/v1/pods\": dial tcp 10.0.0.1:6443: connect: connection refused"}
	v.Troubles = []overview.Trouble{
		{Object: "machinedeployment/default/pool-z1", What: "pool-z1-6586f-faa failed: its Node does not respond; 2 more", Do: "kubectl -n default describe machine pool-z1-6586f-faa"},
		{Object: "pod/default/p", What: "12 pods cannot be scheduled, and no reserve machine has room for them (Full)", Do: "kubectl -n default describe pod p"},
		{Object: "fhpa/default/web", What: "these clusters do not answer and keep their bounds: munich", Do: "check the network to them; if they are lost for good, list them in spec.unreachable.released"},
		{Object: "machinedeployment/default/pool-z1", What: "replicas 6 are above max 5", Do: "raise max in the bounds, or lower replicas"},
		{Object: "balancer/default/shop", What: "evil\x1b[31m\nname", Do: "x"},
	}
	return v
}
