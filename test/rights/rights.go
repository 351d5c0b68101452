// SPDX-License-Identifier: Apache-2.0

// Package rights compares what accounts may do, by RBAC, with what they did, by an audit log.
package rights

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Right is one verb on one kind.
type Right struct {
	// Account is a service account, as namespace/name.
	Account string
	// Namespace is where it applies; empty means everywhere, or objects without a namespace.
	Namespace string
	// Resource is resource.group, with the subresource after a slash, as in
	// machines.machine.sapcloud.io/status; or the path of a non-resource URL.
	Resource string
	Verb     string
}

func (r Right) String() string {
	where := "everywhere"
	if r.Namespace != "" {
		where = "in " + r.Namespace
	}
	return fmt.Sprintf("%s: %s %s %s", r.Account, r.Verb, r.Resource, where)
}

// covers reports whether a right includes the use of another one.
func (r Right) covers(use Right) bool {
	return r.Account == use.Account && r.Resource == use.Resource && r.Verb == use.Verb && (r.Namespace == "" || r.Namespace == use.Namespace)
}

// Excuse is why a right is granted that the tests do not use.
type Excuse struct {
	Account, Resource, Verb string
	Reason                  string
	// Sometimes reports whether it is a matter of chance whether a run uses the right.
	Sometimes bool
}

func (e Excuse) excuses(r Right) bool {
	return e.Account == r.Account && e.Resource == r.Resource && e.Verb == r.Verb
}

// Log contains the requests of the accounts.
type Log struct {
	// Used were allowed, Refused were not.
	Used, Refused []Right
}

// Check returns what is wrong, in lines: refused requests, unused rights without an excuse, and
// excuses for rights that are used, not granted, or that lack a reason.
func Check(granted []Right, log Log, excuses []Excuse) []string {
	var wrong []string
	for _, r := range log.Refused {
		wrong = append(wrong, "refused: "+r.String())
	}
	used := func(r Right) bool { return slices.ContainsFunc(log.Used, r.covers) }
	excused := func(r Right) bool { return slices.ContainsFunc(excuses, func(e Excuse) bool { return e.excuses(r) }) }
	for _, r := range granted {
		if !used(r) && !excused(r) {
			wrong = append(wrong, "granted and never used: "+r.String())
		}
	}
	for _, e := range excuses {
		if what := e.whyUnneeded(granted, used); what != "" {
			wrong = append(wrong, fmt.Sprintf("excuse for %s: %s %s: %s", e.Account, e.Verb, e.Resource, what))
		}
	}
	return wrong
}

// whyUnneeded returns why the excuse is not needed.
func (e Excuse) whyUnneeded(granted []Right, used func(Right) bool) string {
	its := slices.DeleteFunc(slices.Clone(granted), func(r Right) bool { return !e.excuses(r) })
	switch {
	case strings.TrimSpace(e.Reason) == "":
		return "has no reason"
	case len(its) == 0:
		return "is not granted"
	case !e.Sometimes && !slices.ContainsFunc(its, func(r Right) bool { return !used(r) }):
		return "is used"
	}
	return ""
}

// unique sorts rights and removes duplicates.
func unique(all []Right) []Right {
	slices.SortFunc(all, func(a, b Right) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Namespace, b.Namespace))
	})
	return slices.Compact(all)
}
