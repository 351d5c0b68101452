// SPDX-License-Identifier: Apache-2.0

package machinedeployment_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	stock "github.com/gardener/machine-controller-manager/pkg/metrics"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// scraped has a controller that does not run, and whose stores a spec fills.
type scraped struct {
	registry *prometheus.Registry
	stores   *stores.Informers
}

func newScraped() scraped {
	GinkgoHelper()
	client := versioned.NewForConfigOrDie(&rest.Config{Host: "http://nowhere.invalid"})
	s := scraped{prometheus.NewPedanticRegistry(), stores.New(client, fixture.Namespace)}
	c, err := New(Clients{Machines: client.MachineV1alpha1()}, Informers{Machines: s.stores}, record.NewFakeRecorder(1), Options{Registerer: s.registry})
	Expect(err).NotTo(HaveOccurred())
	ended, end := context.WithCancel(context.Background())
	end()
	c.Run(ended)
	return s
}

func (s scraped) put(informer cache.SharedIndexInformer, object any) {
	GinkgoHelper()
	Expect(informer.GetIndexer().Add(object)).To(Succeed())
}

// series are all that a registry shows, as name{label="value"} value.
func series(g prometheus.Gatherer) (all []string) {
	GinkgoHelper()
	families, err := g.Gather()
	Expect(err).NotTo(HaveOccurred())
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			all = append(all, fmt.Sprintf("%s{%s} %v", f.GetName(), strings.Join(labels, ","), m.GetGauge().GetValue()+m.GetCounter().GetValue()))
		}
	}
	return all
}

// of returns the series of one object, with neither its name nor the prefix.
func of(name string, all []string) (some []string) {
	label := regexp.MustCompile(fmt.Sprintf(`,?name=%q,namespace=%q,?`, name, fixture.Namespace))
	for _, one := range all {
		if label.MatchString(one) {
			one = label.ReplaceAllString(one, "")
			some = append(some, strings.ReplaceAll(strings.TrimPrefix(one, "mcm_"), "{}", ""))
		}
	}
	return some
}

// description is how client_golang prints one.
var description = regexp.MustCompile(`^Desc\{fqName: "(.*?)", help: ".*", constLabels: \{(.*?)\}, variableLabels: \{(.*?)\}\}$`)

// described returns the sorted labels of metrics, by name.
func described(collectors ...prometheus.Collector) map[string][]string {
	GinkgoHelper()
	into := make(chan *prometheus.Desc)
	go func() {
		defer close(into)
		for _, c := range collectors {
			c.Describe(into)
		}
	}()
	all := map[string][]string{}
	for desc := range into {
		parts := description.FindStringSubmatch(desc.String())
		Expect(parts).NotTo(BeNil(), desc.String())
		labels := slices.DeleteFunc(strings.Split(parts[2]+","+parts[3], ","), func(label string) bool { return label == "" })
		slices.Sort(labels)
		all[parts[1]] = labels
	}
	return all
}

// stockCollectors are all metrics of the stock binary's controllers.
type stockCollectors struct{}

func (stockCollectors) Describe(into chan<- *prometheus.Desc) {
	into <- stock.MachineSetCountDesc
	into <- stock.MachineDeploymentCountDesc
	stock.StaleMachineCount.Describe(into) // one of ours may have taken it out of the default registry
	prometheus.DefaultGatherer.(*prometheus.Registry).Describe(into)
}

func (stockCollectors) Collect(chan<- prometheus.Metric) {}

var _ = Describe("The metrics", func() {
	It("are all those of machine-controller-manager, with its labels", func() {
		theirs, ours := described(stockCollectors{}), described(newScraped().registry)
		for _, all := range []map[string][]string{theirs, ours} {
			maps.DeleteFunc(all, func(name string, _ []string) bool {
				return !strings.HasPrefix(name, "mcm_") || strings.HasPrefix(name, "mcm_reflector_")
			})
		}
		Expect(len(theirs)).To(BeNumerically(">", 25))
		Expect(ours).To(Equal(theirs))
	})

	It("are shown beside those of the default registry, where machine-controller-manager's are", func() {
		s := newScraped()
		s.put(s.stores.Sets(), &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "s"}})
		s.put(s.stores.Deployments(), &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "d"}})
		all := series(prometheus.Gatherers{s.registry, prometheus.DefaultGatherer})
		Expect(all).To(ContainElements("mcm_machine_stale_machines_total{} 0", "mcm_machine_set_items_total{} 1", "mcm_machine_deployment_items_total{} 1", ContainSubstring("go_goroutines")))
	})

	It("show a MachineSet", func() {
		s := newScraped()
		one := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "s", CreationTimestamp: metav1.Unix(1700000000, 0)}}
		one.Spec.Replicas, one.Spec.MinReadySeconds = 7, 8
		one.Spec.Template.Spec.Class = mcm.ClassSpec{APIGroup: "group", Kind: "MachineClass", Name: "class"}
		one.Status.Replicas, one.Status.AvailableReplicas, one.Status.ReadyReplicas, one.Status.FullyLabeledReplicas = 6, 5, 4, 3
		one.Status.Conditions = []mcm.MachineSetCondition{
			{Type: mcm.MachineSetFrozen, Status: mcm.ConditionTrue}, {Type: mcm.MachineSetReplicaFailure, Status: mcm.ConditionFalse}, {Type: "Other", Status: mcm.ConditionUnknown},
			{Type: mcm.MachineSetFrozen, Status: mcm.ConditionFalse},
		}
		failed := mcm.MachineSummary{Name: "m", ProviderID: "id", OwnerRef: "s", LastOperation: mcm.LastOperation{State: mcm.MachineStateFailed, Type: mcm.MachineOperationCreate}}
		one.Status.FailedMachines = &[]mcm.MachineSummary{failed, failed}
		s.put(s.stores.Sets(), one)
		Expect(of("s", series(s.registry))).To(ConsistOf(
			`machine_set_info{createdAt="1700000000"spec_machine_class_api_group="group",spec_machine_class_kind="MachineClass",spec_machine_class_name="class"} 1`,
			`machine_set_info_spec_replicas 7`,
			`machine_set_info_spec_min_ready_seconds 8`,
			`machine_set_status_replicas 6`,
			`machine_set_status_available_replicas 5`,
			`machine_set_status_ready_replicas 4`,
			`machine_set_status_fully_labelled_replicas 3`,
			`machine_set_status_condition{condition="Frozen"} 1`,
			`machine_set_status_condition{condition="ReplicaFailure"} 0`,
			`machine_set_status_condition{condition="Other"} 2`,
			`machine_set_failed_machines{failed_machine_last_operation_machine_operation_type="Create",failed_machine_last_operation_state="Failed",failed_machine_name="m",failed_machine_owner_ref="s",failed_machine_provider_id="id"} 1`,
		))
		Expect(s.stores.Sets().GetIndexer().Delete(one)).To(Succeed())
		Expect(of("s", series(s.registry))).To(BeEmpty(), "it is gone")
	})

	It("show a MachineDeployment", func() {
		s := newScraped()
		d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "d", CreationTimestamp: metav1.Unix(1700000000, 0)}}
		d.Spec.Replicas, d.Spec.MinReadySeconds, d.Spec.Paused = 7, 8, true
		d.Spec.RevisionHistoryLimit, d.Spec.ProgressDeadlineSeconds, d.Spec.RollbackTo = new(int32(9)), new(int32(10)), &mcm.RollbackConfig{Revision: 11}
		d.Spec.Strategy = mcm.MachineDeploymentStrategy{
			Type: mcm.RollingUpdateMachineDeploymentStrategyType,
			RollingUpdate: &mcm.RollingUpdateMachineDeployment{UpdateConfiguration: mcm.UpdateConfiguration{
				MaxSurge: new(intstr.FromString("50%")), MaxUnavailable: new(intstr.FromString("50%")),
			}},
		}
		d.Status.Replicas, d.Status.AvailableReplicas, d.Status.ReadyReplicas, d.Status.UpdatedReplicas, d.Status.UnavailableReplicas = 6, 5, 4, 3, 2
		d.Status.CollisionCount = new(int32(1))
		d.Status.Conditions = []mcm.MachineDeploymentCondition{{Type: mcm.MachineDeploymentAvailable, Status: mcm.ConditionFalse}, {Type: mcm.MachineDeploymentProgressing, Status: mcm.ConditionUnknown}}
		d.Status.FailedMachines = []*mcm.MachineSummary{{Name: "m", LastOperation: mcm.LastOperation{State: mcm.MachineStateFailed}}, nil}
		s.put(s.stores.Deployments(), d)
		Expect(of("d", series(s.registry))).To(ConsistOf(
			`machine_deployment_info{createdAt="1700000000"spec_strategy_type="RollingUpdate"} 1`,
			`machine_deployment_info_spec_paused 1`,
			`machine_deployment_info_spec_replicas 7`,
			`machine_deployment_info_spec_min_ready_seconds 8`,
			`machine_deployment_info_spec_rolling_update_max_surge 4`,
			`machine_deployment_info_spec_rolling_update_max_unavailable 3`,
			`machine_deployment_info_spec_revision_history_limit 9`,
			`machine_deployment_info_spec_progress_deadline_seconds 10`,
			`machine_deployment_info_spec_rollback_to_revision 11`,
			`machine_deployment_status_replicas 6`,
			`machine_deployment_status_available_replicas 5`,
			`machine_deployment_status_ready_replicas 4`,
			`machine_deployment_status_updated_replicas 3`,
			`machine_deployment_status_unavailable_replicas 2`,
			`machine_deployment_status_collision_count 1`,
			`machine_deployment_status_condition{condition="Available"} 0`,
			`machine_deployment_status_condition{condition="Progressing"} 2`,
			`machine_deployment_failed_machines{failed_machine_last_operation_machine_operation_type="",failed_machine_last_operation_state="Failed",failed_machine_name="m",failed_machine_owner_ref="",failed_machine_provider_id=""} 1`,
		))
	})

	DescribeTable("show no bounds of a rollout, and end no process,",
		func(strategy mcm.MachineDeploymentStrategy) {
			s := newScraped()
			d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "d"}}
			d.Spec.Strategy = strategy
			s.put(s.stores.Deployments(), d)
			all := of("d", series(s.registry))
			Expect(all).To(ContainElement("machine_deployment_info_spec_paused 0"))
			Expect(strings.Join(all, " ")).NotTo(ContainSubstring("rolling_update"))
		},
		Entry("where RollingUpdate has no parameters", mcm.MachineDeploymentStrategy{Type: mcm.RollingUpdateMachineDeploymentStrategyType}),
		Entry("where these are empty", mcm.MachineDeploymentStrategy{Type: mcm.RollingUpdateMachineDeploymentStrategyType, RollingUpdate: &mcm.RollingUpdateMachineDeployment{}}),
		Entry("where they are no numbers", mcm.MachineDeploymentStrategy{Type: mcm.RollingUpdateMachineDeploymentStrategyType, RollingUpdate: &mcm.RollingUpdateMachineDeployment{
			UpdateConfiguration: mcm.UpdateConfiguration{MaxSurge: new(intstr.FromString("many")), MaxUnavailable: new(intstr.FromString("few"))},
		}}),
		Entry("where the strategy is another one", mcm.MachineDeploymentStrategy{Type: mcm.RecreateMachineDeploymentStrategyType, RollingUpdate: &mcm.RollingUpdateMachineDeployment{
			UpdateConfiguration: mcm.UpdateConfiguration{MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(1))},
		}}),
	)

	It("count what they cannot show, and show the rest", func() {
		s := newScraped()
		one := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "s"}}
		one.Status.Conditions = []mcm.MachineSetCondition{{Type: "no text \xff", Status: mcm.ConditionTrue}}
		s.put(s.stores.Sets(), one)
		Expect(of("s", series(s.registry))).To(HaveLen(7))
		Expect(series(s.registry)).To(ContainElement(MatchRegexp(`mcm_misc_scrape_failure_total\{binary="machine-controller-manager",kind="Machineset-count"\} [12]$`)))
	})

	It("S10: count machines that were deleted because they had failed a health check, and no others", func() {
		storm.Bubble(suite, func() {
			c := newCluster(sim.Options{Seed: 1})
			defer c.End()
			var running *Controller
			c.Start(name, exposed(func(it *Controller) { running = it }))
			c.create("s", 3)
			c.settle()
			c.fail(c.machinesOf("s")[0])
			c.settle()
			Expect(running.Stale()).To(BeEquivalentTo(1))
			_, err := c.machines().Patch(context.Background(), c.machinesOf("s")[0].Name, types.MergePatchType,
				[]byte(`{"status":{"currentStatus":{"phase":"Failed"},"lastOperation":{"state":"Failed","type":"Create"}}}`), metav1.PatchOptions{}, "status")
			Expect(err).NotTo(HaveOccurred())
			c.settle()
			healthy := c.machinesOf("s")[0].Name
			world.Patch(c.machines(), healthy, first)
			_, err = c.machines().Patch(context.Background(), healthy, types.MergePatchType, []byte(`{"status":{"lastOperation":{"type":"HealthCheck"}}}`), metav1.PatchOptions{}, "status")
			Expect(err).NotTo(HaveOccurred())
			c.scale("s", 2)
			c.settle()
			Expect(running.Stale()).To(BeEquivalentTo(1))
		})
	})
})
