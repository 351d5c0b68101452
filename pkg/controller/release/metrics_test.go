// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/pkg/controller/release"
	"github.com/evenkeel/evenkeel/pkg/controller/release/plan"
)

var _ = It("counts pods by outcome in the metric, with those that were not looked at", func() {
	Expect(PodsByOutcome(plan.Plan{Pods: map[string]plan.Outcome{"a": plan.Released, "b": plan.Released, "c": plan.BeyondBounds}, Beyond: 7})).To(
		Equal(map[plan.Outcome]float64{plan.Released: 2, plan.BeyondBounds: 8}))
})
