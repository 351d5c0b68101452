// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/metrics"
)

// foreign are metrics of others that we read: Prometheus' own, and Go's of our processes.
var foreign = []metrics.Metric{
	{Name: "up", Type: "gauge", Labels: []string{"job"}},
	{Name: "process_resident_memory_bytes", Type: "gauge"},
	{Name: "process_cpu_seconds_total", Type: "counter"},
}

// scraped are the labels that Prometheus adds to all metrics.
var scraped = []string{"job", "instance"}

// wrong is what a query gets wrong about our metrics: names, labels, values of labels that the metric does not explain,
// and a counter or histogram that is read as it is.
func wrong(query string, all []metrics.Metric) (complaints []string) {
	labels := slices.Clone(scraped)
	for _, s := range metrics.Selectors(query) {
		m, found := metrics.Find(slices.Concat(all, foreign), s.Name)
		if !found {
			complaints = append(complaints, "no metric "+s.Name)
			continue
		}
		own := slices.Concat(m.Labels, scraped)
		if strings.HasSuffix(s.Name, "_bucket") {
			own = append(own, "le")
		}
		labels = append(labels, own...)
		for _, condition := range s.Matchers {
			if !slices.Contains(own, condition.Label) {
				complaints = append(complaints, s.Name+" has no label "+condition.Label)
			}
			if condition.Operator == "=" && !strings.HasPrefix(condition.Value, "$") && m.Help != "" && !explains(m, condition.Value) {
				complaints = append(complaints, s.Name+" does not speak of "+condition.Value)
			}
		}
		rate := regexp.MustCompile(`\b(rate|increase|absent)\(` + s.Name + `\b`)
		if m.Type != "gauge" && !rate.MatchString(query) {
			complaints = append(complaints, s.Name+" only ever rises")
		}
	}
	for _, label := range metrics.Grouped(query) {
		if !slices.Contains(labels, label) {
			complaints = append(complaints, "nothing has label "+label)
		}
	}
	return complaints
}

func explains(m metrics.Metric, value string) bool {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(value) + `\b`).MatchString(m.Help)
}

func alerts() (all []metrics.Alert) {
	GinkgoHelper()
	for _, g := range groups() {
		all = append(all, g.Rules...)
	}
	return all
}

func groups() []metrics.Group {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(root, metrics.AlertsFile))
	Expect(err).NotTo(HaveOccurred())
	all, err := metrics.ReadAlerts(text)
	Expect(err).NotTo(HaveOccurred())
	Expect(all).NotTo(BeEmpty())
	return all
}

// board is what is looked at of a dashboard of Grafana.
type board struct {
	UID        string `json:"uid"`
	Panels     []panel
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
}

type panel struct {
	ID          int `json:"id"`
	Type, Title string
	Description string
	GridPos     struct{ X, Y, W, H int }
	Datasource  struct{ UID string }
	Targets     []struct{ Expr, LegendFormat string }
}

func dashboard() (b board) {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(root, "dashboards/evenkeel.json"))
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(text, &b)).To(Succeed())
	return b
}

func queries() (all []string) {
	GinkgoHelper()
	for _, p := range dashboard().Panels {
		for _, t := range p.Targets {
			all = append(all, t.Expr)
		}
	}
	Expect(all).NotTo(BeEmpty())
	return all
}

var placeholder = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?([a-z_]+)\s*\}\}`)

// placeholders are the labels that a text shows of what a query has found.
func placeholders(text string) (labels []string) {
	for _, match := range placeholder.FindAllStringSubmatch(text, -1) {
		labels = append(labels, match[1])
	}
	return labels
}

var _ = Describe("The alerts", func() {
	It("ask for metrics and labels that there are", func() {
		for _, a := range alerts() {
			Expect(wrong(a.Expr, listed())).To(BeEmpty(), a.Alert)
		}
	})

	It("ask for the errors of everything that writes", func() {
		asked := ""
		for _, a := range alerts() {
			asked += a.Expr + "\n"
		}
		for _, m := range listed() {
			if strings.HasSuffix(m.Name, "_writes_total") && slices.Contains(m.Labels, "end") {
				Expect(asked).To(ContainSubstring(m.Name + `{end="error"}`))
			}
		}
	})

	It("say what is wrong, how bad, and what to do, by labels that they have", func() {
		names := map[string]bool{}
		for _, a := range alerts() {
			Expect(names).NotTo(HaveKey(a.Alert))
			names[a.Alert] = true
			Expect(a.For).To(MatchRegexp(`^\d+m$`), a.Alert)
			Expect(a.Labels["severity"]).To(BeElementOf("critical", "warning"), a.Alert)
			Expect(a.Annotations).To(And(HaveLen(2), HaveKeyWithValue("summary", Not(BeEmpty())), HaveKeyWithValue("description", Not(BeEmpty()))), a.Alert)
			Expect(a.Annotations["description"]).NotTo(ContainSubstring("{{"), "it is also in a document")
			for _, label := range placeholders(a.Annotations["summary"]) {
				Expect(metrics.Grouped(a.Expr)).To(ContainElement(label), a.Alert)
			}
		}
	})
})

var _ = Describe("The dashboard", func() {
	It("asks for metrics and labels that there are", func() {
		for _, query := range queries() {
			Expect(wrong(query, listed())).To(BeEmpty(), query)
		}
	})

	It("shows labels that its queries have", func() {
		for _, p := range dashboard().Panels {
			for _, t := range p.Targets {
				for _, label := range placeholders(t.LegendFormat) {
					Expect(metrics.Grouped(t.Expr)).To(ContainElement(label), p.Title)
				}
			}
		}
	})

	It("has every metric that is ours", func() {
		asked := strings.Join(queries(), "\n")
		for _, m := range listed() {
			Expect(asked).To(MatchRegexp(`\b`+m.Name+`(_bucket|_sum|_count)?\b`), m.Name)
		}
	})

	It("can be pointed at any Prometheus, and panels have places of their own", func() {
		b := dashboard()
		Expect(b.UID).NotTo(BeEmpty())
		var variables []string
		for _, v := range b.Templating.List {
			variables = append(variables, v.Name+" "+v.Type)
		}
		Expect(variables).To(Equal([]string{"datasource datasource", "namespace query"}))
		ids, cells := map[int]bool{}, map[[2]int]string{}
		for _, p := range b.Panels {
			Expect(ids).NotTo(HaveKey(p.ID))
			ids[p.ID] = true
			Expect(p.GridPos.X+p.GridPos.W).To(BeNumerically("<=", 24), p.Title)
			for x := range p.GridPos.W {
				for y := range p.GridPos.H {
					at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
					Expect(cells).NotTo(HaveKey(at), p.Title)
					cells[at] = p.Title
				}
			}
			if p.Type != "row" {
				Expect(p.Datasource.UID).To(Equal("${datasource}"), p.Title)
				Expect(p.Targets).NotTo(BeEmpty(), p.Title)
				Expect(p.Description).NotTo(BeEmpty(), p.Title)
			}
		}
	})
})

var _ = DescribeTable("A query is refused that", func(query, complaint string) {
	all := []metrics.Metric{
		{Name: "evenkeel_a", Type: "gauge", Labels: []string{"what"}, Help: "By what: one or two."},
		{Name: "evenkeel_b_total", Type: "counter"}, {Name: "evenkeel_c_seconds", Type: "histogram"},
	}
	if complaint == "" {
		Expect(wrong(query, all)).To(BeEmpty())
		return
	}
	Expect(wrong(query, all)).To(Equal([]string{complaint}))
},
	Entry("no, this one is right", `sum by (what) (evenkeel_a{what="one"}) > 0 and on () rate(evenkeel_b_total[5m]) > 1e3`, ""),
	Entry("no, nor this one", `histogram_quantile(0.9, sum by (le) (rate(evenkeel_c_seconds_bucket[$__rate_interval])))`, ""),
	Entry("asks for what is not there", `sum(evenkeel_z) > 0`, "no metric evenkeel_z"),
	Entry("asks for what others do not have", `mcm_z or evenkeel_a`, "no metric mcm_z"),
	Entry("asks for a histogram itself", `rate(evenkeel_c_seconds[5m])`, "no metric evenkeel_c_seconds"),
	Entry("knows a label too many", `evenkeel_a{which="one"}`, "evenkeel_a has no label which"),
	Entry("groups by a label too many", `sum(evenkeel_a) by (which)`, "nothing has label which"),
	Entry("knows a value too many", `evenkeel_a{what="three"}`, "evenkeel_a does not speak of three"),
	Entry("takes a counter for a gauge", `evenkeel_b_total > 0`, "evenkeel_b_total only ever rises"),
)

var _ = Describe("The page about metrics", func() {
	It("is what the list and the alerts say (if not: make generate)", func() {
		want, err := metrics.Page(listed(), groups())
		Expect(err).NotTo(HaveOccurred())
		is, err := os.ReadFile(filepath.Join(root, metrics.PageFile))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(is)).To(Equal(string(want)))
	})

	It("leaves out no metric", func() {
		_, err := metrics.Page([]metrics.Metric{{Name: "evenkeel_unheard_of", Type: "gauge"}}, nil)
		Expect(err).To(MatchError(ContainSubstring("0 of 1 metrics")))
	})
})
