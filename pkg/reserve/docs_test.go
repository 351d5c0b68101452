// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"os"
	"regexp"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/apis/reason"
)

var _ = It("has a page that explains every reason, and no other", func() {
	page, err := os.ReadFile("../../docs/reserve-rule.md")
	Expect(err).NotTo(HaveOccurred())
	var all []string
	for _, r := range reason.ReserveReady {
		if !slices.Contains(ofTheController, r.Name) {
			all = append(all, r.Name)
		}
	}
	Expect(submatches(regexp.MustCompile("`([A-Z][A-Za-z]+)`"), page)).To(ConsistOf(all))
})

// ofTheController are reasons that the rule does not give.
var ofTheController = []string{reason.BoundsInvalid, reason.AnnotationInvalid, reason.CapacityUnknown, reason.ClusterUnreachable, reason.Draining}

func submatches(pattern *regexp.Regexp, text []byte) []string {
	var found []string
	for _, match := range pattern.FindAllSubmatch(text, -1) {
		found = append(found, string(match[1]))
	}
	return found
}
