// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/evenkeel/evenkeel/internal/plugin/size"
	"github.com/evenkeel/evenkeel/internal/plural"
	"github.com/evenkeel/evenkeel/internal/sizing"
)

const (
	hoursOfDay = 24
	daysOfWeek = 7
	// An hour is so many units wide, and a panel so many high.
	hourWidth   = 5
	panelHeight = 150
	weekWidth   = daysOfWeek * hoursOfDay * hourWidth
)

//go:embed *.svg
var templateFiles embed.FS

var templates = template.Must(template.ParseFS(templateFiles, "*.svg"))

// drawing is what the template shows.
type drawing struct {
	Title    string
	Subtitle string
	Width    int
	Height   int
	Days     []tick
	Panels   []panel
}

// panel is a quantity over the week, on a scale of its own that begins at zero.
type panel struct {
	Name string
	// Above is its distance from the top.
	Above int
	Ticks []tick
	// Bars is the path of what was measured, and Lines are what is kept.
	Bars  string
	Lines []line
}

// tick is a number or a name at a place of an axis.
type tick struct {
	At   float64
	Text string
}

// line is a path with its explanation.
type line struct {
	Class, Path, Name string
	// At is where its explanation begins.
	At int
}

// Week writes a picture of the demand of a week, the smallest fixed amount, and the suggested
// schedule.
func Week(to io.Writer, a size.Answer) error {
	d := drawing{Title: title("What a reserve is needed for", a), Subtitle: subtitle(a), Width: weekWidth, Height: panelHeight}
	for i, name := range []string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"} {
		d.Days = append(d.Days, tick{float64(i * hoursOfDay * hourWidth), name})
	}
	reserve, err := reservePanel(a)
	if err != nil {
		return err
	}
	d.Panels = []panel{demandPanel(a), reserve}
	return execute(to, "week", d)
}

// execute writes a picture, or nothing if it cannot be drawn.
func execute(to io.Writer, name string, shown any) error {
	var text bytes.Buffer
	if err := templates.ExecuteTemplate(&text, name+".svg", shown); err != nil {
		return fmt.Errorf("draw the %s: %w", name, err)
	}
	_, err := to.Write(text.Bytes())
	return err
}

func title(text string, a size.Answer) string {
	if a.MachineDeployment == "" {
		return text
	}
	return text + ": MachineDeployment " + a.MachineDeployment
}

func subtitle(a size.Answer) string {
	return fmt.Sprintf("%s, by hours of the week in %s", spanOf(a), a.TimeZone)
}

// spanOf names the trace.
func spanOf(a size.Answer) string {
	const layout = "2006-01-02"
	return fmt.Sprintf("%s from %s to %s", plural.Of(a.Pods, "pod"), a.Start.Format(layout), a.End.Format(layout))
}

// demandPanel shows how many pods are created.
func demandPanel(a size.Answer) panel {
	top := 1.0
	for _, day := range a.Week {
		for _, h := range day {
			top = max(top, h.Pods)
		}
	}
	s := scaleTo(top)
	return panel{Name: "Pods created in an hour, on average", Above: 80, Ticks: s.ticks(), Bars: barPath(a.Week, s, func(h sizing.Hour) float64 { return h.Pods })}
}

// reservePanel shows how many machines of a reserve were in use, and how many are kept.
func reservePanel(a size.Answer) (panel, error) {
	top := 1
	for _, day := range a.Week {
		for _, h := range day {
			top = max(top, h.Machines)
		}
	}
	var steps []step
	if a.Schedule != nil {
		var err error
		if steps, err = stepsOf(a); err != nil {
			return panel{}, err
		}
		top = max(top, slices.MaxFunc(steps, func(x, y step) int { return x.machines - y.machines }).machines)
	}
	if a.Amount != nil {
		top = max(top, a.Amount.Machines)
	}
	s := scaleTo(float64(top))
	p := panel{Name: "Machines of a reserve: in use at most", Above: 300, Ticks: s.ticks(), Bars: barPath(a.Week, s, func(h sizing.Hour) float64 { return float64(h.Machines) })}
	if a.Amount != nil {
		p.Lines = append(p.Lines, line{"fixed", fmt.Sprintf("M0 %sH%d", s.y(float64(a.Amount.Machines)), weekWidth), fixedName(a), 300})
	}
	if steps != nil {
		p.Lines = append(p.Lines, line{"schedule", staircase(steps, s), scheduleName(a), 560})
	}
	return p, nil
}

func fixedName(a size.Answer) string {
	return fmt.Sprintf("%s at any time: %.0f h", plural.Of(a.Amount.Machines, "machine"), a.Amount.ReserveHours)
}

func scheduleName(a size.Answer) string {
	return fmt.Sprintf("suggested: %.0f h, %d%% less", a.Schedule.ReserveHours, size.Saving(*a.Schedule, *a.Amount))
}

// scale is a vertical axis from zero.
type scale struct{ top, each float64 }

// scaleTo returns a scale with round numbers, at most five of them.
func scaleTo(top float64) scale {
	each := math.Pow(10, math.Floor(math.Log10(top)))
	for _, part := range []float64{0.2, 0.5, 1, 2} {
		if n := max(1, each*part); top/n <= 5 {
			each = n
			break
		}
	}
	return scale{math.Ceil(top/each) * each, each}
}

func (s scale) y(value float64) string { return number(panelHeight * (1 - value/s.top)) }

func (s scale) ticks() []tick {
	var all []tick
	for value := 0.0; value <= s.top; value += s.each {
		all = append(all, tick{panelHeight * (1 - value/s.top), number(value)})
	}
	return all
}

// horizontalTicks returns ticks for a horizontal axis.
func (s scale) horizontalTicks(width float64) []tick {
	var all []tick
	for value := 0.0; value <= s.top; value += s.each {
		all = append(all, tick{round(width * value / s.top), number(value)})
	}
	return all
}

// barPath is a path with a bar for each hour that the trace covers.
func barPath(week sizing.Week, s scale, of func(sizing.Hour) float64) string {
	var path strings.Builder
	for d, day := range week {
		for h, hour := range day {
			if value := of(hour); value > 0 {
				fmt.Fprintf(&path, "M%d %dV%sh%dV%dz", (d*hoursOfDay+h)*hourWidth, panelHeight, s.y(value), hourWidth-1, panelHeight)
			}
		}
	}
	return path.String()
}

// step is an amount from an hour of the week on.
type step struct {
	hour     float64
	machines int
}

// stepsOf returns what the schedule keeps in the last full week, as local clocks show it.
func stepsOf(a size.Answer) ([]step, error) {
	zone, err := time.LoadLocation(a.TimeZone)
	if err != nil {
		return nil, fmt.Errorf("read the time zone: %w", err)
	}
	end := a.End.In(zone)
	sinceMonday := (int(end.Weekday()) + daysOfWeek - 1) % daysOfWeek
	monday := time.Date(end.Year(), end.Month(), end.Day()-sinceMonday-daysOfWeek, 0, 0, 0, 0, zone)
	changes, err := a.Schedule.Steps(monday, monday.AddDate(0, 0, daysOfWeek))
	if err != nil {
		return nil, err
	}
	var steps []step
	for _, c := range changes {
		at := c.At.In(zone)
		day := (int(at.Weekday()) + daysOfWeek - 1) % daysOfWeek
		steps = append(steps, step{float64(day*hoursOfDay+at.Hour()) + float64(at.Minute())/60, c.Machines})
	}
	return steps, nil
}

// staircase is a path along the steps.
func staircase(steps []step, s scale) string {
	var path strings.Builder
	for i, one := range steps {
		if i == 0 {
			fmt.Fprintf(&path, "M0 %s", s.y(float64(one.machines)))
			continue
		}
		fmt.Fprintf(&path, "H%sV%s", number(one.hour*hourWidth), s.y(float64(one.machines)))
	}
	return path.String() + fmt.Sprintf("H%d", weekWidth)
}

// number is short.
func number(n float64) string { return fmt.Sprintf("%g", round(n)) }

func round(n float64) float64 { return math.Round(n*100) / 100 }
