// SPDX-License-Identifier: Apache-2.0

package oracle

import "slices"

// Stories returns all stories written by hand. They are in a table for each part of
// docs/controllers.md.
func Stories() []Story {
	return slices.Concat(ofValidation, ofOwnership, ofTemplates, ofSets, ofSetStatus, ofScaling, ofRollingUpdate, ofRecreate,
		ofInPlaceUpdate, ofStatus, ofRollback, ofNamedDeletions, ofPreservation, ofSafety)
}

// ByHand returns the hand-written story with a name, for other specs.
func ByHand(name string) Story {
	for _, s := range Stories() {
		if s.Name == name {
			return s
		}
	}
	panic("no story " + name) // a mistake in a spec
}
