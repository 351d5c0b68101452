// SPDX-License-Identifier: Apache-2.0

package additions

import (
	"context"
	"encoding/json"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/evenkeel/evenkeel/test/metrics"
)

var _ = Describe("Monitoring of a Shoot", func() {
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
