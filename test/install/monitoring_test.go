// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/evenkeel/evenkeel/test/metrics"
)

const (
	rule  = "PrometheusRule kube-system/evenkeel"
	board = "ConfigMap kube-system/evenkeel-dashboard"
)

var _ = Describe("What the chart has for who watches", func() {
	It("is there where it is asked for", func(ctx context.Context) {
		Expect(objects(template(ctx))).NotTo(Or(HaveKey(rule), HaveKey(board)))
		Expect(objects(template(ctx, "--values", everything))).To(And(HaveKey(rule), HaveKey(board)))
	})

	DescribeTable("has the alerts about what is installed, as they are in the file, and no others",
		func(ctx context.Context, values string, wanted ...string) {
			rendered := objects(template(ctx, "--set", "metrics.prometheusRule.enabled=true", "--set", values))[rule]
			is, _, err := unstructured.NestedSlice(rendered.Object, "spec", "groups")
			Expect(err).NotTo(HaveOccurred())
			text, err := json.Marshal(map[string]any{"groups": is})
			Expect(err).NotTo(HaveOccurred())
			groups, err := metrics.ReadAlerts(text)
			Expect(err).NotTo(HaveOccurred())
			var expected []metrics.Group
			for _, g := range alerts() {
				for _, name := range wanted {
					if g.Name == name {
						expected = append(expected, g)
					}
				}
			}
			Expect(expected).To(HaveLen(len(wanted)))
			Expect(groups).To(Equal(expected))
		},
		Entry("by default", "manager.enabled=true", "evenkeel-manager"),
		Entry("everything", "balancer.enabled=true,federation.hub.enabled=true", "evenkeel-manager", "evenkeel-balancer", "evenkeel-federation"),
		Entry("Balancers alone", "manager.enabled=false,balancer.enabled=true", "evenkeel-balancer"),
	)

	It("has no rule where nothing runs that an alert is about", func(ctx context.Context) {
		for _, values := range []string{"manager.enabled=false", "manager.controllers={nodegroup}"} {
			Expect(objects(template(ctx, "--set", "metrics.prometheusRule.enabled=true", "--set", values))).NotTo(HaveKey(rule), values)
		}
	})

	It("has the dashboard as it is in the file", func(ctx context.Context) {
		text, _, err := unstructured.NestedString(objects(template(ctx, "--set", "metrics.dashboard.enabled=true"))[board].Object, "data", "evenkeel.json")
		Expect(err).NotTo(HaveOccurred())
		file, err := os.ReadFile(filepath.Join(root, "dashboards/evenkeel.json"))
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.TrimSpace(text)).To(Equal(strings.TrimSpace(string(file))))
	})

	It("keeps the namespaces that metrics have, which Prometheus would replace by that of the pod", func(ctx context.Context) {
		monitors := 0
		for name, o := range objects(template(ctx, "--values", everything)) {
			if o.GetKind() != "ServiceMonitor" {
				continue
			}
			monitors++
			endpoints, _, err := unstructured.NestedSlice(o.Object, "spec", "endpoints")
			Expect(err).NotTo(HaveOccurred())
			Expect(endpoints).To(HaveEach(HaveKeyWithValue("honorLabels", true)), name)
		}
		Expect(monitors).To(Equal(3))
	})

	It("asks for jobs that Prometheus' operator names after Services of the chart", func(ctx context.Context) {
		all := objects(template(ctx, "--values", everything))
		for _, g := range alerts() {
			for _, a := range g.Rules {
				for _, s := range metrics.Selectors(a.Expr) {
					for _, m := range s.Matchers {
						if m.Label == "job" {
							Expect(all).To(HaveKey("Service kube-system/" + m.Value))
							Expect(all).To(HaveKey("ServiceMonitor kube-system/" + m.Value))
						}
					}
				}
			}
		}
	})
})

func alerts() []metrics.Group {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(root, metrics.AlertsFile))
	Expect(err).NotTo(HaveOccurred())
	groups, err := metrics.ReadAlerts(text)
	Expect(err).NotTo(HaveOccurred())
	return groups
}
