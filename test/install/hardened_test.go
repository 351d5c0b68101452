// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"strings"

	mcmcommand "github.com/gardener/machine-controller-manager/cmd/machine-controller-manager/app/options"
	mcmoptions "github.com/gardener/machine-controller-manager/pkg/util/provider/app/options"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	workloads "github.com/evenkeel/evenkeel/cmd/evenkeel-workloads/app"
)

// each calls f with every rendered object of a kind.
func each[T any](rendered map[string]*unstructured.Unstructured, kind string, f func(name string, o *T)) {
	GinkgoHelper()
	n := 0
	for name, u := range rendered {
		if u.GetKind() != kind {
			continue
		}
		o := new(T)
		Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o)).To(Succeed())
		f(name, o)
		n++
	}
	Expect(n).To(BeNumerically(">", 0), kind)
}

var _ = Describe("What the chart protects", func() {
	processes := []string{"--set", "balancer.enabled=true,federation.hub.enabled=true,manager.target.kubeconfigSecret=target"}

	It("is every process: it is not evicted first, has time to begin, and memory has a limit", func(ctx context.Context) {
		each(objects(template(ctx, processes...)), "Deployment", func(name string, d *appsv1.Deployment) {
			pod := d.Spec.Template.Spec
			Expect(pod.PriorityClassName).To(Equal("system-cluster-critical"), name)
			for _, c := range pod.Containers {
				Expect(c.StartupProbe).NotTo(BeNil(), name)
				Expect(c.StartupProbe.FailureThreshold*c.StartupProbe.PeriodSeconds).To(BeNumerically(">=", 60), name)
				Expect(c.Resources.Limits.Memory().Sign()).To(Equal(1), name)
			}
		})
	})

	It("is every process: it is asked where it listens, started again if it is not healthy, and replaced only by a ready one", func(ctx context.Context) {
		listens := map[string]int32{"machine-controller-manager": mcmcommand.NewMCMServer().Port, "evenkeel-workloads": workloads.NewOptions().Port}
		each(objects(template(ctx, processes...)), "Deployment", func(name string, d *appsv1.Deployment) {
			c := d.Spec.Template.Spec.Containers[0]
			Expect(c.Ports).To(ContainElement(And(HaveField("Name", "health"), HaveField("ContainerPort", listens[c.Name]))), name)
			for probe, path := range map[*corev1.Probe]string{c.StartupProbe: "/healthz", c.LivenessProbe: "/healthz", c.ReadinessProbe: "/readyz"} {
				Expect(probe.HTTPGet).To(HaveValue(Equal(corev1.HTTPGetAction{Path: path, Port: intstr.FromString("health")})), name)
			}
		})
	})

	It("is every process alone: what selects pods or Services selects its own", func(ctx context.Context) {
		rendered := objects(template(ctx, "--set", allOn))
		pods, services := map[string]labels.Set{}, map[string]labels.Set{}
		each(rendered, "Deployment", func(_ string, d *appsv1.Deployment) { pods[d.Name] = d.Spec.Template.Labels })
		each(rendered, "Service", func(_ string, s *corev1.Service) { services[s.Name] = s.Labels })
		for kind, where := range map[string]struct {
			path  []string
			among map[string]labels.Set
		}{
			"Deployment": {[]string{"spec", "selector", "matchLabels"}, pods}, "Service": {[]string{"spec", "selector"}, pods},
			"PodDisruptionBudget": {[]string{"spec", "selector", "matchLabels"}, pods}, "NetworkPolicy": {[]string{"spec", "podSelector", "matchLabels"}, pods},
			"ServiceMonitor": {[]string{"spec", "selector", "matchLabels"}, services},
		} {
			each(rendered, kind, func(name string, u *unstructured.Unstructured) {
				selector, found, err := unstructured.NestedStringMap(u.Object, where.path...)
				Expect(err).NotTo(HaveOccurred())
				Expect(found).To(BeTrue(), name)
				for process, set := range where.among {
					Expect(labels.SelectorFromSet(selector).Matches(set)).To(Equal(process == u.GetName()), "%s and %s", name, process)
				}
			})
		}
	})

	It("are Nodes that are drained: a pod that is not ready can always be evicted", func(ctx context.Context) {
		each(objects(template(ctx, processes...)), "PodDisruptionBudget", func(name string, b *policyv1.PodDisruptionBudget) {
			Expect(b.Spec.MaxUnavailable).To(HaveValue(Equal(intstr.FromInt32(1))), name)
			Expect(b.Spec.UnhealthyPodEvictionPolicy).To(HaveValue(Equal(policyv1.AlwaysAllow)), name)
		})
	})

	It("are Secrets: only the process reads their files, and no token is mounted that is not asked for", func(ctx context.Context) {
		rendered := objects(template(ctx, "--values", everything))
		secrets := 0
		each(rendered, "Deployment", func(name string, d *appsv1.Deployment) {
			Expect(d.Spec.Template.Spec.AutomountServiceAccountToken).To(Equal(ptr.To(true)), name)
			for _, v := range d.Spec.Template.Spec.Volumes {
				if v.Secret != nil {
					secrets++
					Expect(v.Secret.DefaultMode).To(Equal(ptr.To[int32](0o400)), v.Name)
				}
			}
		})
		Expect(secrets).To(BeNumerically(">=", 3))
		each(rendered, "ServiceAccount", func(name string, a *corev1.ServiceAccount) {
			Expect(a.AutomountServiceAccountToken).To(Equal(ptr.To(false)), name)
		})
	})

	It("is the network: metrics, names and API servers have peers, and none is where clouds hand out credentials", func(ctx context.Context) {
		each(objects(template(ctx, processes...)), "NetworkPolicy", func(name string, p *networkingv1.NetworkPolicy) {
			for _, rule := range p.Spec.Egress {
				Expect(rule.To).NotTo(BeEmpty(), name)
				for _, to := range rule.To {
					if to.IPBlock != nil && strings.HasSuffix(to.IPBlock.CIDR, "/0") {
						Expect(to.IPBlock.Except).NotTo(BeEmpty(), name)
					}
				}
			}
			for _, rule := range p.Spec.Ingress {
				if rule.Ports[0].Port.String() != "health" {
					Expect(rule.From).NotTo(BeEmpty(), name)
				}
			}
		})
	})

	It("is Prometheus' token: it is shown to whom a certificate names, or the operator says otherwise", func(ctx context.Context) {
		_, err := tools.Template(ctx, "--set", "metrics.serviceMonitor.enabled=true")
		Expect(err).To(MatchError(ContainSubstring("metrics.tlsSecret")))
		Expect(template(ctx, "--set", "metrics.serviceMonitor.enabled=true,metrics.tlsSecret=metrics")).To(And(
			Not(ContainSubstring("insecureSkipVerify")), ContainSubstring("\n      serverName: machine-controller-manager.kube-system.svc\n")))
		Expect(template(ctx, "--set", "metrics.serviceMonitor.enabled=true,metrics.serviceMonitor.insecureSkipVerify=true")).To(ContainSubstring("insecureSkipVerify: true"))
	})

	It("are arguments: whatever a value contains is one string", func(ctx context.Context) {
		each(objects(template(ctx, "--set-string", "machines.namespace=123456")), "Deployment", func(_ string, d *appsv1.Deployment) {
			Expect(d.Spec.Template.Spec.Containers[0].Args).To(ContainElement("--namespace=123456"))
		})
		for _, line := range strings.Split(string(template(ctx, processes...)), "\n") {
			if text := strings.TrimSpace(line); strings.HasPrefix(text, "- --") {
				Fail("not quoted: " + text)
			}
		}
	})

	It("are ports: a cloud provider's machine-controller in the same pod has those that it listens on by default", func(ctx context.Context) {
		theirs := mcmoptions.NewMCServer().Port
		Expect(theirs).To(BeNumerically(">", 0))
		each(objects(template(ctx, "--values", everything)), "Deployment", func(name string, d *appsv1.Deployment) {
			for _, port := range d.Spec.Template.Spec.Containers[0].Ports {
				Expect(port.ContainerPort).NotTo(Equal(theirs), name)
			}
		})
	})

	It("are names: one of digits is no number", func(ctx context.Context) {
		all := template(ctx, "--values", everything, "--namespace", "123456", "--set-string", strings.Join([]string{
			"machines.namespace=123456", "image.pullSecrets={123456}", "priorityClassName=123456", "metrics.tlsSecret=123456", "nodeGroups.tlsSecret=123456",
			"manager.target.kubeconfigSecret=123456", "federation.hub.clustersNamespace=123456", "federation.member.namespaces={123456}",
		}, ","))
		for line := range strings.Lines(string(all)) {
			Expect(line).NotTo(MatchRegexp(`(: |- |\[)123456\b`))
		}
	})

	It("are rules about the kinds that are named, also those of the core group", func(ctx context.Context) {
		var args []string
		for _, kinds := range []string{"balancer.extraKinds", "federation.member.extraKinds"} {
			args = append(args, "--set-json", kinds+`=[{"apiGroup": "", "resource": "replicationcontrollers"}, {"apiGroup": "example.com", "resource": "web-shops"}]`)
		}
		named := 0
		for name, o := range objects(template(ctx, append(args, "--values", everything)...)) {
			rules, _, err := unstructured.NestedSlice(o.Object, "rules")
			if err != nil || !strings.HasSuffix(o.GetKind(), "Role") {
				continue
			}
			for _, rule := range rules {
				rule, _ := rule.(map[string]any)
				if fmt.Sprint(rule["resources"]) == "[replicationcontrollers]" {
					named++
					Expect(rule["apiGroups"]).To(Equal([]any{""}), name)
				}
			}
		}
		Expect(named).To(BeNumerically(">=", 3))
	})

	It("are Secrets with any name that a Secret can have", func(ctx context.Context) {
		each(objects(template(ctx, "--set", "image.pullSecrets={registry.example.com}")), "Deployment", func(_ string, d *appsv1.Deployment) {
			Expect(d.Spec.Template.Spec.ImagePullSecrets).To(Equal([]corev1.LocalObjectReference{{Name: "registry.example.com"}}))
		})
	})
})
