// SPDX-License-Identifier: Apache-2.0

// Package reason explains the reasons of the conditions that Evenkeel sets. Each has one entry.
// Controllers take the status of a condition from it, kubectl evenkeel prints its meaning and its
// remedy, and the tables in docs/ are generated from it.
package reason

import "strings"

// Status of a condition, or the state that a reason belongs to.
type Status string

// A condition has one of these statuses.
const (
	True    Status = "True"
	False   Status = "False"
	Unknown Status = "Unknown"
)

// Reason explains one reason of a condition.
type Reason struct {
	Name   string
	Status Status
	// Meaning describes the situation, in Markdown.
	Meaning string
	// Remedy is what a person can do; empty if there is nothing to do. NAMESPACE and NAME stand for
	// those of the MachineDeployment.
	Remedy string
	// Passing reasons end without help. Nothing needs to be done unless one lasts.
	Passing bool
	// Event is the reason of the event that is recorded when the condition takes this reason, if
	// any. It is a Warning unless Status is True.
	Event string
}

// Table contains the reasons of one condition, those without a problem first.
type Table []Reason

// Conditions contains the tables of all conditions of one kind, by type.
type Conditions map[string]Table

// Find returns the entry of a reason. For an unknown reason, the entry contains only its name and
// the status Unknown.
func (t Table) Find(name string) Reason {
	for _, r := range t {
		if r.Name == name {
			return r
		}
	}
	return Reason{Name: name, Status: Unknown}
}

// Explain returns the meaning as plain text.
func (r Reason) Explain() string { return plain.Replace(r.Meaning) }

// RemedyFor returns the remedy for a MachineDeployment as plain text.
func (r Reason) RemedyFor(namespace, name string) string {
	return plain.Replace(strings.NewReplacer("NAMESPACE", namespace, "NAME", name).Replace(r.Remedy))
}

// plain removes the backquotes of code.
var plain = strings.NewReplacer("`", "")
