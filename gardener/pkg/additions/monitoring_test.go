// SPDX-License-Identifier: Apache-2.0

package additions

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/test/metrics"
)

var update = flag.Bool("update", false, "write alerts.yaml and dashboard.json")

const dashboards = "../../../dashboards/"

// rows of the dashboard about what runs in a Shoot's control plane.
var rows = []string{"Reserve", "Reserves", "Capacity buffers", "Release", "Zones", "Node groups", "Processes"}

// chartJobs are the jobs of the chart in a query, in JSON.
const chartJobs = `job=~\"machine-controller-manager|evenkeel-.*\"`

// plutonoDashboard is the dashboard for Plutono, in which a data source is a name.
func plutonoDashboard() []byte {
	GinkgoHelper()
	text, err := os.ReadFile(dashboards + "evenkeel.json")
	Expect(err).NotTo(HaveOccurred())
	text = bytes.ReplaceAll(text, []byte(chartJobs), []byte(`job=\"`+job+`\"`))
	var d map[string]any
	Expect(json.Unmarshal(text, &d)).To(Succeed())
	d["description"] = "Reserve, capacity buffers, release, zones and node groups of this Shoot."
	d["panels"] = panelsOf(d["panels"].([]any))
	templating := d["templating"].(map[string]any)
	templating["list"] = slices.DeleteFunc(templating["list"].([]any), func(v any) bool { return v.(map[string]any)["type"] == "datasource" })
	nameDataSources(d)
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	Expect(encoder.Encode(d)).To(Succeed())
	return out.Bytes()
}

func panelsOf(panels []any) (kept []any) {
	row := ""
	for _, p := range panels {
		if panel := p.(map[string]any); panel["type"] == "row" {
			row = panel["title"].(string)
		}
		if slices.Contains(rows, row) {
			kept = append(kept, p)
		}
	}
	return kept
}

func nameDataSources(value any) {
	switch v := value.(type) {
	case map[string]any:
		if source, ok := v["datasource"].(map[string]any); ok && source["type"] == "prometheus" {
			v["datasource"] = "prometheus"
		}
		for _, inner := range v {
			nameDataSources(inner)
		}
	case []any:
		for _, inner := range v {
			nameDataSources(inner)
		}
	}
}

// withoutEvenkeel describes a Shoot in which it does not run. gardenlet has an alert for one without any machine-controller-manager.
var withoutEvenkeel = map[string]string{
	"summary": "Evenkeel does not run in place of machine-controller-manager",
	"description": "Stock machine-controller-manager runs, no process holds the lease of machine-controller-manager, or Prometheus does not read its metrics. " +
		"The stock one creates and replaces machines, and keeps no reserve. Check the last reconcile of the Shoot, the pods of machine-controller-manager, and the log of gardener-extension-evenkeel.",
}

// shootAlerts are the alerts about the manager, with the labels by which Gardener's Alertmanagers send them to operators.
func shootAlerts() []byte {
	GinkgoHelper()
	text, err := os.ReadFile(dashboards + "alerts.yaml")
	Expect(err).NotTo(HaveOccurred())
	groups, err := metrics.ReadAlerts(text)
	Expect(err).NotTo(HaveOccurred())
	groups = slices.DeleteFunc(groups, func(g metrics.Group) bool { return g.Name != "evenkeel-manager" })
	Expect(groups).To(HaveLen(1))
	for i, rule := range groups[0].Rules {
		rule.Labels["service"], rule.Labels["type"], rule.Labels["visibility"] = manager, "seed", "operator"
		if rule.Alert == "EvenkeelAbsent" {
			rule.Labels["severity"], groups[0].Rules[i].Annotations = "warning", withoutEvenkeel
		}
	}
	out, err := yaml.Marshal(map[string]any{"groups": groups})
	Expect(err).NotTo(HaveOccurred())
	return append([]byte("# Made from dashboards/alerts.yaml: go test ./pkg/additions -update.\n"), out...)
}

var _ = Describe("Monitoring of a Shoot", func() {
	DescribeTable("has what the repository's files have", func(path string, made func() []byte) {
		wanted := made()
		if *update {
			Expect(os.WriteFile(path, wanted, 0o644)).To(Succeed())
		}
		there, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(there)).To(Equal(string(wanted)), "run go test ./pkg/additions -update")
	},
		Entry(nil, "alerts.yaml", shootAlerts),
		Entry(nil, "dashboard.json", plutonoDashboard),
	)

	It("shows the reserve with the data source of a Shoot's Plutono", func() {
		Expect(dashboard).To(ContainSubstring("evenkeel_reserve_excess"))
		Expect(dashboard).NotTo(ContainSubstring("${datasource}"))
		Expect(dashboard).NotTo(ContainSubstring("federat"))
		Expect(len(dashboard)).To(BeNumerically("<", 64<<10), "each Shoot has one")
	})

	It("has no critical alert: gardenlet has one for a Shoot without machine-controller-manager, and the stock one may run", func(ctx context.Context) {
		var theirs monitoringv1.PrometheusRule
		Expect(newSeed(ctx).Get(ctx, client.ObjectKey{Namespace: namespace, Name: "shoot-" + manager}, &theirs)).To(Succeed())
		Expect(theirs.Spec.Groups[0].Rules).To(ConsistOf(And(
			HaveField("Alert", "MachineControllerManagerDown"), HaveField("Labels", HaveKeyWithValue("severity", "critical")))))
		groups, err := metrics.ReadAlerts(alerts)
		Expect(err).NotTo(HaveOccurred())
		Expect(groups[0].Rules).To(HaveEach(HaveField("Labels", HaveKeyWithValue("severity", "warning"))))
	})

	It("shows what a providerConfig can enable", func() {
		for _, name := range []string{"evenkeel_reserves_machines", "evenkeel_capacitybuffer_chunks", "evenkeel_nodegroup_calls_total"} {
			Expect(dashboard).To(ContainSubstring(name))
			Expect(shown()).To(ContainSubstring(name))
		}
	})

	It("shows only series that are stored, by the job that they have", func() {
		var d struct {
			Panels []struct{ Targets []struct{ Expr string } }
		}
		Expect(json.Unmarshal([]byte(dashboard), &d)).To(Succeed())
		for _, panel := range d.Panels {
			for _, target := range panel.Targets {
				for _, s := range metrics.Selectors(target.Expr) {
					Expect(s.Name).To(Or(Equal("up"), MatchRegexp(shown())), target.Expr)
					for _, m := range s.Matchers {
						Expect(m).To(Or(HaveField("Label", Not(Equal("job"))), Equal(metrics.Matcher{Label: "job", Operator: "=", Value: job})), target.Expr)
					}
				}
			}
		}
	})

	It("keeps the series that alerts and dashboard read, and no other", func() {
		pattern := shown()
		Expect(pattern).To(And(ContainSubstring("|evenkeel_reserve_ready|"), Not(ContainSubstring("mcm_")), Not(ContainSubstring("federat"))))
		known, err := os.ReadFile("../../../test/metrics/metrics.yaml")
		Expect(err).NotTo(HaveOccurred())
		for name := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(pattern, "^("), ")$"), "|") {
			name, _ = strings.CutSuffix(name, "_bucket")
			name, _ = strings.CutSuffix(name, "_sum")
			name, _ = strings.CutSuffix(name, "_count")
			if !strings.HasPrefix(name, "process_") { // of each Go program
				Expect(string(known)).To(ContainSubstring(name))
			}
		}
	})
})
