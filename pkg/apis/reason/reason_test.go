// SPDX-License-Identifier: Apache-2.0

package reason_test

import (
	"os"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/pkg/apis/reason"
)

func TestReason(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Reasons")
}

var _ = Describe("A table of reasons", func() {
	tables := map[string]Table{"ReserveReady": ReserveReady, "ZonesBalanced": ZonesBalanced, "PoolExcessSpread": PoolExcessSpread, "RightsGranted": RightsGranted}

	check := func(name string, table Table, good func(i int, r Reason) bool) {
		GinkgoHelper()
		seen := map[string]bool{}
		for i, r := range table {
			what := name + " " + r.Name
			Expect(seen).NotTo(HaveKey(r.Name), what)
			seen[r.Name] = true
			Expect(r.Meaning).To(MatchRegexp("^([A-Z]|`|machine-controller-manager ).*[^.]\\.$"), what)
			if !good(i, r) && !r.Passing {
				Expect(r.Remedy).NotTo(BeEmpty(), what)
			}
			Expect(r.Remedy).NotTo(HaveSuffix("."), what)
		}
	}

	It("has each reason once, with a meaning, and with something to do unless it passes or is no problem", func() {
		for name, table := range tables {
			check(name, table, func(_ int, r Reason) bool { return r.Status == True })
		}
		for _, table := range []Table{Targets, Clusters} {
			check(table[0].Name, table, func(int, Reason) bool { return false })
		}
		for _, conditions := range []Conditions{Balancer, Federation, Reserve, CapacityBuffer} {
			for name, table := range conditions {
				check(name, table, func(i int, r Reason) bool { return i == 0 || name == "Ready" && r.Status == True })
				if len(table) > 1 { // a terminal condition is there, or not
					Expect(table[0].Status).NotTo(Equal(table[1].Status), name)
				}
			}
		}
	})

	It("does not know a reason of another version, and says so", func() {
		Expect(ReserveReady.Find("NeverHeardOf")).To(Equal(Reason{Name: "NeverHeardOf", Status: Unknown}))
	})

	It("names the MachineDeployment in a remedy, and has no marks of code in it", func() {
		Expect(ReserveReady.Find(RollingOut).RemedyFor("shoot", "pool")).To(HaveSuffix("kubectl -n shoot describe machinedeployment pool"))
		for _, r := range ReserveReady {
			Expect(r.RemedyFor("shoot", "pool")).NotTo(ContainSubstring("`"))
		}
		Expect(ReserveReady.Find(Draining).Explain()).To(HavePrefix("--drain-reserve is on"))
	})

	It("is in its page as it is here", func() {
		named := map[string]bool{}
		for path := range Pages {
			text, err := os.ReadFile("../../../" + path)
			Expect(err).NotTo(HaveOccurred())
			page, err := Render(path, string(text))
			Expect(err).NotTo(HaveOccurred())
			Expect(page).To(Equal(string(text)), "run: make generate")
			for name := range Pages[path] {
				named[name] = true
			}
		}
		for name := range tables {
			Expect(named).To(HaveKey(name), "no page has it")
		}
		Expect(named).To(HaveLen(len(tables) + 6))
	})

	It("is missed in a page without its marks", func() {
		_, err := Render("docs/reserve.md", "# A page\n")
		Expect(err).To(MatchError(ContainSubstring("marks")))
	})
})
