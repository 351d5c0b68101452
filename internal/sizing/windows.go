// SPDX-License-Identifier: Apache-2.0

package sizing

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

// leadStep is what the time before a window, in which machines boot, is rounded up to.
const leadStep = 5 * time.Minute

// newPolicy turns the amounts of groups of days into schedules that begin early enough for machines
// to boot.
func newPolicy(groups pattern, days []day, boot time.Duration, zone *time.Location) Policy {
	p := Policy{Machines: days[0][0]}
	for _, d := range days {
		p.Machines = min(p.Machines, slices.Min(d[:]))
	}
	lead := (boot + leadStep - 1) / leadStep * leadStep
	for g, d := range days {
		for from := 0; from < hoursOfDay; {
			to := from + 1
			for to < hoursOfDay && d[to] == d[from] {
				to++
			}
			if d[from] > p.Machines {
				p.Schedules = append(p.Schedules, newSchedule(groups[g], from, to, d[from], lead, zone))
			}
			from = to
		}
	}
	return p
}

// newSchedule returns a schedule for some hours of some days.
func newSchedule(days []int, from, to, machines int, lead time.Duration, zone *time.Location) v1alpha1.ReserveSchedule {
	begins := time.Duration(from)*time.Hour - lead
	days = slices.Clone(days)
	for begins < 0 {
		begins += hoursOfDay * time.Hour
		for i := range days {
			days[i] = (days[i] + daysOfWeek - 1) % daysOfWeek
		}
	}
	slices.Sort(days)
	hour, minute := int(begins/time.Hour), int(begins%time.Hour/time.Minute)
	s := v1alpha1.ReserveSchedule{
		Name:     fmt.Sprintf("%s-%02d%02d", strings.ToLower(nameOfDays(days)), hour, minute),
		Start:    v1alpha1.CronText(fmt.Sprintf("%d %d * * %s", minute, hour, cronOfDays(days))),
		Replicas: ptr.To(int32(machines)),
	}
	if name := zone.String(); name != time.UTC.String() {
		s.TimeZone = name
	}
	if to < hoursOfDay && lead <= time.Duration(from)*time.Hour {
		s.End = v1alpha1.CronText(fmt.Sprintf("0 %d * * %s", to, cronOfDays(days)))
	} else {
		s.Duration = strings.TrimSuffix((time.Duration(to-from)*time.Hour + lead).String(), "0s")
	}
	return s
}

var dayNames = [daysOfWeek]string{"MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"}

// cronOfDays names days, counted from Monday and sorted, as a cron time does.
func cronOfDays(days []int) string {
	if len(days) == daysOfWeek {
		return "*"
	}
	var parts []string
	for i := 0; i < len(days); {
		last := i
		for last+1 < len(days) && days[last+1] == days[last]+1 {
			last++
		}
		switch {
		case days[last] == daysOfWeek-1 && last > i, last == i+1: // in cron, a week ends on Saturday
			for ; i <= last; i++ {
				parts = append(parts, dayNames[days[i]])
			}
		case last == i:
			parts = append(parts, dayNames[days[i]])
		default:
			parts = append(parts, dayNames[days[i]]+"-"+dayNames[days[last]])
		}
		i = last + 1
	}
	return strings.Join(parts, ",")
}

func nameOfDays(days []int) string {
	if len(days) == daysOfWeek {
		return "daily"
	}
	return strings.ReplaceAll(cronOfDays(days), ",", "-")
}
