// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/pkg/controller/release/plan"
)

var _ = Describe("A raise", func() {
	DescribeTable("tests all that it rests on, in each patch", func(inclusive bool) {
		applied, excess := "2", "1,counted=1,replicas=3"
		for _, replicas := range []int32{0, 3} {
			r := Raise{By: 1, Pool: Pool{Inclusive: inclusive, Key: "default/a", Basis: Basis{UID: "u", Generation: 7, Replicas: replicas, Bounds: "1:9", Applied: &applied, Excess: &excess}}}
			for _, patch := range r.Patches() {
				var operations []struct {
					Op, Path string
					Value    any
				}
				Expect(json.Unmarshal(patch, &operations)).To(Succeed())
				tested := map[string]any{}
				for _, o := range operations {
					if o.Op == "test" {
						tested[o.Path] = o.Value
					}
				}
				Expect(tested).To(And(HaveLen(6), HaveKey("/spec/replicas"), HaveKeyWithValue("/metadata/uid", "u"), HaveKeyWithValue("/metadata/generation", 7.),
					HaveKeyWithValue(HaveSuffix("bounds"), "1:9"), HaveKeyWithValue(HaveSuffix("applied-replicas"), "2"), HaveKeyWithValue(HaveSuffix("applied-excess"), excess)))
			}
		}
	},
		Entry("replicas without the reserve", false),
		Entry("replicas that include it", true),
	)
})
