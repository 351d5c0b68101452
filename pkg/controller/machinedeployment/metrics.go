// SPDX-License-Identifier: Apache-2.0

package machinedeployment

import (
	"iter"
	"strconv"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	stock "github.com/gardener/machine-controller-manager/pkg/metrics"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/stores"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// metrics shows MachineDeployments and MachineSets when it is read. Names and labels are those of
// machine-controller-manager, for the dashboards and alerts of its users.
type metrics struct {
	deployments, sets cache.Indexer
	// stale counts machines that were deleted because they had been unhealthy for too long.
	stale    prometheus.Counter
	failures *prometheus.CounterVec
}

// The kinds of failures that scrapes count.
const (
	deploymentFailure = "Machinedeployment-count"
	setFailure        = "Machineset-count"
)

// newMetrics registers the metrics with r, if that is not nil. r must not be the default registry: the
// package of machine-controller-manager's metrics registers the same names there when it is imported. All
// but one of those show nothing while its controllers do not run. That one leaves the default registry,
// since no name can be shown twice.
func newMetrics(r prometheus.Registerer, deployments, sets cache.Indexer) *metrics {
	m := &metrics{
		deployments: deployments, sets: sets,
		stale: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mcm_machine_stale_machines_total", Help: "Machines that were deleted because they were unhealthy for too long.",
		}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcm_misc_scrape_failure_total", Help: "Series that could not be shown, by kind.", ConstLabels: prometheus.Labels{"binary": "machine-controller-manager"},
		}, []string{"kind"}),
	}
	if r != nil {
		prometheus.Unregister(stock.StaleMachineCount)
		r.MustRegister(m.stale, m.failures, m)
	}
	return m
}

// noteDeleted counts a machine that was deleted, if it had failed a health check.
func (m *metrics) noteDeleted(one *mcm.Machine) {
	if one.Status.CurrentStatus.Phase == mcm.MachineFailed && one.Status.LastOperation.Type == mcm.MachineOperationHealthCheck {
		m.stale.Inc()
	}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(into chan<- *prometheus.Desc) {
	into <- deploymentCount
	into <- setCount
	for _, f := range ofDeployments {
		into <- f.desc
	}
	for _, f := range ofSets {
		into <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(into chan<- prometheus.Metric) {
	show(m, into, deploymentFailure, deploymentCount, ofDeployments, stores.All[*machine.MachineDeployment](m.deployments))
	show(m, into, setFailure, setCount, ofSets, stores.All[*mcm.MachineSet](m.sets))
}

// show shows the series of all objects of a kind, and their number.
func show[T metav1.Object](m *metrics, into chan<- prometheus.Metric, failure string, count *prometheus.Desc, families []family[T], all iter.Seq[T]) {
	emit := func(desc *prometheus.Desc, value float64, labels ...string) {
		series, err := prometheus.NewConstMetric(desc, prometheus.GaugeValue, value, labels...)
		if err != nil {
			m.failures.WithLabelValues(failure).Inc()
			return
		}
		into <- series
	}
	n := 0
	for o := range all {
		n++
		for _, f := range families {
			f.collect(o, func(value float64, labels ...string) {
				emit(f.desc, value, append([]string{o.GetName(), o.GetNamespace()}, labels...)...)
			})
		}
	}
	emit(count, float64(n))
}

// family is a metric of objects of a kind. It has the labels name and namespace, and those that it names.
type family[T any] struct {
	desc    *prometheus.Desc
	collect func(o T, add func(value float64, labels ...string))
}

func newFamily[T any](name, help string, labels []string, collect func(o T, add func(value float64, labels ...string))) family[T] {
	return family[T]{prometheus.NewDesc(name, help, append([]string{"name", "namespace"}, labels...), nil), collect}
}

// number is a metric that each object has.
func number[T any](name, help string, of func(T) int32) family[T] {
	return newFamily(name, help, nil, func(o T, add func(float64, ...string)) { add(float64(of(o))) })
}

// optional is a metric of the objects that have such a number.
func optional[T any](name, help string, of func(T) *int32) family[T] {
	return newFamily(name, help, nil, func(o T, add func(float64, ...string)) {
		if n := of(o); n != nil {
			add(float64(*n))
		}
	})
}

// failedLabels are those of a failed machine.
var failedLabels = []string{
	"failed_machine_name", "failed_machine_provider_id", "failed_machine_owner_ref",
	"failed_machine_last_operation_state", "failed_machine_last_operation_machine_operation_type",
}

// failedMachines is a metric that is 1 for each failed machine.
func failedMachines[T any](name, help string, of func(T) []mcm.MachineSummary) family[T] {
	return newFamily(name, help, failedLabels, func(o T, add func(float64, ...string)) {
		seen := map[[5]string]bool{}
		for _, m := range of(o) {
			labels := [5]string{m.Name, m.ProviderID, m.OwnerRef, string(m.LastOperation.State), string(m.LastOperation.Type)}
			if !seen[labels] {
				add(1, labels[:]...)
			}
			seen[labels] = true
		}
	})
}

// conditionValues are what a metric shows of the status of a condition.
var conditionValues = map[mcm.ConditionStatus]float64{mcm.ConditionTrue: 1, mcm.ConditionFalse: 0, mcm.ConditionUnknown: 2}

// conditions is a metric of each condition.
func conditions[T, C any](name, help string, all func(T) []C, of func(C) (string, mcm.ConditionStatus)) family[T] {
	return newFamily(name, help, []string{"condition"}, func(o T, add func(float64, ...string)) {
		seen := map[string]bool{}
		for _, c := range all(o) {
			kind, status := of(c)
			if !seen[kind] {
				add(conditionValues[status], kind)
			}
			seen[kind] = true
		}
	})
}

func createdAt(o metav1.Object) string {
	return strconv.FormatInt(o.GetCreationTimestamp().Unix(), 10)
}

var setCount = prometheus.NewDesc("mcm_machine_set_items_total", "MachineSets.", nil, nil)

var ofSets = []family[*mcm.MachineSet]{
	newFamily("mcm_machine_set_info", "1 for each MachineSet, with the class of its machines.",
		[]string{"createdAt", "spec_machine_class_api_group", "spec_machine_class_kind", "spec_machine_class_name"},
		func(s *mcm.MachineSet, add func(float64, ...string)) {
			class := s.Spec.Template.Spec.Class
			add(1, createdAt(s), class.APIGroup, class.Kind, class.Name)
		}),
	number("mcm_machine_set_info_spec_replicas", "Machines that a MachineSet is to have.", func(s *mcm.MachineSet) int32 { return s.Spec.Replicas }),
	number("mcm_machine_set_info_spec_min_ready_seconds", "spec.minReadySeconds of a MachineSet.",
		func(s *mcm.MachineSet) int32 { return s.Spec.MinReadySeconds }),
	number("mcm_machine_set_status_available_replicas", "Machines of a MachineSet that are available.",
		func(s *mcm.MachineSet) int32 { return s.Status.AvailableReplicas }),
	number("mcm_machine_set_status_fully_labelled_replicas", "Machines of a MachineSet that have all labels of its template.",
		func(s *mcm.MachineSet) int32 { return s.Status.FullyLabeledReplicas }),
	number("mcm_machine_set_status_ready_replicas", "Machines of a MachineSet that run.",
		func(s *mcm.MachineSet) int32 { return s.Status.ReadyReplicas }),
	number("mcm_machine_set_status_replicas", "Machines of a MachineSet, those that are leaving included.",
		func(s *mcm.MachineSet) int32 { return s.Status.Replicas }),
	conditions("mcm_machine_set_status_condition", "Conditions of a MachineSet: 1 is True, 0 False, 2 Unknown.",
		func(s *mcm.MachineSet) []mcm.MachineSetCondition { return s.Status.Conditions },
		func(c mcm.MachineSetCondition) (string, mcm.ConditionStatus) { return string(c.Type), c.Status }),
	failedMachines("mcm_machine_set_failed_machines", "1 for each machine of a MachineSet whose last operation failed.", func(s *mcm.MachineSet) []mcm.MachineSummary {
		if s.Status.FailedMachines == nil {
			return nil
		}
		return *s.Status.FailedMachines
	}),
}

var deploymentCount = prometheus.NewDesc("mcm_machine_deployment_items_total", "MachineDeployments.", nil, nil)

var ofDeployments = []family[*machine.MachineDeployment]{
	newFamily("mcm_machine_deployment_info", "1 for each MachineDeployment, with its strategy.", []string{"createdAt", "spec_strategy_type"},
		func(d *machine.MachineDeployment, add func(float64, ...string)) {
			add(1, createdAt(d), string(d.Spec.Strategy.Type))
		}),
	number("mcm_machine_deployment_info_spec_paused", "1 for a MachineDeployment that is paused, otherwise 0.",
		func(d *machine.MachineDeployment) int32 {
			if d.Spec.Paused {
				return 1
			}
			return 0
		}),
	number("mcm_machine_deployment_info_spec_replicas", "Machines that a MachineDeployment is to have.",
		func(d *machine.MachineDeployment) int32 { return d.Spec.Replicas }),
	number("mcm_machine_deployment_info_spec_min_ready_seconds", "spec.minReadySeconds of a MachineDeployment.",
		func(d *machine.MachineDeployment) int32 { return d.Spec.MinReadySeconds }),
	optional("mcm_machine_deployment_info_spec_rolling_update_max_surge", "Machines beyond replicas that there may be in a rollout.", maxSurge),
	optional("mcm_machine_deployment_info_spec_rolling_update_max_unavailable", "Machines of replicas that may be unavailable in a rollout.", maxUnavailable),
	optional("mcm_machine_deployment_info_spec_revision_history_limit", "Old MachineSets that a MachineDeployment keeps.",
		func(d *machine.MachineDeployment) *int32 { return d.Spec.RevisionHistoryLimit }),
	optional("mcm_machine_deployment_info_spec_progress_deadline_seconds", "spec.progressDeadlineSeconds of a MachineDeployment.",
		func(d *machine.MachineDeployment) *int32 { return d.Spec.ProgressDeadlineSeconds }),
	newFamily("mcm_machine_deployment_info_spec_rollback_to_revision", "The revision that a MachineDeployment goes back to.", nil, func(d *machine.MachineDeployment, add func(float64, ...string)) {
		if to := d.Spec.RollbackTo; to != nil {
			add(float64(to.Revision))
		}
	}),
	conditions("mcm_machine_deployment_status_condition", "Conditions of a MachineDeployment: 1 is True, 0 False, 2 Unknown.",
		func(d *machine.MachineDeployment) []mcm.MachineDeploymentCondition { return d.Status.Conditions },
		func(c mcm.MachineDeploymentCondition) (string, mcm.ConditionStatus) { return string(c.Type), c.Status }),
	number("mcm_machine_deployment_status_available_replicas", "Machines of a MachineDeployment that are available.",
		func(d *machine.MachineDeployment) int32 { return d.Status.AvailableReplicas }),
	number("mcm_machine_deployment_status_unavailable_replicas", "Machines that a MachineDeployment lacks.",
		func(d *machine.MachineDeployment) int32 { return d.Status.UnavailableReplicas }),
	number("mcm_machine_deployment_status_ready_replicas", "Machines of a MachineDeployment that run.",
		func(d *machine.MachineDeployment) int32 { return d.Status.ReadyReplicas }),
	number("mcm_machine_deployment_status_updated_replicas", "Machines of a MachineDeployment that have its template.",
		func(d *machine.MachineDeployment) int32 { return d.Status.UpdatedReplicas }),
	optional("mcm_machine_deployment_status_collision_count", "Names of MachineSets that were taken.",
		func(d *machine.MachineDeployment) *int32 { return d.Status.CollisionCount }),
	number("mcm_machine_deployment_status_replicas", "Machines of a MachineDeployment, those that are leaving included.",
		func(d *machine.MachineDeployment) int32 { return d.Status.Replicas }),
	failedMachines("mcm_machine_deployment_failed_machines", "1 for each machine of a MachineDeployment whose last operation failed.", func(d *machine.MachineDeployment) (failed []mcm.MachineSummary) {
		for _, m := range d.Status.FailedMachines {
			if m != nil {
				failed = append(failed, *m)
			}
		}
		return failed
	}),
}

// maxSurge returns how many machines beyond replicas RollingUpdate allows, nil if it says nothing.
func maxSurge(d *machine.MachineDeployment) *int32 {
	return inMachines(d, func(u mcm.UpdateConfiguration) *intstr.IntOrString { return u.MaxSurge }, true)
}

// maxUnavailable returns how many of replicas RollingUpdate lets be unavailable, nil if it says nothing.
func maxUnavailable(d *machine.MachineDeployment) *int32 {
	return inMachines(d, func(u mcm.UpdateConfiguration) *intstr.IntOrString { return u.MaxUnavailable }, false)
}

// inMachines returns a parameter of RollingUpdate in machines, nil if there is none.
func inMachines(d *machine.MachineDeployment, of func(mcm.UpdateConfiguration) *intstr.IntOrString, up bool) *int32 {
	strategy := d.Spec.Strategy
	if strategy.Type != mcm.RollingUpdateMachineDeploymentStrategyType || strategy.RollingUpdate == nil {
		return nil
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(of(strategy.RollingUpdate.UpdateConfiguration), int(d.Spec.Replicas), up)
	if err != nil {
		return nil
	}
	return new(int32(n))
}
