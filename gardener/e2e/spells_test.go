// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// slack is by how much a spell may be longer than stock's: two rounds of machine-controller-manager, which looks every five seconds.
const slack = 10 * time.Second

// blink is a break that does not end a spell. Nodes that are updated one after the other are all ready for a moment
// between two updates, and whether that moment is seen is a matter of luck.
const blink = 3 * time.Second

// spell is a time for which Gardener found the Shoot unhealthy for one reason. The message is the last one.
type spell struct {
	from, to        time.Time
	reason, message string
}

func (s spell) length() time.Duration { return s.to.Sub(s.from) }

// spells are one of each reason.
type spells map[string]spell

// extended is the spell of a reason, up to now: a new one if the last one is over.
func (all spells) extended(reason, message string, now time.Time) spell {
	s, known := all[reason]
	if !known || now.Sub(s.to) > blink {
		s = spell{from: now, reason: reason}
	}
	s.to, s.message = now, message
	return s
}

// with takes a spell in.
func (all spells) with(s spell) spells {
	if s.length() < all[s.reason].length() {
		return all
	}
	if all == nil {
		all = spells{}
	}
	all[s.reason] = s
	return all
}

func (all spells) String() string {
	if len(all) == 0 {
		return "never"
	}
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, fmt.Sprintf("%s %.1fs", reason, all[reason].length().Seconds()))
	}
	return strings.Join(parts, ", ")
}

// messages are what Gardener said, a line for each reason.
func (all spells) messages() []string {
	var lines []string
	for _, reason := range slices.Sorted(maps.Keys(all)) {
		lines = append(lines, fmt.Sprintf("%s: %q", reason, all[reason].message))
	}
	return lines
}

// beyond is what is longer than the peer's spells, or for a reason that the peer never had.
func (all spells) beyond(peer spells) error {
	for _, reason := range slices.Sorted(maps.Keys(all)) {
		if mine, its := all[reason].length(), peer[reason].length(); mine > its+slack {
			return fmt.Errorf("%s for %.1fs, stock for %.1fs: %s", reason, mine.Seconds(), its.Seconds(), all[reason].message)
		}
	}
	return nil
}

// kindOf is what an error of the extension's health check is about, without names: it has no reason of its own.
func kindOf(detail string) string {
	switch {
	case detail == "":
		return ""
	case strings.Contains(detail, "failed:"):
		return "MachineFailed"
	}
	return "MachineDeploymentUnhealthy"
}
