// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/evenkeel/evenkeel/internal/plugin/size"
	"github.com/evenkeel/evenkeel/internal/plural"
	"github.com/evenkeel/evenkeel/internal/sizing"
)

// Size is the answer to how large a reserve has to be, in lines.
func Size(a size.Answer, s Style) []string {
	s.Width = max(s.Width, Narrowest)
	var lines []string
	for _, line := range wrapText(sizeTitle(a), s.Width) {
		lines = append(lines, s.colorize(bold, line))
	}
	lines = append(lines, wrapText(sizeSetup(a), s.Width)...)
	lines = append(append(lines, ""), s.sizeTable(a)...)
	lines = append(lines, s.section("Suggestion", []string{suggestionText(a)})...)
	for _, note := range a.Notes {
		lines = append(lines, s.note(note)...)
	}
	return lines
}

func (s Style) note(text string) []string {
	var lines []string
	for i, line := range wrapText("note: "+text, s.Width-2) {
		if i > 0 {
			line = "  " + line
		}
		lines = append(lines, s.colorize(dim, line))
	}
	return lines
}

func sizeTitle(a size.Answer) string {
	const layout = "2006-01-02 15:04"
	title := fmt.Sprintf("%s from %s to %s UTC, %s", plural.Of(a.Pods, "pod"), a.Start.Format(layout), a.End.Format(layout), duration.HumanDuration(a.End.Sub(a.Start)))
	if a.MachineDeployment != "" {
		title = "MachineDeployment " + a.MachineDeployment + ": " + title
	}
	return title
}

func sizeSetup(a size.Answer) string {
	shortest, longest := a.Boot()
	boot := formatWait(shortest)
	if shortest != longest {
		boot += " to " + formatWait(longest)
	}
	return fmt.Sprintf("Machines of %g CPU, %s and %s pods boot in %s. %g of 100 pods may wait %s at most.",
		float64(a.Machine.Cpu().MilliValue())/1000, a.Machine.Memory(), a.Machine.Pods(), boot, a.Percentile, formatWait(a.WaitSeconds.Duration()))
}

// sizeColumn is a column of the table of amounts.
type sizeColumn struct {
	head string
	// rank decides which columns are left out on a narrow screen: the largest first.
	rank int
	cell func(sizing.Point) string
}

func sizeColumns(a size.Answer) []sizeColumn {
	all := []sizeColumn{
		{"HOURS", 0, func(p sizing.Point) string { return shortNumber(int(math.Round(p.ReserveHours))) }},
		{"COST", 2, func(p sizing.Point) string { return formatCost(p.ReserveHours * a.Price) }},
		{"ALL HOURS", 5, func(p sizing.Point) string { return shortNumber(int(math.Round(p.MachineHours))) }},
		{"LATE", 3, func(p sizing.Point) string { return shortNumber(p.Late) }},
	}
	all = slices.DeleteFunc(all, func(c sizeColumn) bool { return c.head == "COST" && a.Price == 0 })
	return append(append(all, waitColumns(a)...), waitColumn("LONGEST", 3, func(p sizing.Point) sizing.Seconds { return p.Longest }))
}

// waitColumns are those of percentiles, that of the goal among them.
func waitColumns(a size.Answer) []sizeColumn {
	of := map[float64]sizeColumn{
		50:           waitColumn("p50", 4, func(p sizing.Point) sizing.Seconds { return p.Median }),
		95:           waitColumn("p95", 4, func(p sizing.Point) sizing.Seconds { return p.P95 }),
		99:           waitColumn("p99", 1, func(p sizing.Point) sizing.Seconds { return p.P99 }),
		a.Percentile: waitColumn(a.PercentileText(), 0, func(p sizing.Point) sizing.Seconds { return p.Wait }),
	}
	var all []sizeColumn
	for _, percentile := range slices.Sorted(maps.Keys(of)) {
		all = append(all, of[percentile])
	}
	return all
}

func waitColumn(head string, rank int, of func(sizing.Point) sizing.Seconds) sizeColumn {
	return sizeColumn{head, rank, func(p sizing.Point) string { return formatWait(of(p).Duration()) }}
}

// sizeRow is a line of the table.
type sizeRow struct {
	name  string
	point sizing.Point
	tags  []string
}

func sizeRows(a size.Answer) []sizeRow {
	var rows []sizeRow
	for _, p := range a.Points {
		row := sizeRow{name: shortNumber(p.Machines), point: p}
		if a.Current != nil && *a.Current == p.Machines {
			row.tags = append(row.tags, "now")
		}
		if a.Amount != nil && a.Amount.Machines == p.Machines {
			row.tags = append(row.tags, "enough")
		}
		rows = append(rows, row)
	}
	if a.Schedule != nil {
		rows = append(rows, sizeRow{name: "schedule", point: *a.Schedule, tags: []string{"enough"}})
	}
	return rows
}

// SizeTexts is the answer in words, for a page that is not made of lines.
type SizeTexts struct {
	Title, Setup, Suggestion string
	// Head are the names of the columns; the first is that of the rows' names.
	Head []string
	Rows []SizeRow
}

// SizeRow is a line of the table of amounts.
type SizeRow struct {
	Name  string
	Cells []string
	// Tags say what is special about the amount.
	Tags      string
	Suggested bool
}

// TextsOf returns the answer in words.
func TextsOf(a size.Answer) SizeTexts {
	columns := sizeColumns(a)
	texts := SizeTexts{Title: sizeTitle(a), Setup: sizeSetup(a), Suggestion: suggestionText(a), Head: []string{"RESERVE"}}
	for _, c := range columns {
		texts.Head = append(texts.Head, c.head)
	}
	for _, r := range sizeRows(a) {
		row := SizeRow{Name: r.name, Tags: strings.Join(r.tags, ", "), Suggested: r.suggested(a)}
		for _, c := range columns {
			row.Cells = append(row.Cells, c.cell(r.point))
		}
		texts.Rows = append(texts.Rows, row)
	}
	return texts
}

func (r sizeRow) suggested(a size.Answer) bool {
	p := a.Suggested()
	return p != nil && r.point.Policy.Equal(p.Policy)
}

// sizeTable has a line for each amount. Columns that do not fit are left out.
func (s Style) sizeTable(a size.Answer) []string {
	columns, rows := sizeColumns(a), sizeRows(a)
	table := layOut(columns, rows)
	for rank := 5; rank > 0 && textWidth(table[0]) > s.Width; rank-- {
		columns = slices.DeleteFunc(columns, func(c sizeColumn) bool { return c.rank == rank })
		table = layOut(columns, rows)
	}
	table[0] = s.colorize(dim, strings.TrimRight(table[0], " "))
	for i, row := range rows {
		if row.suggested(a) {
			table[i+1] = s.colorize(green, table[i+1])
		}
	}
	return table
}

// layOut aligns the columns. All lines are as wide as the first one, but for spaces at the end.
func layOut(columns []sizeColumn, rows []sizeRow) []string {
	names := widest(math.MaxInt, append(mapStrings(rows, func(r sizeRow) string { return r.name }), "RESERVE")...)
	tags := widest(math.MaxInt, mapStrings(rows, tagText)...)
	lines := []string{padRight("RESERVE", names)}
	for _, r := range rows {
		lines = append(lines, padRight(r.name, names))
	}
	for _, c := range columns {
		cells := append([]string{c.head}, mapStrings(rows, func(r sizeRow) string { return c.cell(r.point) })...)
		width := widest(math.MaxInt, cells...)
		for i := range lines {
			lines[i] += "  " + padLeft(cells[i], width)
		}
	}
	for i, r := range rows {
		lines[i+1] = strings.TrimRight(lines[i+1]+tagText(r), " ")
	}
	lines[0] += strings.Repeat(" ", tags)
	return lines
}

func tagText(r sizeRow) string {
	if len(r.tags) == 0 {
		return ""
	}
	return "  " + strings.Join(r.tags, ", ")
}

// suggestionText describes how many machines to keep.
func suggestionText(a size.Answer) string {
	goal := a.PercentileText() + " within " + formatWait(a.WaitSeconds.Duration())
	switch {
	case a.Amount == nil:
		last := a.Points[len(a.Points)-1]
		return fmt.Sprintf("No reserve reaches %s: with %s, it is %s.", goal, plural.Of(last.Machines, "machine"), formatWait(last.Wait.Duration()))
	case a.Amount.Machines == 0:
		return fmt.Sprintf("No reserve is necessary: %s is %s without one.", a.PercentileText(), formatWait(a.Amount.Wait.Duration()))
	case a.Schedule == nil:
		return fmt.Sprintf("Keep %s at any time: this is the smallest amount that reaches %s. No schedule is much cheaper.", plural.Of(a.Amount.Machines, "machine"), goal)
	}
	base := plural.Of(a.Schedule.Machines, "machine") + " and more"
	if a.Schedule.Machines == 0 {
		base = "machines only"
	}
	return fmt.Sprintf("Keep %s by %s: this reaches %s with %d%% fewer machine hours than %s at any time.",
		base, plural.Of(len(a.Schedule.Schedules), "schedule"), goal, size.Saving(*a.Schedule, *a.Amount), plural.Of(a.Amount.Machines, "machine"))
}

// formatWait formats a wait in at most six characters.
func formatWait(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%gs", math.Round(d.Seconds()*10)/10)
	}
	return duration.HumanDuration(d)
}

// formatCost formats money, whatever the currency.
func formatCost(cost float64) string {
	if cost < 100 {
		return fmt.Sprintf("%.2f", cost)
	}
	return shortNumber(int(min(math.Round(cost), math.MaxInt32)))
}
