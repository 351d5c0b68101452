// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/chartrenderer"
	seedprometheus "github.com/gardener/gardener/pkg/component/observability/monitoring/prometheus/seed"
	"github.com/gardener/gardener/pkg/utils/imagevector"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/gardener/charts"
	admission "github.com/evenkeel/evenkeel/gardener/cmd/gardener-extension-admission-evenkeel/app"
	"github.com/evenkeel/evenkeel/gardener/cmd/gardener-extension-evenkeel/app"
	"github.com/evenkeel/evenkeel/gardener/pkg/additions"
	"github.com/evenkeel/evenkeel/gardener/pkg/mutation"
	"github.com/evenkeel/evenkeel/gardener/pkg/nodegroups"
)

func TestCharts(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Charts")
}

const namespace = "extension-evenkeel"

// render is what gardenlet and gardener-operator do with a chart.
func render(chart string, values map[string]any) *chartrenderer.RenderedChart {
	GinkgoHelper()
	renderer := chartrenderer.NewWithServerVersion(&version.Info{GitVersion: "v1.34.0"})
	rendered, err := renderer.RenderEmbeddedFS(charts.Files, chart, "evenkeel", namespace, values)
	Expect(err).NotTo(HaveOccurred())
	return rendered
}

// only returns the first object of a template.
func only[T any](chart *chartrenderer.RenderedChart, template string) *T {
	GinkgoHelper()
	text := chart.FileContent(template)
	Expect(text).NotTo(BeEmpty())
	object := new(T)
	Expect(yaml.UnmarshalStrict([]byte(text), object)).To(Succeed(), text)
	return object
}

func container(values map[string]any) corev1.Container {
	GinkgoHelper()
	return only[appsv1.Deployment](render(charts.Extension, values), "deployment.yaml").Spec.Template.Spec.Containers[0]
}

var _ = Describe("The chart of the extension", func() {
	It("starts the process with flags that it knows", func() {
		c := container(map[string]any{"gardener": map[string]any{"version": "v1.150.0"}})
		Expect(app.Program().Flags.Parse(c.Args)).To(Succeed())
		Expect(c.Args).To(ContainElements("--gardener-version=v1.150.0", "--webhook-config-namespace="+namespace, "--heartbeat-namespace="+namespace))
	})

	It("has the image of its version, or the one that is set", func() {
		Expect(container(nil).Image).To(Equal("evenkeel/gardener-extension-evenkeel:v0.1.0"))
		Expect(container(map[string]any{"image": map[string]any{"repository": "r/x", "tag": "v2"}}).Image).To(Equal("r/x:v2"))
		Expect(container(map[string]any{"image": map[string]any{"digest": "sha256:1"}}).Image).To(Equal("evenkeel/gardener-extension-evenkeel@sha256:1"))
	})

	It("passes images on", func() {
		values := map[string]any{"imageVectorOverwrite": map[string]any{"images": []any{map[string]any{"name": "machine-controller-manager", "repository": "r/mcm", "tag": "v2"}}}}
		Expect(container(values).Env).To(ConsistOf(corev1.EnvVar{Name: "IMAGEVECTOR_OVERWRITE", Value: "/images/images.yaml"}))
		Expect(only[corev1.ConfigMap](render(charts.Extension, values), "images.yaml").Data["images.yaml"]).To(ContainSubstring("repository: r/mcm"))
		Expect(container(nil).Env).To(BeEmpty())
		Expect(strings.TrimSpace(render(charts.Extension, nil).FileContent("images.yaml"))).To(BeEmpty())
	})

	DescribeTable("passes images on as other extensions do, as an object or as text", func(images any) {
		vector, _, err := imagevector.Read([]byte(only[corev1.ConfigMap](render(charts.Extension, map[string]any{"imageVectorOverwrite": images}), "images.yaml").Data["images.yaml"]))
		Expect(err).NotTo(HaveOccurred())
		Expect(vector).To(ConsistOf(HaveValue(And(HaveField("Name", "machine-controller-manager"), HaveField("Repository", HaveValue(Equal("r/mcm")))))))
	},
		Entry(nil, map[string]any{"images": []any{map[string]any{"name": "machine-controller-manager", "repository": "r/mcm"}}}),
		Entry(nil, "images:\n- name: machine-controller-manager\n  repository: r/mcm\n"),
	)

	It("has a Service where the library registers the webhooks", func() {
		service := only[corev1.Service](render(charts.Extension, nil), "service.yaml")
		Expect(service.Name).To(Equal("gardener-extension-evenkeel"))
		Expect(service.Spec.Ports).To(ConsistOf(And(HaveField("Port", int32(443)), HaveField("TargetPort.IntVal", int32(10250)))))
		Expect(service.Spec.Selector).To(Equal(only[appsv1.Deployment](render(charts.Extension, nil), "deployment.yaml").Spec.Selector.MatchLabels))
	})

	It("has its metrics read by the Prometheus that Gardener installs in the seed", func() {
		pod := only[appsv1.Deployment](render(charts.Extension, nil), "deployment.yaml").Spec.Template
		monitors := seedprometheus.CentralPodMonitors()
		i := slices.IndexFunc(monitors, func(m *monitoringv1.PodMonitor) bool { return m.Name == "extensions" })
		keep := monitors[i].Spec.PodMetricsEndpoints[0].RelabelConfigs[0]
		Expect(keep.Action).To(Equal("keep"))
		labels := []string{"extension-evenkeel-x7k2p", pod.Annotations["prometheus.io/scrape"], pod.Annotations["prometheus.io/port"]}
		Expect(strings.Join(labels, ";")).To(MatchRegexp("^" + keep.Regex + "$"))
		Expect(pod.Spec.Containers[0].Ports).To(ContainElement(And(HaveField("Name", "metrics"), HaveField("ContainerPort", BeEquivalentTo(8080)))))
		Expect(pod.Annotations).To(HaveKeyWithValue("prometheus.io/port", "8080"))
		service := only[corev1.Service](render(charts.Extension, nil), "service.yaml")
		Expect(service.Annotations["networking.resources.gardener.cloud/from-all-seed-scrape-targets-allowed-ports"]).To(ContainSubstring(`"port":8080`))
	})
})

var _ = Describe("Reserves", func() {
	// make verify compares the CRD in the chart with the one that is generated.
	It("are served by the seed, and stay when the extension leaves it", func() {
		text, err := os.ReadFile("gardener-extension-evenkeel/templates/crd-reserves.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).NotTo(ContainSubstring("{{"), "it is no template")
		crd := only[apiextensionsv1.CustomResourceDefinition](render(charts.Extension, nil), "crd-reserves.yaml")
		Expect(crd.Name).To(Equal("reserves.autoscaling.evenkeel.dev"))
		Expect(crd.Annotations).To(HaveKeyWithValue(resourcesv1alpha1.KeepObject, "true"))
	})

	It("are served and created with the rights of the manager's roles, and no others", func() {
		text, err := os.ReadFile("../../kubernetes/deploy/manager/access.yaml")
		Expect(err).NotTo(HaveOccurred())
		ours := rolesIn(render(charts.Extension, nil).FileContent("reserves.yaml"))
		theirs := rolesIn(string(text))
		Expect(ours).To(HaveLen(2))
		for name, role := range map[string]string{"reserves": "evenkeel-reserves", "capacitybuffers": "evenkeel-capacitybuffer"} {
			rules := slices.DeleteFunc(theirs[role], func(r rbacv1.PolicyRule) bool { return slices.Contains(r.APIGroups, "machine.sapcloud.io") })
			Expect(rules).NotTo(BeEmpty())
			Expect(ours["extensions.gardener.cloud:evenkeel:"+name]).To(Equal(rules), "gardenlet grants the others")
		}
	})

	It("are bound by the extension under the names that it may write", func() {
		text := render(charts.Extension, nil).FileContent("access.yaml")
		for _, name := range []string{additions.ReservesName, additions.BuffersName, additions.BuffersSecretName} {
			Expect(text).To(ContainSubstring(name))
		}
		for name := range rolesIn(render(charts.Extension, nil).FileContent("reserves.yaml")) {
			Expect(text).To(ContainSubstring(`"` + name + `"`))
		}
	})
})

var _ = Describe("Cluster-autoscaler", func() {
	It("is looked after under the names that the extension may write", func() {
		text := render(charts.Extension, nil).FileContent("access.yaml")
		for _, name := range []string{nodegroups.AuthorityName, nodegroups.ServerName, nodegroups.ClientName, "[" + nodegroups.ServiceName + "]", "[" + mutation.DeploymentName + ", " + mutation.AutoscalerName + "]"} {
			Expect(text).To(ContainSubstring(name))
		}
	})
})

// rolesIn are the rules of the roles in a text.
func rolesIn(text string) map[string][]rbacv1.PolicyRule {
	GinkgoHelper()
	all := map[string][]rbacv1.PolicyRule{}
	for document := range strings.SplitSeq(text, "\n---\n") {
		var role rbacv1.ClusterRole
		Expect(yaml.Unmarshal([]byte(document), &role)).To(Succeed())
		if role.Rules != nil {
			all[role.Name] = role.Rules
		}
	}
	return all
}

var _ = Describe("The charts of the admission component", func() {
	It("start the process with flags that it knows", func() {
		values := map[string]any{"gardener": map[string]any{"virtualCluster": map[string]any{"namespace": "extension-admission-evenkeel"}}}
		c := only[appsv1.Deployment](render(charts.AdmissionRuntime, values), "deployment.yaml").Spec.Template.Spec.Containers[0]
		Expect(admission.Program().Flags.Parse(c.Args)).To(Succeed())
		Expect(c.Command).To(ConsistOf("/gardener-extension-admission-evenkeel"))
		Expect(c.Args).To(ContainElements("--webhook-config-url=gardener-extension-admission-evenkeel."+namespace, "--webhook-config-owner-namespace=extension-admission-evenkeel"))
	})

	It("have a Service of the name in the URL of the webhook", func() {
		service := only[corev1.Service](render(charts.AdmissionRuntime, nil), "service.yaml")
		Expect(service.Name).To(Equal("gardener-extension-admission-evenkeel"))
		Expect(service.Spec.Selector).To(Equal(only[appsv1.Deployment](render(charts.AdmissionRuntime, nil), "deployment.yaml").Spec.Selector.MatchLabels))
	})
})

var _ = Describe("A chart's rights", func() {
	account := map[string]any{"gardener": map[string]any{"virtualCluster": map[string]any{"serviceAccount": map[string]any{"name": "a", "namespace": "b"}}}}

	DescribeTable("have no wildcard, and let no account write Machines, Nodes or Shoots", func(chart string) {
		rules := 0
		for document := range strings.SplitSeq(render(chart, account).FileContent("access.yaml"), "\n---\n") {
			var role rbacv1.ClusterRole
			Expect(yaml.Unmarshal([]byte(document), &role)).To(Succeed())
			for _, rule := range role.Rules {
				rules++
				Expect(slices.Concat(rule.Verbs, rule.Resources, rule.APIGroups)).NotTo(ContainElement("*"))
				Expect(rule.Resources).NotTo(ContainElement(BeElementOf("nodes", "shoots")))
				if role.Kind == "ClusterRole" && slices.Contains(rule.Resources, "secrets") && len(rule.ResourceNames) == 0 {
					Expect(rule.Verbs).To(ConsistOf("create"), "no Secret is read but its own")
				}
				if slices.Contains(rule.Resources, "machines") {
					Expect(rule.Verbs).To(ConsistOf("list"))
				}
			}
		}
		Expect(rules).NotTo(BeZero())
	},
		Entry(nil, charts.Extension),
		Entry(nil, charts.AdmissionRuntime),
		Entry(nil, charts.AdmissionApplication),
	)
})
