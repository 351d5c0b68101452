// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Story is what happens to one namespace of machines, act by act, with rest in between.
type Story struct {
	Name string
	// Rows of docs/controllers.md that the story plays.
	Rows []string
	Acts []Act
	// Weather is the seed of faults that strike the implementation during each act; 0 is none.
	Weather uint64
	// Weakness is the row of a weakness of stock that its end shows. An implementation without it ends
	// otherwise.
	Weakness string
	// Chance is the row by which stock's end depends on chance, if it does.
	Chance string
}

// String returns the story as a list of acts.
func (s Story) String() string {
	lines := []string{s.Name}
	for i, act := range s.Acts {
		lines = append(lines, fmt.Sprintf("  %2d. %s", i+1, act))
	}
	return strings.Join(lines, "\n")
}

// Act is what people, machines and Nodes do at one moment. An act on a machine that is not there
// does nothing.
type Act interface {
	fmt.Stringer
	play(*stage) error
}

// At selects a machine: the nth one, from 0, of a MachineDeployment or of a standalone MachineSet, in
// the order in which [Normalise] numbers machines: by birth, then by content. Numbers beyond the last
// machine begin anew, and negative ones count from the last.
type At struct {
	Of  string
	Nth int
}

// theSame is the machine of the last act on one.
var theSame = At{Of: "<the same machine>"}

// String returns it as in pool/2.
func (a At) String() string { return fmt.Sprintf("%s/%d", a.Of, a.Nth) }

// Create creates an object, without a status.
type Create struct{ Object runtime.Object }

// Patch merges JSON into an object, or into its status if Subresource says so. In the text, <now> is
// the time of the act, and <now+1h> is later.
type Patch struct{ Kind, Name, Merge, Subresource string }

// Delete deletes an object. The policy may be empty.
type Delete struct {
	Kind, Name string
	Policy     metav1.DeletionPropagation
}

// PatchMachine merges JSON into a machine, as Patch does.
type PatchMachine struct {
	At                 At
	Merge, Subresource string
}

// PatchNode merges JSON into the Node of a machine, as Patch does.
type PatchNode struct {
	At    At
	Merge string
}

// PatchSet merges JSON into the MachineSet of a machine, as Patch does.
type PatchSet struct {
	Of    At
	Merge string
}

// DeleteSet deletes the MachineSet of a machine.
type DeleteSet struct{ Of At }

// DeleteMachine deletes a machine.
type DeleteMachine struct{ At At }

// DeleteNode deletes the Node of a machine.
type DeleteNode struct{ At At }

// Sicken makes the Node of a machine not ready: the machine is Unknown, and Failed after ten minutes.
type Sicken struct{ At At }

// Recover ends a Sicken. A machine that is Failed runs again.
type Recover struct{ At At }

// Boots sets whether machines boot that are created from now on.
type Boots struct{ Blocked bool }

// Quota sets whether the cloud refuses new machines.
type Quota struct{ Exhausted bool }

// Drains sets whether machines that are deleted stay Terminating.
type Drains struct{ Blocked bool }

// Refuse sets whether the server refuses to let the implementation create objects of a kind.
type Refuse struct {
	Kind    string
	Refused bool
}

// Glance plays an act and looks after some time, without waiting for rest.
type Glance struct {
	Act   Act
	After time.Duration
}

// Updates sets whether updates in place fail.
type Updates struct{ Fail bool }

// Name names machines of a MachineDeployment for deletion and scales it, in one write, as
// cluster-autoscaler does.
type Name struct {
	Of string
	// From owns the machines, Of unless set.
	From     string
	Nth      []int
	Replicas int
	// Old is the format without times; Unstamped omits the time of the last change.
	Old, Unstamped bool
}

// Wait lets time pass.
type Wait struct{ Time time.Duration }

// Crash kills the implementation's process and restarts it later.
type Crash struct{ Pause time.Duration }

// Down plays acts while the implementation's process is down.
type Down struct{ Acts []Act }

// Together plays acts with no rest but a pause between them.
type Together struct {
	Pause time.Duration
	Acts  []Act
}

func (a Create) String() string {
	text, err := json.Marshal(a.Object)
	if err != nil {
		return err.Error()
	}
	return "create " + string(text)
}

func (a Patch) String() string {
	return fmt.Sprintf("patch %s %s %s %s", a.Kind, a.Name, a.Subresource, a.Merge)
}
func (a Delete) String() string { return fmt.Sprintf("delete %s %s %s", a.Kind, a.Name, a.Policy) }
func (a PatchMachine) String() string {
	return fmt.Sprintf("patch machine %v %s %s", a.At, a.Subresource, a.Merge)
}
func (a PatchNode) String() string     { return fmt.Sprintf("patch the node of %v %s", a.At, a.Merge) }
func (a PatchSet) String() string      { return fmt.Sprintf("patch the set of %v %s", a.Of, a.Merge) }
func (a DeleteSet) String() string     { return fmt.Sprintf("delete the set of %v", a.Of) }
func (a DeleteMachine) String() string { return fmt.Sprintf("delete machine %v", a.At) }
func (a DeleteNode) String() string    { return fmt.Sprintf("delete the node of %v", a.At) }
func (a Sicken) String() string        { return fmt.Sprintf("sicken %v", a.At) }
func (a Recover) String() string       { return fmt.Sprintf("recover %v", a.At) }
func (a Boots) String() string         { return fmt.Sprintf("boots blocked: %v", a.Blocked) }
func (a Quota) String() string         { return fmt.Sprintf("quota exhausted: %v", a.Exhausted) }
func (a Drains) String() string        { return fmt.Sprintf("drains blocked: %v", a.Blocked) }
func (a Refuse) String() string {
	return fmt.Sprintf("creation of a %s refused: %v", a.Kind, a.Refused)
}
func (a Glance) String() string  { return fmt.Sprintf("%s, and look after %v", a.Act, a.After) }
func (a Updates) String() string { return fmt.Sprintf("updates in place fail: %v", a.Fail) }
func (a Wait) String() string    { return fmt.Sprintf("wait %v", a.Time) }
func (a Crash) String() string   { return fmt.Sprintf("crash for %v", a.Pause) }
func (a Name) String() string {
	return fmt.Sprintf("name machines %v of %s, replicas %d, old format: %v, without stamp: %v", a.Nth, a.Of, a.Replicas, a.Old, a.Unstamped)
}

func (a Down) String() string     { return "while it is down: " + joined(a.Acts) }
func (a Together) String() string { return fmt.Sprintf("within %v: %s", a.Pause, joined(a.Acts)) }

func joined(acts []Act) string {
	var all []string
	for _, act := range acts {
		all = append(all, act.String())
	}
	return strings.Join(all, "; ")
}
