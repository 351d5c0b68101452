// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reserve keeps spare machines in MachineDeployments of its namespace. The number of machines is
// the largest of spec.replicas, spec.amount and the schedules that are active now.
// HorizontalPodAutoscaler, KEDA and kubectl scale set spec.replicas.
//
// If several Reserves select a MachineDeployment, the largest of their requests and of its own
// excess counts. The maximum in its bounds limits all of them.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=rsv
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desiredReplicas`,description="Spare machines that are desired now."
// +kubebuilder:printcolumn:name="Ready-Machines",type=integer,JSONPath=`.status.readyReplicas`,description="Spare machines that are ready for workload."
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether all desired machines are ready."
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is ready, or not."
// +kubebuilder:printcolumn:name="Next-Change",type=string,JSONPath=`.status.nextChange.time`,description="When a schedule changes the number of machines next."
// +kubebuilder:printcolumn:name="Then",type=integer,JSONPath=`.status.nextChange.desiredReplicas`,description="Spare machines that are desired after that."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the object was created."
type Reserve struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is how many spare machines to keep, when and where.
	Spec ReserveSpec `json:"spec"`

	// Status is the most recently observed state.
	// +optional
	Status ReserveStatus `json:"status,omitempty"`
}

// ReserveSpec is how many spare machines to keep, when and where.
type ReserveSpec struct {
	// Pools selects the MachineDeployments that keep the machines. The machines are spread evenly
	// over them.
	Pools ReservePools `json:"pools"`

	// Replicas is a number of spare machines, which the scale subresource changes. Default 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas"`

	// Amount is how much to keep, if it is more than replicas: a count ("2"), a percentage of the
	// replicas of all selected MachineDeployments ("5%"), resources ("cpu=16,memory=64Gi", "cpu=10%"),
	// or the largest of these ("max(1,5%)"). Results are rounded up to whole machines.
	// +optional
	Amount ReserveAmount `json:"amount,omitempty"`

	// Schedules are times at which to keep more. Of all that are active, the largest counts.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Schedules []ReserveSchedule `json:"schedules,omitempty"`

	// Prepare lists images that reserve machines of the selected MachineDeployments pull before
	// workload comes.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Prepare []Preparation `json:"prepare,omitempty"`

	// Suspend stops the Reserve from requesting machines. Its machines are deleted unless another
	// request needs them.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// ReserveAmount is an amount of machines or of resources.
//
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(((0|[1-9][0-9]{0,9})|(0|[1-9][0-9]{0,2}|1000)%|([a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?=((0|[1-9][0-9]{0,2}|1000)%|((0|[1-9][0-9]{0,29})|(0|[1-9][0-9]{0,6})\.[0-9]{1,3})(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?))|([a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?=((0|[1-9][0-9]{0,2}|1000)%|((0|[1-9][0-9]{0,29})|(0|[1-9][0-9]{0,6})\.[0-9]{1,3})(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?)(,([a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?=((0|[1-9][0-9]{0,2}|1000)%|((0|[1-9][0-9]{0,29})|(0|[1-9][0-9]{0,6})\.[0-9]{1,3})(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?))+|max\(((0|[1-9][0-9]{0,9})|(0|[1-9][0-9]{0,2}|1000)%|([a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?=((0|[1-9][0-9]{0,2}|1000)%|((0|[1-9][0-9]{0,29})|(0|[1-9][0-9]{0,6})\.[0-9]{1,3})(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?))(,((0|[1-9][0-9]{0,9})|(0|[1-9][0-9]{0,2}|1000)%|([a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?=((0|[1-9][0-9]{0,2}|1000)%|((0|[1-9][0-9]{0,29})|(0|[1-9][0-9]{0,6})\.[0-9]{1,3})(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?)))+\))$')`,message="write a count (2), a percentage of replicas (5%), resources (cpu=16,memory=64Gi or cpu=10%), or the largest of these (max(1,5%)), without spaces"
type ReserveAmount string

// ReservePools selects MachineDeployments in the namespace of the Reserve: those that match any of
// the fields.
//
// +kubebuilder:validation:XValidation:rule="has(self.names) || has(self.selector) || has(self.workerPools)",message="select MachineDeployments: set names, selector or workerPools"
type ReservePools struct {
	// Names of MachineDeployments.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Names []string `json:"names,omitempty"`

	// Selector selects MachineDeployments by their labels. An empty selector selects all.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// WorkerPools are names of Gardener worker pools: the label worker.gardener.cloud/pool of
	// MachineDeployments, or of their node templates.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	WorkerPools []string `json:"workerPools,omitempty"`
}

// ReserveSchedule is active from each start until the next end, or for a duration.
//
// +kubebuilder:validation:XValidation:rule="has(self.end) != has(self.duration)",message="set either end or duration"
// +kubebuilder:validation:XValidation:rule="has(self.replicas) || has(self.amount)",message="the amount is missing: set replicas, for example 5, or amount, for example 10%"
type ReserveSchedule struct {
	// Name of the schedule.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Start is when the schedule becomes active, in five fields as in a crontab: minute, hour, day of
	// the month, month, day of the week, for example "0 7 * * MON-FRI". When clocks change, a skipped
	// time counts right after the change, and a repeated one counts the first time.
	Start CronText `json:"start"`

	// End is when the schedule becomes inactive, in the form of start. Exactly one of end and
	// duration is set.
	// +optional
	End CronText `json:"end,omitempty"`

	// Duration is how long the schedule stays active after each start, for example "8h" or "90m".
	// At least 1m.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`!self.matches('^([0-9]+(\\.[0-9]+)?(s|m|h))+$') || duration(self) >= duration('1m')`,message="duration must be at least 1m"
	// +kubebuilder:validation:XValidation:rule=`self.matches('^([0-9]+(\\.[0-9]+)?(s|m|h))+$')`,message="write the duration in hours, minutes and seconds, for example 8h or 1h30m"
	Duration string `json:"duration,omitempty"`

	// TimeZone of start and end, for example "Europe/Berlin". Default "Etc/UTC".
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self != 'Local' && self.matches('^[A-Za-z0-9_+/-]*$')",message="use a time zone of the IANA database, for example Europe/Berlin"
	TimeZone string `json:"timeZone,omitempty"`

	// Replicas is a number of spare machines to keep while the schedule is active.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// Amount is what to keep while the schedule is active, in the form of spec.amount. The larger
	// of replicas and amount counts.
	// +optional
	Amount ReserveAmount `json:"amount,omitempty"`

	// Suspend turns this schedule off.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// CronText is a time in five fields as in a crontab.
//
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:XValidation:rule=`self.matches('^[0-9A-Za-z*,/-]+( +[0-9A-Za-z*,/-]+){4}$')`,message="write five fields (minute, hour, day of the month, month, day of the week), for example 0 7 * * MON-FRI"
type CronText string

// ReserveStatus is the most recently observed state of a Reserve.
type ReserveStatus struct {
	// ObservedGeneration is the generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// DesiredReplicas is the number of spare machines that are desired now.
	// +optional
	DesiredReplicas int32 `json:"desiredReplicas"`

	// Replicas is the number of these machines that exist.
	// +optional
	Replicas int32 `json:"replicas"`

	// ReadyReplicas is the number of these machines that are ready for workload.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// Selector matches no pod. HorizontalPodAutoscaler and KEDA require one.
	// +optional
	Selector string `json:"selector,omitempty"`

	// ActiveSchedules are the names of the schedules that are active now.
	// +optional
	// +listType=atomic
	ActiveSchedules []string `json:"activeSchedules,omitempty"`

	// NextChange is the next change of the number of machines by a schedule, if any.
	// +optional
	NextChange *ReserveChange `json:"nextChange,omitempty"`

	// Pools are the selected MachineDeployments.
	// +optional
	// +listType=map
	// +listMapKey=name
	Pools []ReservePoolStatus `json:"pools,omitempty"`

	// Conditions has the condition Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ReserveChange is a change that schedules will make.
type ReserveChange struct {
	// Time of the change.
	Time metav1.Time `json:"time"`

	// DesiredReplicas is the number of machines from then on, if the replicas of MachineDeployments
	// stay as they are now.
	DesiredReplicas int32 `json:"desiredReplicas"`
}

// ReservePoolStatus is the state of one MachineDeployment.
type ReservePoolStatus struct {
	// Name of the MachineDeployment.
	Name string `json:"name"`

	// DesiredReplicas is how many spare machines this Reserve requests there.
	DesiredReplicas int32 `json:"desiredReplicas"`

	// ReadyReplicas is how many of them are ready.
	ReadyReplicas int32 `json:"readyReplicas"`

	// Blocked is true while machines cannot be created there, and others replace them.
	// +optional
	Blocked bool `json:"blocked,omitempty"`

	// CountedBy names the larger request that counts there instead of this Reserve: another Reserve,
	// or the excess of the MachineDeployment.
	// +optional
	CountedBy string `json:"countedBy,omitempty"`
}

// ReserveList is a list of Reserves.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type ReserveList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items is the list of Reserves.
	Items []Reserve `json:"items"`
}
