// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// grade is the severity of a problem.
type grade int

// The grades, the worst first.
const (
	// broken: workload suffers, or soon will.
	broken grade = iota
	// lacking: something that was requested is missing.
	lacking
	// noted: everything runs, but probably not as intended.
	noted
)

// finding is a problem with its sort order.
type finding struct {
	Trouble
	grade grade
}

func (r *reading) addProblem(g grade, object, what, do string) {
	r.found = append(r.found, finding{Trouble{Object: object, What: what, Do: do}, g})
}

// troubles returns all findings, and problems that only the whole shows.
func (r *reading) troubles() []Trouble {
	r.inspectWaiting()
	slices.SortStableFunc(r.found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.grade, b.grade), cmp.Compare(a.Object, b.Object), cmp.Compare(a.What, b.What))
	})
	troubles := make([]Trouble, 0, len(r.found))
	for _, f := range r.found {
		troubles = append(troubles, f.Trouble)
	}
	return troubles
}

// objectRef returns kind/namespace/name.
func objectRef(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

// attendance is how long an object may be without any answer of its controller.
const attendance = 3 * time.Minute

// isNew reports whether an object is too new to expect a controller to have written its status.
func (r *reading) isNew(o metav1.Object) bool {
	return r.At.Sub(o.GetCreationTimestamp().Time) < attendance
}

// inspect looks for what is wrong with a MachineDeployment.
func (r *reading) inspect(d *v1alpha1.MachineDeployment, z Zone) {
	object := objectRef("machinedeployment", d.Namespace, d.Name)
	r.inspectMachines(d, z)
	r.inspectReserve(object, d, z)
	if z.Bounds != nil && z.Replicas > z.Bounds.Max && z.ReserveReady.Reason != "AboveMax" {
		r.addProblem(noted, object, fmt.Sprintf("replicas %d are above max %d", z.Replicas, z.Bounds.Max), "raise max in the bounds, or lower replicas")
	}
	if frozen := conditionOf(d, mcm.MachineDeploymentFrozen); frozen.Status == "True" || pool.Frozen(d) {
		r.addProblem(broken, object, "frozen: machine-controller-manager creates no machines for it", "check the log of machine-controller-manager: there are too many machines, or an API server does not respond")
	}
	if c := conditionOf(d, mcm.MachineDeploymentReplicaFailure); c.Status == "True" {
		r.addProblem(broken, object, "machines cannot be created: "+oneLine(c.Message), commandFor("kubectl -n %s describe machinedeployment %s", d))
	}
	if c := conditionOf(d, mcm.MachineDeploymentProgressing); c.Status == "False" {
		r.addProblem(lacking, object, "the rollout makes no progress: "+oneLine(c.Message), commandFor("kubectl -n %s describe machinedeployment %s", d))
	}
	if c := conditionOf(d, "PoolExcessSpread"); c.Status == "False" {
		what, do := splitMessage(c.Message)
		r.addProblem(lacking, object, "pool's excess: "+what, cmp.Or(do, remedy(reason.PoolExcessSpread.Find(c.Reason), d)))
	}
	if c := conditionOf(d, "RightsGranted"); c.Status == "False" {
		r.addProblem(noted, object, "rights are missing: "+oneLine(c.Message), remedy(reason.RightsGranted.Find(c.Reason), d))
	}
	if c := conditionOf(d, "ZonesBalanced"); c.Status == "False" {
		if known := reason.ZonesBalanced.Find(c.Reason); !known.Passing {
			r.addProblem(noted, object, "zones are not even: "+oneLine(c.Message), remedy(known, d))
		}
	}
}

// inspectReserve reads the condition of the reserve, or reports that it is not written.
func (r *reading) inspectReserve(object string, d *v1alpha1.MachineDeployment, z Zone) {
	c := z.ReserveReady
	if err := r.snapshots[d].WishesErr; err != nil && c.Reason != "BoundsInvalid" {
		what, do := splitMessage(err.Error())
		r.addProblem(lacking, object, what+" is invalid", do)
		return
	}
	switch c.Status {
	case "":
		if failure := conditionOf(d, mcm.MachineDeploymentReplicaFailure); z.Excess > 0 && !r.isNew(d) && failure.Status != "True" {
			r.addProblem(lacking, object, fmt.Sprintf("an excess of %d is desired, but no controller has reported on it", z.Excess),
				"check that machine-controller-manager runs with --controllers=*, or with mcm among them")
		}
	case "True":
		r.inspectImages(object, z)
	case "False":
		known := reason.ReserveReady.Find(c.Reason)
		if known.Passing && r.At.Sub(c.Since) < r.BootPatience {
			return
		}
		r.addProblem(lacking, object, fmt.Sprintf("reserve %s: %s", c.Reason, oneLine(c.Message)), remedy(known, d))
	}
}

// inspectMachines reports what is wrong with machines, in one line per state however many they are.
func (r *reading) inspectMachines(d *v1alpha1.MachineDeployment, z Zone) {
	for _, state := range States {
		var bad []Machine
		for _, m := range z.Machines {
			if m.State == state && m.Why != "" {
				bad = append(bad, m)
			}
		}
		if len(bad) == 0 {
			continue
		}
		what := fmt.Sprintf("%s %s: %s", bad[0].Name, gripe[state], bad[0].Why)
		if more := len(bad) - 1; more > 0 {
			what = fmt.Sprintf("%s; %d more", what, more)
		}
		g := broken
		if state != Failed {
			g = lacking
		}
		r.addProblem(g, objectRef("machinedeployment", d.Namespace, d.Name), what, fmt.Sprintf("kubectl -n %s describe machine %s", d.Namespace, bad[0].Name))
	}
}

// gripe is what a state with something wrong is called.
var gripe = map[State]string{
	Working: "serves", Booting: "does not become ready", ReserveReady: "in reserve",
	ReserveBooting: "in reserve does not become ready", Leaving: "hangs", Failed: "failed",
}

// remedy is what to do about a reason, or where to read more about one that this version does not
// know.
func remedy(r reason.Reason, d *v1alpha1.MachineDeployment) string {
	return cmp.Or(r.RemedyFor(d.Namespace, d.Name), commandFor("kubectl -n %s describe machinedeployment %s", d))
}

// commandFor fills in the namespace and the name of the object in a command.
func commandFor(command string, o metav1.Object) string {
	for _, word := range []string{o.GetNamespace(), o.GetName()} {
		command = strings.Replace(command, "%s", word, 1)
	}
	return command
}

// splitMessage splits a message of the form "what: what to do".
func splitMessage(message string) (what, do string) {
	what, do, _ = strings.Cut(message, ": ")
	return oneLine(what), oneLine(do)
}
