// SPDX-License-Identifier: Apache-2.0

package reason

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Pages contains the pages with tables, by their path in the repository. Each table has a name
// there.
var Pages = map[string]map[string]interface{ markdown() string }{
	"docs/reserve.md":                               {"ReserveReady": ReserveReady},
	"docs/gardener.md":                              {"RightsGranted": RightsGranted},
	"docs/spec/reserve.md":                          {"Reserve": Reserve},
	"docs/spec/capacitybuffer.md":                   {"CapacityBuffer": CapacityBuffer},
	"docs/spec/balancer.md":                         {"Balancer": Balancer, "targets": Targets},
	"docs/spec/federatedhorizontalpodautoscaler.md": {"FederatedHorizontalPodAutoscaler": Federation, "clusters": Clusters},
	"docs/zones.md":                                 {"PoolExcessSpread": PoolExcessSpread, "ZonesBalanced": ZonesBalanced},
}

// Render returns a page with its tables updated. Each table is between two marks with its name.
func Render(path, page string) (string, error) {
	for name, table := range Pages[path] {
		begin, end := fmt.Sprintf("<!-- begin: reasons of %s, by make generate -->\n", name), fmt.Sprintf("<!-- end: reasons of %s -->\n", name)
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
	column := "status"
	for _, r := range t {
		switch r.Status {
		case True, False, Unknown:
		case "":
			column = ""
		default:
			column = "state"
		}
	}
	return markdownTable([]string{column, "reason", "meaning", "what to do"}, func(row func(cells ...string)) {
		for _, r := range t {
			row(append([]string{string(r.Status)}, r.cells()...)...)
		}
	})
}

func (c Conditions) markdown() string {
	return markdownTable([]string{"condition", "status", "reason", "meaning", "what to do"}, func(row func(cells ...string)) {
		types := slices.Sorted(maps.Keys(c))
		slices.SortStableFunc(types, func(a, b string) int { return cmp.Compare(first(b), first(a)) })
		for _, condition := range types {
			for _, r := range c[condition] {
				row(append([]string{"`" + condition + "`", string(r.Status)}, r.cells()...)...)
			}
		}
	})
}

// first is 1 for the condition that summarizes all others.
func first(condition string) int {
	if condition == "Ready" {
		return 1
	}
	return 0
}

func (r Reason) cells() []string {
	remedy := r.Remedy
	if r.Passing && remedy != "" {
		remedy = "wait; if it lasts, " + remedy
	}
	return []string{"`" + r.Name + "`", r.Meaning, strings.ReplaceAll(remedy, " -n NAMESPACE", "")}
}

// markdownTable returns a Markdown table. If the first column has no name, it is left out.
func markdownTable(columns []string, rows func(row func(cells ...string))) string {
	var b strings.Builder
	row := func(cells ...string) {
		if columns[0] == "" {
			cells = cells[1:]
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	row(columns...)
	b.WriteString(strings.Repeat("|---", strings.Count(b.String(), "|")-1) + "|\n")
	rows(row)
	return b.String()
}
