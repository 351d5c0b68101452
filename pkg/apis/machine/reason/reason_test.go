// SPDX-License-Identifier: Apache-2.0

package reason_test

import (
	"os"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/pkg/apis/machine/reason"
)

func TestReason(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Reasons")
}

var _ = Describe("A table of reasons", func() {
	tables := map[string]Table{"ReserveReady": ReserveReady, "ZonesBalanced": ZonesBalanced, "PoolExcessSpread": PoolExcessSpread, "RightsGranted": RightsGranted}

	It("has each reason once, with a meaning, and with something to do unless it passes or is no problem", func() {
		for condition, table := range tables {
			seen := map[string]bool{}
			for _, r := range table {
				Expect(seen).NotTo(HaveKey(r.Name), condition)
				seen[r.Name] = true
				Expect(r.Meaning).To(MatchRegexp("^([A-Z]|`--|machine-controller-manager ).*[^.]\\.$"), "%s %s", condition, r.Name)
				if r.Status != True && !r.Passing {
					Expect(r.Remedy).NotTo(BeEmpty(), "%s %s", condition, r.Name)
				}
				Expect(r.Remedy).NotTo(HaveSuffix("."), "%s %s", condition, r.Name)
			}
		}
	})

	It("does not know a reason of another version, and says so", func() {
		Expect(ReserveReady.Find("NeverHeardOf")).To(Equal(Reason{Name: "NeverHeardOf", Status: Unknown}))
	})

	It("names the MachineDeployment in a remedy, and has no marks of code in it", func() {
		Expect(ReserveReady.Find(RollingOut).RemedyFor("shoot", "pool")).To(HaveSuffix("kubectl -n shoot describe machinedeployment pool"))
		Expect(ReserveReady.Find(Outranked).RemedyFor("shoot", "pool")).NotTo(ContainSubstring("`"))
		Expect(ReserveReady.Find(Draining).Explain()).To(HavePrefix("--drain-reserve is on"))
	})

	It("is in its page as it is here", func() {
		for path, inPage := range Pages {
			text, err := os.ReadFile("../../../../" + path)
			Expect(err).NotTo(HaveOccurred())
			page, err := Render(string(text), inPage)
			Expect(err).NotTo(HaveOccurred())
			Expect(page).To(Equal(string(text)), "run: make generate")
			for condition := range inPage {
				Expect(page).To(ContainSubstring("reasons of " + condition))
				delete(tables, condition)
			}
		}
		Expect(tables).To(BeEmpty(), "those that no page has")
	})

	It("is missed in a page without its marks", func() {
		_, err := Render("# A page\n", Pages["docs/reserve.md"])
		Expect(err).To(MatchError(ContainSubstring("marks")))
	})
})
