// SPDX-License-Identifier: Apache-2.0

package page

import (
	"embed"
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/evenkeel/evenkeel/internal/overview"
)

// fragment is a section of the page: an element with this id, whose HTML is replaced when it
// changes.
type fragment struct {
	ID   string
	HTML template.HTML
}

//go:embed templates/*.html
var templateFiles embed.FS

var templates = template.Must(template.New("page").Funcs(template.FuncMap{"class": stateClass, "moment": moment, "clock": timeOfDay, "ago": timeAgo, "states": states}).ParseFS(templateFiles, "templates/*.html"))

// renderFragments renders the fragments of a view in the order of the page. It renders none for an
// object that does not exist.
func renderFragments(o overview.Overview, past history, v view) ([]fragment, error) {
	var d drawer
	if v == (view{}) {
		d.everything(o, past)
	} else if pool, zone, found := findZone(o, v); found {
		d.machines(pool, zone, o)
	}
	return d.fragments, d.err
}

// drawer collects fragments until the first error.
type drawer struct {
	fragments []fragment
	err       error
}

func (d *drawer) everything(o overview.Overview, past history) {
	if len(o.Missing) > 0 {
		d.render("missing", "missing", o.Missing)
	}
	d.render("totals", "totals", newTotals(o))
	d.render("troubles", "troubles", newTroubles(o.Troubles))
	d.render("timeline", "timeline", newTimeline(past, o.At))
	d.render("pools", "pools", len(o.Pools))
	for _, shown := range newPools(o.Pools) {
		d.render(shown.ID, "pool", shown)
	}
	if len(o.Reserves) > 0 {
		d.render("reserves", "reserves", o.Reserves)
	}
	if len(o.Balancers) > 0 {
		d.render("balancers", "balancers", newBalancers(o.Balancers))
	}
	if len(o.Federated) > 0 {
		d.render("federated", "federated", newFederated(o.Federated))
	}
	if len(o.Buffers) > 0 {
		d.render("buffers", "buffers", o.Buffers)
	}
	if len(o.Requests) > 0 {
		d.render("requests", "requests", o.Requests)
	}
	d.render("read", "read", o.At)
}

func (d *drawer) machines(pool overview.Pool, zone overview.Zone, o overview.Overview) {
	d.render("zone", "zone", newZone(pool, zone, len(zone.Machines), zoneEnd(zone)))
	d.render("machines", "machines", newRows(zone.Machines))
	d.render("read", "read", o.At)
}

func (d *drawer) render(id, name string, shown any) {
	if d.err != nil {
		return
	}
	var text strings.Builder
	if err := templates.ExecuteTemplate(&text, name, shown); err != nil {
		d.err = fmt.Errorf("draw %s: %w", id, err)
		return
	}
	// A template produced this, and escaped all its input.
	d.fragments = append(d.fragments, fragment{id, template.HTML(strings.TrimSpace(text.String()))})
}

func findZone(o overview.Overview, v view) (overview.Pool, overview.Zone, bool) {
	for _, pool := range o.Pools {
		if pool.Namespace != v.namespace {
			continue
		}
		for _, zone := range pool.Zones {
			if zone.Name == v.name {
				return pool, zone, true
			}
		}
	}
	return overview.Pool{}, overview.Zone{}, false
}

// totals are the numbers at the top of the page.
type totals struct {
	// Serving is the number of serving machines, Replicas the desired number; Ready and Excess are
	// the same for the reserve.
	Serving, Replicas, Ready, Excess int
	// Coming is the number of booting machines, Leaving that of leaving ones.
	Coming, Leaving, Failed int
	// Waiting is -1 if pods could not be read.
	Waiting int
	// Wrong is the number of problems.
	Wrong int
}

func newTotals(o overview.Overview) totals {
	t := totals{Waiting: o.PodsWaiting, Wrong: len(o.Troubles)}
	for _, pool := range o.Pools {
		for _, zone := range pool.Zones {
			t.Replicas += zone.Replicas
			t.Excess += zone.Excess
			t.Serving += zone.Count[overview.Working]
			t.Ready += zone.Count[overview.ReserveReady]
			t.Coming += zone.Count[overview.Booting] + zone.Count[overview.ReserveBooting]
			t.Leaving += zone.Count[overview.Leaving]
			t.Failed += zone.Count[overview.Failed]
		}
	}
	return t
}

// shownTroubles is how many problems are shown before the rest is folded.
const shownTroubles = 4

// troubles are the problems, the worst first.
type troubles struct {
	// All is their number, Next the number of the first folded one.
	All, Next    int
	First, Later []overview.Trouble
}

func newTroubles(all []overview.Trouble) troubles {
	first := min(len(all), shownTroubles)
	return troubles{len(all), first + 1, all[:first], all[first:]}
}

// moment formats a time in the time zone of this machine, which is also the user's. An unknown time
// is empty.
func moment(t time.Time) template.HTML { return shownTime(`<time`, t, time.DateTime) }

// timeOfDay is enough for a time less than a day ago.
func timeOfDay(t time.Time) template.HTML { return shownTime(`<time`, t, time.TimeOnly) }

// timeAgo renders a time; the script of the page shows how long ago it is.
func timeAgo(t time.Time) template.HTML { return shownTime(`<time class="ago"`, t, time.DateTime) }

func shownTime(tag string, t time.Time, layout string) template.HTML {
	if t.IsZero() {
		return ""
	}
	return template.HTML(tag + ` datetime="` + t.UTC().Format(time.RFC3339) + `">` + t.Local().Format(layout) + `</time>`)
}
