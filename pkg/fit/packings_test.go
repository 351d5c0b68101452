// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	. "github.com/evenkeel/evenkeel/pkg/fit"
)

var update = flag.Bool("update", false, "write testdata anew")

// problem is pods that need places.
type problem struct {
	nodes  []Node
	groups []Group
	demand Demand
}

// problems draws small clusters in which every rule is common, or pods of which two or three fill a machine.
var problems = rapid.Custom(func(t *rapid.T) (p problem) {
	if rapid.IntRange(0, 3).Draw(t, "loads") == 0 {
		nodes, group := reserve("g", rapid.IntRange(1, 10).Draw(t, "machines"), has("cpu=2 memory=2000Mi pods=100"))
		_, pods := drawLoads(t)
		return problem{nodes, []Group{group}, Demand{Pods: pods}}
	}
	nodes, groups, waiting := drawCluster(t)
	d := Demand{Pods: reads(waiting...)}
	if rapid.Bool().Draw(t, "more to come") {
		for _, pod := range d.Pods[:min(2, len(d.Pods))] {
			d.Uncreated = append(d.Uncreated, Uncreated{Like: pod, Count: rapid.IntRange(0, 5).Draw(t, "to come")})
		}
	}
	if rapid.IntRange(0, 4).Draw(t, "hurry") == 0 {
		d.Budget = rapid.IntRange(1, 400).Draw(t, "budget")
	}
	return problem{nodes, groups, d}
})

// packingOf describes how a drawn problem is solved.
func packingOf(number int) string {
	p := problems.Example(number)
	packing := Pack(NewRoom(p.nodes), p.demand, p.groups)
	return fmt.Sprintf("%d | opens %v | %s | to come: %v | unfinished: %d | work: %d",
		number, packing.Opened, where(packing), packing.Uncreated, len(packing.Unfinished), packing.Work)
}

// Each line of the file is a drawn problem and its solution. They were chosen among thousands, because for each of them
// some change of one place in the code, which no other spec sees, makes another solution. Where a change is meant, or
// problems are drawn in another way, write the solutions anew with -update, and read what differs.
var _ = It("Packings of problems that few changes leave alone are as they were", func() {
	path := filepath.Join("testdata", "packings.txt")
	text, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	var written strings.Builder
	for lines := bufio.NewScanner(strings.NewReader(string(text))); lines.Scan(); {
		var number int
		_, err := fmt.Sscanf(lines.Text(), "%d", &number)
		Expect(err).NotTo(HaveOccurred())
		packing := packingOf(number)
		if !*update {
			Expect(packing).To(Equal(lines.Text()))
		}
		written.WriteString(packing + "\n")
	}
	if *update {
		Expect(os.WriteFile(path, []byte(written.String()), 0o644)).To(Succeed())
	}
})
