// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"time"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

// View is all that one decision rests on.
type View struct {
	Now time.Time
	// Object is what the user wrote; its status is the ledger of what was promised to whom.
	Object *v1alpha1.FederatedHorizontalPodAutoscaler
	// Stop is why nothing may be done for it.
	Stop Hold
	// Clusters that are registered or in the ledger, by name.
	Clusters []Cluster
}

// Hold is why something is left alone. The zero value is that it is not.
type Hold struct{ Reason, Message string }

// Bounds of an autoscaler. A maximum of 0 means that there is no autoscaler.
type Bounds struct{ Min, Max int64 }

// Cluster is what is known of one member.
type Cluster struct {
	Name string
	// Registered means that the hub knows it, Selected that the object wants it too.
	Registered, Selected bool
	// Starting means that it became known a moment ago and has not answered yet.
	Starting bool
	// Reachable means that its caches are filled, it answers, and what follows is up to date.
	Reachable bool
	// Since is when it was last heard of; zero if that is not known.
	Since time.Time
	// Fault is why nothing can be written to it although it can be reached.
	Fault Hold
	// Pausing means that the last write went wrong, and that the next one waits a little.
	Pausing bool
	// Local is its autoscaler of the object's name, if that is ours or may be adopted; Absent means that there certainly is
	// none of that name. With neither, nothing is known.
	Local  *Local
	Absent bool
	// Shown is the version up to which its autoscalers are known, and Verified a ConfirmedVersion of the ledger that the
	// cluster certainly does not have any more.
	Shown, Verified string
	// Foreign is another client's autoscaler on the workload, or with the same name.
	Foreign Hold
	// InFlight is what is being written at this moment, and Sent since when.
	InFlight *Bounds
	Sent     time.Time
	// Rejected is the epoch of the last write, if that certainly had no effect.
	Rejected int64
	Workload Workload
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
	// Drifted reports whether something other than its bounds is not as it should be.
	Drifted bool
	// Unclaimed reports whether server-side apply has yet to claim its fields.
	Unclaimed bool
}

// Workload is what the autoscaler scales.
type Workload struct {
	// Known means that it has been looked for; Exists that it was found.
	Known, Exists bool
	// Counted means that its ready replicas are known.
	Counted bool
	Ready   int64
	// Ours reports whether it was created from the template; Drifted whether it differs from the
	// template.
	Ours, Drifted bool
	Version, UID  string
	// Fault is why it cannot be found.
	Fault Hold
}
