// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"regexp"
	"slices"
	"sync"
)

// exclusion is something that is not compared. Its field is what [State] names it, behind the kind.
type exclusion struct {
	field  *regexp.Regexp
	reason string
	// loose excludes it only from stories with faults.
	loose bool
}

func never(field, reason string) exclusion {
	return exclusion{field: regexp.MustCompile("^(" + field + ")$"), reason: reason}
}

func loosely(field, reason string) exclusion {
	e := never(field, reason)
	e.loose = true
	return e
}

// exclusions are all fields that are not compared. Nobody can depend on them, or they are random in
// stock: see docs/controllers.md.
var exclusions = []exclusion{
	never(`\w+ metadata\.(uid|resourceVersion|managedFields.*|selfLink)`, "the server decides them"),
	never(`\w+ metadata\.generation`, "it counts writes"),
	never(`\w+ metadata\.generateName`, "names of machines are not compared"),
	never(`\w+ .*[cC]onditions?\[.*\]\.message`, "texts are for people"),
	never(`\w+ .*[cC]onditions?\[.*\]\.lastHeartbeatTime`, "it counts writes"),
	never(`\w+ .*lastOperation\.(lastUpdateTime|description)`, "it counts writes; texts are for people (S28)"),
	never(`MachineSet metadata\.annotations\[deployment\.kubernetes\.io/revision-history\]`, "it depends on the number of writes (T12)"),
	never(`MachineDeployment status\.conditions\[Available\]\.last\w+Time`, "whether it flips for a moment depends on when status is written"),
	never(`Node status\.(capacity|allocatable|nodeInfo).*`, "the double decides them"),
	loosely(`\w+ metadata\.creationTimestamp`, "a machine made in vain shifts births (17.1)"),
	never(`Event (MachineDeployment|Machine|Node|Lease|Pod) .*`, "stock runs without a recorder for them here"),
	never(`Event MachineSet \w+ (Froze|Unfroze)MachineSet`, "stock runs without a recorder for them here"),
	loosely(`Event .*`, "the recorder drops and repeats events when requests fail"),
}

// verdicts remembers what excluded answered: there are few fields, and each is asked for often.
var verdicts sync.Map

type question struct {
	field string
	loose bool
}

// excluded reports whether a field of a kind is not compared.
func excluded(kind, field string, loose bool) bool {
	q := question{kind + " " + field, loose}
	if known, found := verdicts.Load(q); found {
		return known.(bool)
	}
	yes := slices.ContainsFunc(exclusions, func(e exclusion) bool { return (loose || !e.loose) && e.field.MatchString(q.field) })
	verdicts.Store(q, yes)
	return yes
}

// synonyms are values that mean the same.
var synonyms = map[string]string{
	"NewMachineSetCreated": "FoundNewMachineSet", // which of them is a matter of conflicts (P12)
}
