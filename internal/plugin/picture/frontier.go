// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/evenkeel/evenkeel/internal/plugin/size"
	"github.com/evenkeel/evenkeel/internal/plural"
	"github.com/evenkeel/evenkeel/internal/sizing"
)

// frontier is what its template shows: what amounts cost, and how long pods wait with them.
type frontier struct {
	drawing
	// Across are machine hours, Up waits.
	Across, Up []tick
	AcrossName string
	UpName     string
	// Path leads through the fixed amounts.
	Path string
	Dots []dot
	// Goal is how high the wait is that is asked for.
	Goal     float64
	GoalName string
}

// dot is an amount.
type dot struct {
	X, Y  float64
	Class string
	// Text is left out where there is no room for it.
	Text string
}

// labelRoom is how far apart texts beside dots are.
const labelRoom = 26

// Frontier writes a picture of the amounts: what each costs, and how long pods wait with it.
func Frontier(to io.Writer, a size.Answer) error {
	points := slices.Clone(a.Points)
	if a.Schedule != nil {
		points = append(points, *a.Schedule)
	}
	hours, waits := 1.0, a.WaitSeconds
	for _, p := range points {
		hours, waits = max(hours, p.ReserveHours), max(waits, p.Wait)
	}
	unit, name := unitOf(waits)
	s := plot{scaleTo(hours), scaleTo(max(1, float64(waits)/unit)), unit}
	f := frontier{
		drawing:    drawing{Title: title("What a reserve costs", a), Subtitle: spanOf(a), Width: weekWidth, Height: panelHeight},
		Across:     s.across.horizontalTicks(weekWidth),
		Up:         s.up.ticks(),
		AcrossName: "Machine hours in reserve", UpName: a.PercentileText() + " of the waits, in " + name,
		Path: s.path(a.Points), Dots: s.dots(a),
		Goal: s.y(a.WaitSeconds), GoalName: fmt.Sprintf("what %g of 100 pods may wait", a.Percentile),
	}
	return execute(to, "frontier", f)
}

// unitOf returns a unit in which waits are shown, in seconds.
func unitOf(longest sizing.Seconds) (seconds float64, name string) {
	switch {
	case longest > 3*60*60:
		return 60 * 60, "hours"
	case longest > 5*60:
		return 60, "minutes"
	}
	return 1, "seconds"
}

// plot is where an amount is in the picture.
type plot struct {
	across, up scale
	unit       float64
}

func (s plot) x(hours float64) float64 { return round(weekWidth * hours / s.across.top) }

func (s plot) y(wait sizing.Seconds) float64 {
	return round(panelHeight * (1 - float64(wait)/s.unit/s.up.top))
}

func (s plot) path(points []sizing.Point) string {
	var path strings.Builder
	for i, p := range points {
		fmt.Fprintf(&path, "%c%g %g", "ML"[min(i, 1)], s.x(p.ReserveHours), s.y(p.Wait))
	}
	return path.String()
}

func (s plot) dots(a size.Answer) []dot {
	var all []dot
	last := -2.0 * labelRoom
	for _, p := range a.Points {
		d := dot{X: s.x(p.ReserveHours), Y: s.y(p.Wait), Class: "amount"}
		enough := a.Amount != nil && a.Amount.Machines == p.Machines
		if enough {
			d.Class = "amount enough"
		}
		if enough || d.X-last >= labelRoom {
			d.Text, last = fmt.Sprint(p.Machines), d.X
		}
		all = append(all, d)
	}
	if p := a.Schedule; p != nil {
		all = append(all, dot{s.x(p.ReserveHours), s.y(p.Wait), "scheduled", plural.Of(len(p.Schedules), "schedule")})
	}
	return all
}
