// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/absent"
	"github.com/evenkeel/evenkeel/test/metrics"
)

// promtool is Prometheus' own judge. Where it is not installed make test says so at its end.
func promtool(ctx context.Context, args ...string) {
	GinkgoHelper()
	path, found, err := absent.Tool(root, "promtool")
	Expect(err).NotTo(HaveOccurred())
	if !found {
		return
	}
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
}

var _ = Describe("promtool", func() {
	It("takes the alerts", func(ctx context.Context) {
		promtool(ctx, "check", "rules", filepath.Join(root, metrics.AlertsFile))
	})

	It("sees each alert fire when it has to, and not before", func(ctx context.Context) {
		promtool(ctx, "test", "rules", "testdata/alerts.yaml")
		stories, err := os.ReadFile("testdata/alerts.yaml")
		Expect(err).NotTo(HaveOccurred())
		for _, a := range alerts() {
			Expect(string(stories)).To(ContainSubstring(`alertname="`+a.Alert+`"}', value: `), "it has a story")
		}
	})

	It("takes the queries of the dashboard", func(ctx context.Context) {
		var rules strings.Builder
		rules.WriteString("groups:\n- name: dashboard\n  rules:\n")
		for i, query := range queries() {
			fmt.Fprintf(&rules, "  - record: query_%d\n    expr: %q\n", i, variable.Replace(query))
		}
		file := filepath.Join(GinkgoT().TempDir(), "rules.yaml")
		Expect(os.WriteFile(file, []byte(rules.String()), 0o600)).To(Succeed())
		promtool(ctx, "check", "rules", file)
	})
})

// variable stands for what Grafana puts in.
var variable = strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h")
