// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

// View is everything that one decision depends on.
type View struct {
	Now time.Time
	// Object is the user's object. Its status is the ledger of what was promised to which cluster.
	Object *v1alpha1.FederatedHorizontalPodAutoscaler
	// Stop is why nothing may be done for it.
	Stop Hold
	// Clusters are all that are registered or in the ledger, by name.
	Clusters []Cluster
}

// Hold is why something is not changed. The zero value means that nothing prevents changes.
type Hold struct{ Reason, Message string }

// Bounds of an autoscaler. A maximum of 0 means that there is no autoscaler.
type Bounds struct{ Min, Max int64 }

// Youth is how long a new cluster may take to answer before it counts as unreachable.
const Youth = 15 * time.Second

// Cluster is what is known about one member.
type Cluster struct {
	Name string
	// Registered reports whether the hub knows it, Selected whether the object also selects it.
	Registered, Selected bool
	// Starting reports whether it was registered a moment ago and has not answered yet.
	Starting bool
	// Young reports whether the hub began to watch it a moment ago and has not read it yet. Unless it is
	// also Starting, a first try has failed.
	Young bool
	// Reachable reports whether its caches are filled and it answers, so that the fields below are
	// up to date.
	Reachable bool
	// Unprobed reports whether it counts as unreachable only because a write got no answer a moment ago: the
	// next probes will show whether it is.
	Unprobed bool
	// Since is when it last answered; zero if that is unknown.
	Since time.Time
	// Fault is why nothing can be written to it although it is reachable.
	Fault Hold
	// Pausing reports whether the last write failed, so that the next one waits a little.
	Pausing bool
	// Local is its autoscaler with the object's name, if it is ours or may be adopted. Absent
	// reports whether it certainly has none of that name. If neither is set, nothing is known.
	Local  *Local
	Absent bool
	// Alias reports whether Local or Workload is that of another cluster in the view, too, and counts
	// there: both names are those of one cluster. Doubtful reports whether that is only possible,
	// because the other one has yet to be read.
	Alias, Doubtful bool
	// Shown is the version up to which its autoscalers are known. Verified is a version
	// from the ledger that the cluster certainly no longer has.
	Shown, Verified string
	// Foreign describes another client's autoscaler on the workload, or with the same name.
	Foreign Hold
	// InFlight is the order that is being sent now, and Sent when that began.
	InFlight *Bounds
	Sent     time.Time
	// Rejected is the epoch of the last write, if it certainly had no effect.
	Rejected int64
	Workload Workload
}

// taken reports whether another client's autoscaler has the name of the object's.
func (c Cluster) taken() bool {
	return c.Reachable && c.Local == nil && !c.Absent && c.Foreign != Hold{}
}

// Local is a cluster's autoscaler.
type Local struct {
	Bounds
	Version, UID string
	// Current and Desired are its replicas, as it reports them.
	Current, Desired int64
	Limit            v1alpha1.LimitedBy
	// Demand is the number of replicas that its metrics require: above Desired if a maximum limits
	// it, below if a minimum does. 0 if that is unknown.
	Demand int64
	// Inactive is why it does not scale.
	Inactive Hold
	// New reports whether it has yet to look at its workload. AtZero reports whether it has scaled its
	// workload to 0, and a minimum above 0 would turn it off.
	New, AtZero bool
	// Ours reports whether it was created for the object; Drifted whether anything other than its
	// bounds differs from the blueprint.
	Ours, Drifted bool
	// Terminating reports whether it is deleted, and scales until its finalizers are removed.
	Terminating bool
	// Unclaimed reports whether server-side apply has yet to claim its fields.
	Unclaimed bool
}

// Workload is what the autoscaler scales.
type Workload struct {
	// Known reports whether the cluster was asked for it, Exists whether it was found.
	Known, Exists bool
	// Counted reports whether its ready replicas are known.
	Counted bool
	Ready   int64
	// AtZero reports whether 0 replicas are requested, and the object allows that. A new autoscaler
	// with a minimum above 0 would not scale it.
	AtZero bool
	// Requested is the number of replicas that it asks for, -1 if its kind does not show that.
	Requested int64
	// AsOf is the time of which all changes of workloads are certainly known.
	AsOf time.Time
	// Zeroed reports whether the hub has scaled it to 0. Autoscaled reports whether an autoscaler of
	// another client scales it.
	Zeroed, Autoscaled bool
	// Ours reports whether it was created from the template; Drifted whether it differs from the
	// template.
	Ours, Drifted bool
	// Terminating reports whether it is deleted, and exists until its finalizers are removed.
	Terminating  bool
	Version, UID string
	// Arriving reports whether a creation that was sent may take effect, or has done so a moment
	// ago.
	Arriving bool
	// Fault is why it cannot be found.
	Fault Hold
	// Refused is why the cluster refused the last write of it.
	Refused Hold
}
