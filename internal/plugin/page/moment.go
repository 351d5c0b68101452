// SPDX-License-Identifier: Apache-2.0

package page

import (
	"html/template"
	"time"
)

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
