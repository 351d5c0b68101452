// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/overview"
)

// now is when all scenes are looked at.
var now = time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)

// Scene is something to look at, with the hour before it.
type Scene struct {
	Name string
	Past []overview.Overview
	Now  overview.Overview
}

// Scenes are what the page must look right with.
func Scenes() []Scene {
	small, large, wrong := newPools(5, 2), newPools(160, 40), newPools(5, 2)
	return []Scene{
		{Name: "empty", Now: overview.Overview{At: now}},
		{Name: "small", Past: hour(small), Now: small},
		{Name: "large", Past: hour(large), Now: large},
		{Name: "wrong", Past: hour(wrong), Now: spoiled(wrong)},
		{Name: "many", Now: manyPools(30)},
	}
}

// newPools is one pool in three zones, with a Balancer and a federated autoscaler.
func newPools(replicas, excess int) overview.Overview {
	o := overview.Overview{At: now}
	pool := overview.Pool{Namespace: "shoot--garden--prod", Name: "worker", Excess: "40%"}
	for _, place := range []string{"eu-west-1a", "eu-west-1b", "eu-west-1c"} {
		pool.Zones = append(pool.Zones, newZone("shoot--garden--prod-worker-"+place[len(place)-2:], place, replicas, excess))
	}
	o.Pools = []overview.Pool{pool}
	o.Balancers = []overview.Balancer{newBalancer()}
	o.Federated = []overview.Federated{newFederated()}
	return o
}

func newZone(name, place string, replicas, excess int) overview.Zone {
	z := overview.Zone{
		Name: name, Zone: place, Replicas: replicas, Excess: excess, Applied: excess, Bounds: &overview.Bounds{Min: 1, Max: 2 * (replicas + excess)},
		ReserveReady: overview.Condition{Status: "True", Reason: "ReserveReady", Message: fmt.Sprintf("%d of %d machines are ready", excess, excess), Since: now.Add(-time.Hour)},
		Count:        map[overview.State]int{},
	}
	add(&z, overview.Working, replicas, 3)
	add(&z, overview.ReserveReady, excess, 0)
	return z
}

// add gives a zone machines of a state.
func add(z *overview.Zone, state overview.State, n, pods int) {
	z.Count[state] += n
	for range n {
		i := len(z.Machines)
		name := fmt.Sprintf("%s-%05x", z.Name, i*7919%1048576)
		z.Machines = append(z.Machines, overview.Machine{
			Name: name, Node: "ip-10-250-0-" + fmt.Sprint(i) + ".eu-west-1.compute.internal", State: state, Since: now.Add(-time.Duration(i+1) * 7 * time.Minute), Pods: pods,
		})
	}
}

func newBalancer() overview.Balancer {
	return overview.Balancer{
		Namespace: "shop", Name: "checkout", Policy: "proportional", Replicas: 12,
		Targets: []overview.Target{
			{Name: "Deployment/checkout-a", Min: 1, Max: ptr.To(8), Wanted: 6, Current: 6, Ready: 6},
			{Name: "Deployment/checkout-b", Min: 1, Max: ptr.To(8), Wanted: 4, Current: 4, Ready: 3},
			{Name: "Deployment/checkout-c", Min: 0, Wanted: 2, Current: 2, Ready: 2},
		},
	}
}

func newFederated() overview.Federated {
	return overview.Federated{
		Namespace: "shop", Name: "web", Workload: "Deployment/web", Min: 3, Max: 30,
		Clusters: []overview.Cluster{
			{Name: "europe", Min: 1, Max: 14, Current: 9, Desired: 9, Ready: 9, Reachable: true},
			{Name: "america", Min: 1, Max: 12, Current: 10, Desired: 12, Ready: 8, Reachable: true},
			{Name: "asia", Min: 1, Max: 4, Current: 2, Desired: 2, Ready: 2, Reachable: true},
		},
	}
}

// hour is what led to an overview: growth that the reserve caught, and pods that waited for a moment.
func hour(to overview.Overview) []overview.Overview {
	var past []overview.Overview
	for at := -time.Hour + 10*time.Second; at < 0; at += 10 * time.Second {
		o := overview.Overview{At: to.At.Add(at)}
		minute := int((time.Hour + at).Minutes())
		missing := 0
		for _, m := range []int{12, 13, 14, 31, 32, 33, 34, 35} {
			if m == minute {
				missing = 1 + m%2
			}
		}
		if minute == 12 || minute == 31 {
			o.PodsWaiting = 14 - int((time.Hour+at).Seconds())%60/10*2
		}
		for _, pool := range to.Pools {
			for i, z := range pool.Zones {
				z.Replicas -= (i + 1) * z.Replicas / 12 * (60 - minute) / 60
				z.Count = map[overview.State]int{overview.ReserveReady: max(0, z.Excess-missing)}
				z.Machines = nil
				o.Pools = append(o.Pools, overview.Pool{Namespace: pool.Namespace, Zones: []overview.Zone{z}})
			}
		}
		past = append(past, o)
	}
	return past
}

// spoiled is an overview in which everything is wrong, with names that are attacks.
func spoiled(o overview.Overview) overview.Overview {
	o.PodsWaiting = 37
	pool := o.Pools[0]
	pool.Skew = 4
	pool.Name = `"><script>document.title="owned"</script>`
	for i := range pool.Zones {
		z := &pool.Zones[i]
		z.ReserveReady = overview.Condition{Status: "False", Reason: "MachinesNotReady", Message: "1 of 2 machines are ready; 1 does not get ready: insufficient capacity in eu-west-1", Since: now.Add(-9 * time.Minute)}
		z.Applied, z.Rollout = 1, i == 1
		add(z, overview.Booting, 1, 0)
		add(z, overview.ReserveBooting, 2, 0)
		add(z, overview.Leaving, 1, 1)
		add(z, overview.Failed, 1, 2)
		z.Machines[len(z.Machines)-1].Why = `Cloud provider message: <img src=x onerror="document.title='owned'"> quota of vCPU exceeded`
		for n := range z.Machines {
			z.Machines[n].Pods = -1
		}
	}
	pool.Zones[0].Zone = ""
	o.Pools[0] = pool
	o.Balancers[0].Targets[1].Why = "blocked: 2 pods wait for room since 11:52"
	o.Federated[0].Clusters[1].Limited = true
	o.Federated[0].Clusters[2].Reachable = false
	o.Missing = []string{"pods: you may not list them in cluster target, so that machines with pods are not told apart"}
	for i := range 11 {
		o.Troubles = append(o.Troubles, overview.Trouble{
			Object: fmt.Sprintf("machinedeployment/shoot--garden--prod/worker-%d", i),
			What:   "A machine in reserve does not get ready: quota of vCPU exceeded in eu-west-1",
			Do:     "Raise the quota, or lower spec.excessReplicas to 1",
		})
	}
	return o
}

// manyPools is many small pools, some of which have one zone.
func manyPools(n int) overview.Overview {
	o := overview.Overview{At: now, PodsWaiting: -1}
	for i := range n {
		pool := overview.Pool{Namespace: "shoot--garden--prod", Name: fmt.Sprintf("worker-%02d", i)}
		for zone := range 1 + i%3 {
			pool.Zones = append(pool.Zones, newZone(fmt.Sprintf("%s-z%d", pool.Name, zone), fmt.Sprintf("zone-%d", zone), i%7, i%3))
		}
		o.Pools = append(o.Pools, pool)
	}
	return o
}
