// SPDX-License-Identifier: Apache-2.0

package page

import (
	"strconv"

	"github.com/evenkeel/evenkeel/internal/overview"
)

// balancer is a Balancer as the page shows it.
type balancer struct {
	overview.Balancer
	Rows []share
}

// share is one line of a Balancer or a federated autoscaler: what a target or a cluster has, of its
// maximum.
type share struct {
	Name  string
	Scale bar
	// Numbers describes the bar in words, Range the minimum and the maximum.
	Ready, Current, Wanted int
	Range                  string
	// Why describes a problem; empty if there is none.
	Why string
}

func newBalancers(all []overview.Balancer) []balancer {
	shown := make([]balancer, len(all))
	for i, b := range all {
		shown[i] = balancer{b, newTargets(b)}
	}
	return shown
}

// newTargets draws the targets of a Balancer on one scale.
func newTargets(b overview.Balancer) []share {
	end := 1
	for _, t := range b.Targets {
		end = max(end, t.Wanted, t.Current, t.Ready)
		if t.Max != nil && *t.Max <= b.Replicas {
			end = max(end, *t.Max)
		}
	}
	shares := make([]share, len(b.Targets))
	for i, t := range b.Targets {
		s := share{Name: t.Name, Scale: newBar(end), Ready: t.Ready, Current: t.Current, Wanted: t.Wanted, Why: t.Why, Range: "from " + strconv.Itoa(t.Min)}
		if t.Max != nil {
			s.Range = strconv.Itoa(t.Min) + " to " + strconv.Itoa(*t.Max)
			s.Scale.addPart("room", 0, *t.Max)
		} else {
			s.Scale.addPart("room", 0, end)
		}
		s.drawBar()
		shares[i] = s
	}
	return shares
}

// drawBar draws ready and other replicas, and marks the desired number.
func (s *share) drawBar() {
	s.Scale.addPart("ready", 0, min(s.Ready, s.Current))
	s.Scale.addPart("unready", min(s.Ready, s.Current), s.Current)
	s.Scale.addMark("wanted", s.Wanted)
}

// federated is a federated autoscaler as the page shows it.
type federated struct {
	overview.Federated
	Rows []share
}

func newFederated(all []overview.Federated) []federated {
	shown := make([]federated, len(all))
	for i, f := range all {
		shown[i] = federated{f, newClusters(f)}
	}
	return shown
}

// newClusters draws the clusters of a federated autoscaler on one scale.
func newClusters(f overview.Federated) []share {
	end := 1
	for _, c := range f.Clusters {
		end = max(end, c.Max, c.Current, c.Desired)
	}
	shares := make([]share, len(f.Clusters))
	for i, c := range f.Clusters {
		s := share{
			Name: c.Name, Scale: newBar(end), Ready: c.Ready, Current: c.Current, Wanted: c.Desired, Why: clusterTrouble(c),
			Range: strconv.Itoa(c.Min) + " to " + strconv.Itoa(c.Max),
		}
		s.Scale.addPart("room", 0, c.Max)
		s.drawBar()
		shares[i] = s
	}
	return shares
}

func clusterTrouble(c overview.Cluster) string {
	switch {
	case !c.Reachable:
		return "unreachable: these numbers are not up to date"
	case c.Limited && c.Why == "":
		return "needs more replicas, but is at its maximum"
	default:
		return c.Why
	}
}
