// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"github.com/evenkeel/evenkeel/test/metrics"
)

var update = flag.Bool("update", false, "write metrics.yaml from what the controllers register")

// recorder is a registry that remembers what it was given.
type recorder struct {
	*prometheus.Registry
	collectors []prometheus.Collector
}

func (r *recorder) MustRegister(all ...prometheus.Collector) {
	r.Registry.MustRegister(all...)
	r.collectors = append(r.collectors, all...)
}

func (r *recorder) Register(c prometheus.Collector) error {
	r.collectors = append(r.collectors, c)
	return r.Registry.Register(c)
}

// registered are all metrics, by name. What a collector is says its type; of one of our own, what it shows.
func (r *recorder) registered() []metrics.Metric {
	GinkgoHelper()
	families, err := r.Gather()
	Expect(err).NotTo(HaveOccurred())
	shown := map[string]string{}
	for _, f := range families {
		shown[f.GetName()] = strings.ToLower(f.GetType().String())
	}
	var all []metrics.Metric
	for _, c := range r.collectors {
		for _, d := range described(c) {
			if strings.Contains(d.String(), `"mcm_`) {
				continue // named as machine-controller-manager's, whose documentation lists them
			}
			m := metrics.Metric{Type: typeOf(c)}
			m.Name, m.Help, m.Labels = parts(d)
			if m.Type == "" {
				m.Type = shown[m.Name]
			}
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b metrics.Metric) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func described(c prometheus.Collector) []*prometheus.Desc {
	into := make(chan *prometheus.Desc, 100)
	c.Describe(into)
	close(into)
	var all []*prometheus.Desc
	for d := range into {
		all = append(all, d)
	}
	return all
}

func typeOf(c prometheus.Collector) string {
	switch c.(type) {
	case *prometheus.GaugeVec, prometheus.Gauge:
		return "gauge"
	case *prometheus.CounterVec, prometheus.Counter:
		return "counter"
	case *prometheus.HistogramVec, prometheus.Histogram:
		return "histogram"
	}
	return ""
}

// parts of a description, which shows them only as text.
func parts(d *prometheus.Desc) (name, help string, labels []string) {
	GinkgoHelper()
	text := d.String()
	_, err := fmt.Sscanf(text, "Desc{fqName: %q, help: %q, constLabels: {}, variableLabels: ", &name, &help)
	Expect(err).NotTo(HaveOccurred(), text)
	match := regexp.MustCompile(`variableLabels: \{([^}]*)\}\}$`).FindStringSubmatch(text)
	Expect(match).NotTo(BeNil(), text)
	return name, help, strings.FieldsFunc(match[1], func(r rune) bool { return r == ',' })
}

var _ = Describe("The list of metrics", func() {
	It("is what the controllers register", func() {
		all := everything().registered()
		if *update {
			Expect(os.WriteFile("metrics.yaml", []byte(list(all)), 0o644)).To(Succeed())
			return
		}
		Expect(metrics.All()).To(Equal(all), "if that is wanted: go test ./test/metrics -update, and make generate")
	})

	It("has every name that is in the code, and no other", func() {
		var names []string
		for _, m := range listed() {
			names = append(names, m.Name)
		}
		Expect(written()).To(ConsistOf(names))
	})

	It("begins at zero what alerts look for, where it is known before", func() {
		families, err := everything().Gather()
		Expect(err).NotTo(HaveOccurred())
		begun := map[string]int{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				for _, l := range m.GetLabel() {
					if l.GetName() == "end" && l.GetValue() == "error" {
						begun[f.GetName()]++
						Expect(m.GetCounter().GetValue()).To(BeZero())
					}
				}
			}
		}
		Expect(begun).To(Equal(map[string]int{
			"evenkeel_reserve_writes_total": 4, "evenkeel_release_raises_total": 1, "evenkeel_reserves_writes_total": 2, "evenkeel_booking_writes_total": 2, "evenkeel_capacitybuffer_writes_total": 2, "evenkeel_balancer_writes_total": 4,
		}), "clusters of a federation are not known before")
	})

	It("keeps to what Prometheus asks of names", func() {
		var families []*dto.MetricFamily
		for _, m := range listed() {
			families = append(families, family(m))
		}
		Expect(promlint.NewWithMetricFamilies(families).Lint()).To(BeEmpty())
	})
})

const heading = `# SPDX-License-Identifier: Apache-2.0
#
# All metrics of ours. Written by: go test ./test/metrics -update
`

func list(all []metrics.Metric) string {
	text := heading
	for _, m := range all {
		text += fmt.Sprintf("- name: %s\n  type: %s\n  labels: [%s]\n  help: %q\n", m.Name, m.Type, strings.Join(m.Labels, ", "), m.Help)
	}
	return text
}

func listed() []metrics.Metric {
	GinkgoHelper()
	all, err := metrics.All()
	Expect(err).NotTo(HaveOccurred())
	Expect(all).NotTo(BeEmpty())
	return all
}

// written are the names of metrics in the code, wherever that is: also of a controller that everything forgets.
func written() []string {
	GinkgoHelper()
	var names []string
	name := regexp.MustCompile(`"(` + metrics.Prefix + `[a-z_]*[a-z])"`)
	for _, top := range []string{"cmd", "internal", "pkg"} {
		Expect(filepath.WalkDir(filepath.Join(root, top), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, match := range name.FindAllSubmatch(text, -1) {
				names = append(names, string(match[1]))
			}
			return err
		})).To(Succeed())
	}
	return names
}

// family is a metric as a reader gets it, with one value.
func family(m metrics.Metric) *dto.MetricFamily {
	one, f := &dto.Metric{}, &dto.MetricFamily{Name: &m.Name, Help: &m.Help}
	for _, label := range m.Labels {
		one.Label = append(one.Label, &dto.LabelPair{Name: &label, Value: new(string)})
	}
	switch m.Type {
	case "counter":
		f.Type, one.Counter = dto.MetricType_COUNTER.Enum(), &dto.Counter{}
	case "gauge":
		f.Type, one.Gauge = dto.MetricType_GAUGE.Enum(), &dto.Gauge{}
	case "histogram":
		f.Type, one.Histogram = dto.MetricType_HISTOGRAM.Enum(), &dto.Histogram{}
	}
	f.Metric = []*dto.Metric{one}
	return f
}
