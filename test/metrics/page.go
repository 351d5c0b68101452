// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"slices"
	"strings"
)

// PageFile is the path of the page for operators, from the root of the repository.
const PageFile = "docs/metrics.md"

// part of Evenkeel, identified by the word after the prefix in the names of its metrics.
type part struct{ word, title, page string }

var parts = []part{
	{"cluster", "Clusters", "troubleshooting.md"},
	{"reserve", "The reserve", "reserve.md"},
	{"reserves", "Reserves", "spec/reserve.md"},
	{"preparation", "Preparation", "prepared.md"},
	{"capacitybuffer", "Capacity buffers", "capacity-buffers.md"},
	{"booking", "Bookings", "jobs.md"},
	{"release", "Release", "release.md"},
	{"balance", "Zones", "zones.md"},
	{"nodegroup", "Node groups", "autoscaler.md"},
	{"balancer", "Balancers", "balancer.md"},
	{"federatedhpa", "Federated autoscalers", "federation.md"},
}

const introduction = `# Metrics and alerts

<!-- Made by "make generate" from test/metrics/metrics.yaml and dashboards/alerts.yaml. -->

To connect Prometheus, see [install.md](install.md#metrics). Only the process that holds the lease has the metrics below; a standby process has
only the metrics of the Go runtime. machine-controller-manager's own metrics, ` + "`mcm_*`" + `, are also served, with the names of the stock
binary. Durations are in seconds, and a histogram has ` + "`_bucket`, `_sum` and `_count`" + `.

The chart contains a dashboard and alerts:

<!-- runnable -->
` + "```sh" + `
helm upgrade evenkeel charts/evenkeel --namespace kube-system --reset-then-reuse-values --set metrics.dashboard.enabled=true,metrics.prometheusRule.enabled=true
` + "```" + `

Without the chart, import [evenkeel.json](../dashboards/evenkeel.json) into Grafana, and load
[alerts.yaml](../dashboards/alerts.yaml), a file of rules, into Prometheus. Both need the label ` + "`namespace`" + ` as the process serves it, which is the
namespace of an object. If your scrape configuration adds a label ` + "`namespace`" + ` of its own, set ` + "`honor_labels: true`" + ` in it.
`

// Page describes every metric and alert.
func Page(all []Metric, groups []Group) ([]byte, error) {
	var b strings.Builder
	b.WriteString(introduction)
	listed := 0
	for _, p := range parts {
		fmt.Fprintf(&b, "\n## %s\n\nSee [%s](%s).\n\n| metric | type | labels | meaning | alert |\n|---|---|---|---|---|\n", p.title, p.page, p.page)
		for _, m := range all {
			if word, _, _ := strings.Cut(strings.TrimPrefix(m.Name, Prefix), "_"); word == p.word {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.Name, m.Type, inCode(m.Labels), cell(m.Help), strings.Join(alertsOf(all, m, groups), ", "))
				listed++
			}
		}
	}
	if listed != len(all) {
		return nil, fmt.Errorf("write page of metrics: %d of %d metrics are of a part that the page knows", listed, len(all))
	}
	b.WriteString("\n## Alerts\n\n| alert | for | severity | condition | what to do |\n|---|---|---|---|---|\n")
	for _, g := range groups {
		for _, a := range g.Rules {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", a.Alert, a.For, a.Labels["severity"], cell("`"+a.Expr+"`"), cell(a.Annotations["description"]))
		}
	}
	return []byte(b.String()), nil
}

// alertsOf returns the alerts that use a metric.
func alertsOf(all []Metric, m Metric, groups []Group) []string {
	var names []string
	for _, g := range groups {
		for _, a := range g.Rules {
			if slices.ContainsFunc(Selectors(a.Expr), func(s Selector) bool {
				found, ok := Find(all, s.Name)
				return ok && found.Name == m.Name
			}) {
				names = append(names, "`"+a.Alert+"`")
			}
		}
	}
	return names
}

func inCode(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "`" + w + "`"
	}
	return strings.Join(quoted, ", ")
}

// cell formats text for a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}
