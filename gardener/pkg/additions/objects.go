// SPDX-License-Identifier: Apache-2.0

package additions

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Names. The chart limits the rights of the extension to them.
const (
	// Name of the ManagedResource.
	Name = "extension-evenkeel-shoot"
	// SecretName is the name of the Secret with its objects.
	SecretName = managedresources.SecretPrefix + Name
	// MonitoringName is the name of the ServiceMonitor and of the PrometheusRule.
	MonitoringName = "shoot-extension-evenkeel"
	// DashboardName is the name of the ConfigMap with the dashboard.
	DashboardName = "extension-evenkeel-dashboard"
	// job is the job of the series that are stored. That of gardenlet's ServiceMonitor is another one.
	job = "evenkeel"
	// roleName is the name of the ClusterRole in the Shoot.
	roleName = "extensions.gardener.cloud:evenkeel:machine-controller-manager"
	// manager is what gardenlet calls machine-controller-manager: its account, its role, its service.
	manager = v1beta1constants.DeploymentNameMachineControllerManager
)

//go:embed alerts.yaml
var alerts []byte

//go:embed dashboard.json
var dashboard string

// in returns the objects of a Shoot in its namespace on the seed, without those for
// CapacityBuffers, in the order in which they are written. They are deleted in reverse order.
func in(namespace string, buffers bool) ([]client.Object, error) {
	rights, err := rightsInShoot(buffers)
	if err != nil {
		return nil, err
	}
	rule := monitoringv1.PrometheusRuleSpec{}
	if err := yaml.UnmarshalStrict(alerts, &rule); err != nil {
		return nil, fmt.Errorf("read alerts: %w", err)
	}
	toPrometheus := map[string]string{"prometheus": "shoot"}
	return []client.Object{
		binding(namespace, ReservesName, reservesRole),
		&corev1.Secret{ObjectMeta: named(namespace, SecretName, nil), Type: corev1.SecretTypeOpaque, Data: rights},
		managed(namespace, Name, false),
		&monitoringv1.ServiceMonitor{ObjectMeta: named(namespace, MonitoringName, toPrometheus), Spec: scraping()},
		&monitoringv1.PrometheusRule{ObjectMeta: named(namespace, MonitoringName, toPrometheus), Spec: rule},
		&corev1.ConfigMap{
			ObjectMeta: named(namespace, DashboardName, map[string]string{"dashboard.monitoring.gardener.cloud/shoot": "true"}),
			Data:       map[string]string{"evenkeel.json": dashboard},
		},
	}, nil
}

func named(namespace, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
}

// rightsInShoot lets the account of machine-controller-manager release machines for all pods,
// including those with volumes that do not exist yet, those that claim devices or start together, and
// for one workload alone, and count devices for a reserve. With CapacityBuffers, it can also serve
// these.
func rightsInShoot(buffers bool) (map[string][]byte, error) {
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: roleName},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"storage.k8s.io"}, Resources: []string{"storageclasses", "csidrivers"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceslices", "deviceclasses", "resourceclaims", "resourceclaimtemplates"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{"scheduling.k8s.io"}, Resources: []string{"podgroups"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}},
		},
	}
	if buffers {
		role.Rules = append(role.Rules, buffersRules...)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: roleName},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roleName},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: manager}},
	}
	registry := managedresources.NewRegistry(kubernetes.ShootScheme, kubernetes.ShootCodec, kubernetes.ShootSerializer)
	data, err := registry.AddAllAndSerialize(role, binding)
	if err != nil {
		return nil, fmt.Errorf("encode rights: %w", err)
	}
	return data, nil
}

// scraping returns what scrapes the series of Evenkeel and of its process, from the same port as
// gardenlet's ServiceMonitor for the stock series. Its job has another name, so that no series of
// gardenlet exists twice.
func scraping() monitoringv1.ServiceMonitorSpec {
	return monitoringv1.ServiceMonitorSpec{
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{v1beta1constants.LabelApp: v1beta1constants.LabelKubernetes, v1beta1constants.LabelRole: manager}},
		Endpoints: []monitoringv1.Endpoint{{
			Port: "metrics",
			RelabelConfigs: []monitoringv1.RelabelConfig{{
				Action: "replace", TargetLabel: "job", Replacement: ptr.To(job),
			}},
			MetricRelabelConfigs: []monitoringv1.RelabelConfig{{
				SourceLabels: []monitoringv1.LabelName{"__name__"}, Action: "keep", Regex: shown(),
			}},
		}},
	}
}

var series = regexp.MustCompile(`\b(?:evenkeel|process)_[a-z_]+`)

// shown matches the series that the alerts and the dashboard read. Only these are stored.
func shown() string {
	names := series.FindAllString(string(alerts)+dashboard, -1)
	slices.Sort(names)
	pattern := "^("
	for i, name := range slices.Compact(names) {
		if i > 0 {
			pattern += "|"
		}
		pattern += name
	}
	return pattern + ")$"
}
