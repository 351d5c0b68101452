// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/pkg/reserve"
)

var update = flag.Bool("update", false, "write testdata/plans.jsonl anew")

// The file contains views, and the plan for each, without zero values. They were chosen among thousands of drawn
// views, because for each of them some change of one place in the rule, which no other spec sees, makes another plan.
// Where a change is meant, write the plans anew with -update, and read what differs.
var _ = It("Plans for views that few changes of the rule leave alone are as they were", func() {
	path := filepath.Join("testdata", "plans.jsonl")
	text, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	var written bytes.Buffer
	for line := range bytes.Lines(text) {
		var known struct{ View, Plan json.RawMessage }
		Expect(json.Unmarshal(line, &known)).To(Succeed())
		var view View
		Expect(json.Unmarshal(known.View, &view)).To(Succeed())
		plan := withoutZeros(NewPlan(view))
		if !*update {
			Expect(plan).To(MatchJSON(known.Plan), "for %s", known.View)
		}
		written.WriteString(`{"view":` + string(known.View) + `,"plan":` + plan + "}\n")
	}
	if *update {
		Expect(os.WriteFile(path, written.Bytes(), 0o644)).To(Succeed())
		return
	}
	Expect(written.Bytes()).To(Equal(text))
})

// withoutZeros is JSON without what is zero or empty.
func withoutZeros(value any) string {
	GinkgoHelper()
	text, err := json.Marshal(value)
	Expect(err).NotTo(HaveOccurred())
	var tree any
	Expect(json.Unmarshal(text, &tree)).To(Succeed())
	text, err = json.Marshal(prune(tree))
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

func prune(tree any) any {
	switch t := tree.(type) {
	case map[string]any:
		for key, value := range t {
			if t[key] = prune(value); t[key] == nil {
				delete(t, key)
			}
		}
		if len(t) == 0 {
			return nil
		}
	case []any:
		for i := range t {
			t[i] = prune(t[i])
		}
		if len(t) == 0 {
			return nil
		}
	case bool, string, float64:
		if t == false || t == "" || t == 0.0 || t == "0001-01-01T00:00:00Z" {
			return nil
		}
	}
	return tree
}
