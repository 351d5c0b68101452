// SPDX-License-Identifier: Apache-2.0

// Package overview is what people look at: pools by zones, their machines, Balancers and federated autoscalers at one
// instant, and what is wrong with them. The plugin's screens, its pages and its JSON all print this one value.
//
// It is pure: New makes it of objects that somebody else has read.
package overview

import "time"

// Overview is everything there is to see at one instant.
type Overview struct {
	// At is when the objects were read.
	At time.Time `json:"at"`
	// Pools are sorted by namespace and name.
	Pools []Pool `json:"pools"`
	// Balancers are sorted by namespace and name.
	Balancers []Balancer `json:"balancers"`
	// Federated are the federated autoscalers, sorted by namespace and name.
	Federated []Federated `json:"federated"`
	// PodsWaiting is how many pods the scheduler found no room for; -1 where pods could not be read.
	PodsWaiting int `json:"podsWaiting"`
	// Troubles are what is wrong, the worst first.
	Troubles []Trouble `json:"troubles"`
	// Missing says what could not be read, in a line each.
	Missing []string `json:"missing,omitempty"`
}

// Pool is the MachineDeployments that differ in nothing but their zone.
type Pool struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Excess is what was asked for the whole pool, as it was written; empty where each zone has an excess of its own.
	Excess string `json:"excess,omitempty"`
	// Skew is by how many replicas the largest zone is ahead of the smallest.
	Skew int `json:"skew"`
	// Zones are sorted by zone, then by name.
	Zones []Zone `json:"zones"`
}

// Zone is one MachineDeployment.
type Zone struct {
	// Name is the MachineDeployment's.
	Name string `json:"name"`
	// Zone is where its machines are; empty where nothing tells.
	Zone string `json:"zone,omitempty"`
	// Replicas is R: machines for workload.
	Replicas int `json:"replicas"`
	// Excess is X: machines wanted beyond replicas.
	Excess int `json:"excess"`
	// Asked is the excess as it was written: a count, a percentage, resources, or nothing.
	Asked string `json:"asked,omitempty"`
	// Reserve is the name of the Reserve that asks for the excess; empty where none does, or not for more than is asked for anyway.
	Reserve string `json:"reserve,omitempty"`
	// Applied is A: what machine-controller-manager is asked to run on top of replicas now.
	Applied int `json:"applied"`
	// Counted is how many machines of the reserve spec.replicas includes.
	Counted int `json:"counted,omitempty"`
	// Bounds are min and max; nil where there are none.
	Bounds *Bounds `json:"bounds,omitempty"`
	// Rollout says that machines of an older template are being replaced.
	Rollout bool `json:"rollout,omitempty"`
	// ReserveReady is the condition of that name.
	ReserveReady Condition `json:"reserveReady"`
	// Count is how many machines there are of each state.
	Count map[State]int `json:"count"`
	// Machines are sorted by state, then the oldest first.
	Machines []Machine `json:"machines"`
}

// Bounds limit a MachineDeployment's machines.
type Bounds struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// Condition is one of an object's conditions.
type Condition struct {
	// Status is True, False or Unknown; empty where the object has no such condition.
	Status  string    `json:"status,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

// State is what a machine is doing.
type State string

// The states, in the order in which they are shown.
const (
	Working        State = "working"
	Booting        State = "booting"
	ReserveReady   State = "reserve ready"
	ReserveBooting State = "reserve booting"
	Leaving        State = "leaving"
	Failed         State = "failed"
)

// States are all states, in the order in which they are shown.
var States = []State{Working, Booting, ReserveReady, ReserveBooting, Leaving, Failed}

// Machine is one machine.
type Machine struct {
	Name  string `json:"name"`
	Node  string `json:"node,omitempty"`
	State State  `json:"state"`
	// Since is when it went into reserve, began to leave or failed, and otherwise when it was created.
	Since time.Time `json:"since"`
	// Pods is how many pods are on it that would have to move; -1 where pods could not be read.
	Pods int `json:"pods"`
	// Why says what is wrong with it; empty where nothing is.
	Why string `json:"why,omitempty"`
}

// Balancer is one Balancer.
type Balancer struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Policy    string `json:"policy"`
	Replicas  int    `json:"replicas"`
	// Targets are in the order in which they were written.
	Targets []Target `json:"targets"`
}

// Target is where a Balancer puts replicas.
type Target struct {
	Name string `json:"name"`
	// Min and Max limit the share; Max is nil where nothing does.
	Min int  `json:"min"`
	Max *int `json:"max,omitempty"`
	// Wanted is its share, Current what it has, Ready how many of those are ready.
	Wanted  int `json:"wanted"`
	Current int `json:"current"`
	Ready   int `json:"ready"`
	// Why says what is wrong with it; empty where nothing is.
	Why string `json:"why,omitempty"`
}

// Federated is one FederatedHorizontalPodAutoscaler.
type Federated struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Workload  string    `json:"workload"`
	Min       int       `json:"min"`
	Max       int       `json:"max"`
	Clusters  []Cluster `json:"clusters"`
}

// Cluster is a federated autoscaler's part in one member cluster.
type Cluster struct {
	Name string `json:"name"`
	// Min and Max are what the cluster's own autoscaler has confirmed.
	Min     int `json:"min"`
	Max     int `json:"max"`
	Current int `json:"current"`
	Desired int `json:"desired"`
	Ready   int `json:"ready"`
	// State is what the cluster is to the autoscaler: Idle, Joining, Waiting, Used, Frozen, Refused, Leaving, Unreachable.
	State string `json:"state,omitempty"`
	// Why says why it is in that state, where that is not plain.
	Why string `json:"why,omitempty"`
	// Reachable says that the cluster answers; what is shown of one that does not is old.
	Reachable bool `json:"reachable"`
	// Limited says that it would scale further, and its max forbids.
	Limited bool `json:"limited"`
}

// Trouble is one thing that is wrong.
type Trouble struct {
	// Object is what it is about: kind/namespace/name.
	Object string `json:"object"`
	// What is wrong, and what to Do about it.
	What string `json:"what"`
	Do   string `json:"do"`
}
