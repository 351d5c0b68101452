// SPDX-License-Identifier: Apache-2.0

package reason

import (
	"fmt"
	"strings"
)

// Pages are the pages that contain tables, by their path in the repository.
var Pages = map[string]map[string]Table{
	"docs/reserve.md":  {"ReserveReady": ReserveReady},
	"docs/gardener.md": {"RightsGranted": RightsGranted},
	"docs/zones.md":    {"PoolExcessSpread": PoolExcessSpread, "ZonesBalanced": ZonesBalanced},
}

// Render returns a page with its tables as they are now. Each stands between two marks with the name of its condition.
func Render(page string, tables map[string]Table) (string, error) {
	for condition, table := range tables {
		begin, end := fmt.Sprintf("<!-- begin: reasons of %s, by make generate -->\n", condition), fmt.Sprintf("<!-- end: reasons of %s -->\n", condition)
		before, rest, found := strings.Cut(page, begin)
		_, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			return "", fmt.Errorf("the page does not have the marks %q and %q", begin, end)
		}
		page = before + begin + table.markdown() + end + after
	}
	return page, nil
}

func (t Table) markdown() string {
	var b strings.Builder
	b.WriteString("| status | reason | meaning | what to do |\n|---|---|---|---|\n")
	for _, r := range t {
		remedy := r.Remedy
		if r.Passing && remedy != "" {
			remedy = "wait; if it lasts, " + remedy
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", r.Status, r.Name, r.Meaning, strings.ReplaceAll(remedy, " -n NAMESPACE", ""))
	}
	return b.String()
}
