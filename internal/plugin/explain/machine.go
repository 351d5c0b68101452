// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"math"
	"slices"
	"strconv"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/plural"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// machine is everything that an explanation of one machine is based on.
type machine struct {
	overview.Machine
	object  *mcm.Machine
	zone    overview.Zone
	oracle  *oracle
	objects overview.Objects
}

// Machine explains a Machine.
func Machine(o overview.Objects, name string) (Account, error) {
	object, err := findObject(o.Machines, "machine", name, o)
	if err != nil {
		return Account{}, err
	}
	m := machine{object: object, objects: o}
	d := deploymentOf(o, m.object)
	if d == nil {
		return orphan(object, o), nil
	}
	m.zone = zoneOf(o, d)
	m.Machine = m.zone.Machines[slices.IndexFunc(m.zone.Machines, func(m overview.Machine) bool { return m.Name == name })]
	if m.oracle, err = newOracle(o, d); err != nil {
		return Account{}, err
	}
	return m.account()
}

// orphan explains a machine without a MachineDeployment, or with one that could not be read.
func orphan(m *mcm.Machine, o overview.Objects) Account {
	if metav1.GetControllerOfNoCopy(m) != nil && len(o.Missing) > 0 {
		a := Account{Title: "Machine " + m.Name + ": its MachineDeployment could not be read"}
		a.addMissing(o)
		return a
	}
	a := Account{Title: "Machine " + m.Name + ": without a MachineDeployment"}
	a.addReason("It does not belong to a MachineDeployment, so Evenkeel does not manage it.")
	return a
}

// deploymentOf returns the MachineDeployment of a machine, nil if there is none.
func deploymentOf(o overview.Objects, m *mcm.Machine) *v1alpha1.MachineDeployment {
	set := metav1.GetControllerOfNoCopy(m)
	if set == nil {
		return nil
	}
	for _, s := range o.Sets {
		if owner := metav1.GetControllerOfNoCopy(s); s.UID == set.UID && owner != nil {
			for _, d := range o.Deployments {
				if d.UID == owner.UID {
					return d
				}
			}
		}
	}
	return nil
}

// zoneOf returns a MachineDeployment as the overview shows it.
func zoneOf(o overview.Objects, d *v1alpha1.MachineDeployment) overview.Zone {
	for _, p := range overview.New(o).Pools {
		for _, z := range p.Zones {
			if p.Namespace == d.Namespace && z.Name == d.Name {
				return z
			}
		}
	}
	return overview.Zone{Name: d.Name}
}

func (m machine) account() (Account, error) {
	a := Account{Title: "Machine " + m.Name + ": " + string(m.State)}
	a.addFact("MachineDeployment", "%s: %s", m.zone.Name, numbers(m.zone))
	a.addFact("Phase", "%s, %s", orNone(string(m.object.Status.CurrentStatus.Phase)), "created "+formatPast(m.object.CreationTimestamp.Time, m.objects.At))
	a.addFact("Node", "%s", orNone(m.Node))
	a.addFact("Pods", "%s", podsText(m.Pods))
	a.addFact("Priority", "%d: %s", pool.Priority(m.object), priorities(pool.Priority(m.object)))
	if m.Dedicated != "" {
		a.addFact("Dedicated to", "%s", m.Dedicated)
	}
	if m.Images != "" {
		a.addFact("Images", "%s", m.Images)
	}
	m.because(&a)
	a.addMissing(m.objects)
	a.See = []string{"docs/reserve-rule.md: the life of a machine", "docs/reserve.md: what you see"}
	if m.oracle.deployment.DeletionTimestamp != nil {
		a.addNext("Its MachineDeployment is being deleted, and machine-controller-manager deletes the machine with it.")
		return a, nil
	}
	now, err := m.oracle.current()
	if err != nil {
		return a, err
	}
	m.planned(&a, now)
	return a, m.inLine(&a)
}

// because describes what put it into its state.
func (m machine) because(a *Account) {
	marked := m.object.Annotations[v1alpha1.ReserveAnnotation] != ""
	switch m.State {
	case overview.Working, overview.Booting:
		if marked {
			a.addReason("It is marked as a reserve machine, but runs a pod that does not tolerate the reserve taint. So it serves, and loses the mark.")
		} else {
			a.addReason("It is not marked as a reserve machine, so it serves workload: %d machines are desired, and %d work.", m.zone.Replicas, m.zone.Count[overview.Working])
		}
	case overview.ReserveReady, overview.ReserveBooting:
		a.addReason("It has been in reserve since %s: an excess of %d is desired beyond the %d replicas, and it is one of these machines.",
			formatPast(m.Since, m.objects.At), m.zone.Excess, m.zone.Replicas)
		a.addReason("While it is in reserve, a taint keeps pods away from its Node, and cluster-autoscaler does not remove the machine.")
		if m.Dedicated != "" {
			a.addReason("It is dedicated: it leaves the reserve only for waiting pods of %s, not when replicas are raised or another machine fails.", m.Dedicated)
		}
	case overview.Leaving:
		a.addReason("%s", m.leaving())
		a.addReason("Until it is gone, it counts against max, and for nothing else.")
	case overview.Failed:
		a.addReason("It does not work: %s.", m.Why)
		a.addReason("It does not count as serving. A ready reserve machine replaces it at once.")
	}
	if m.State != overview.Failed && m.Why != "" {
		a.addReason("There is a problem: it %s.", m.Why)
	}
}

// leaving describes what caused its deletion.
func (m machine) leaving() string {
	o := m.object
	switch {
	case o.DeletionTimestamp != nil && o.Annotations[machineutils.MachinePriority] == "1":
		return "A client marked it for deletion with priority 1, and it has been leaving since " + formatPast(o.DeletionTimestamp.Time, m.objects.At) + "."
	case o.DeletionTimestamp != nil:
		return "It has been leaving since " + formatPast(o.DeletionTimestamp.Time, m.objects.At) + "."
	case o.Annotations[machineutils.MachinePriority] == "1":
		return "A client marked it for deletion, with priority 1."
	case o.Status.CurrentStatus.Phase == mcm.MachineTerminating:
		return "Its phase is Terminating."
	}
	return "The annotation " + machineutils.TriggerDeletionByMCM + " of its MachineDeployment marks it for deletion; cluster-autoscaler writes this annotation."
}

// planned describes what is about to happen to it.
func (m machine) planned(a *Account, p prediction) {
	for _, move := range p.kept.Rule.Moves {
		switch {
		case move.Name != m.Name:
		case move.Reserve:
			a.addNext("It is about to enter the reserve (%s).", move.Why)
		default:
			a.addNext("It is about to serve (%s): the taint is removed.", move.Why)
		}
	}
	for _, d := range p.Deletions {
		if d.Machine.Name == m.Name {
			a.addNext("It is deleted next (%s).", p.why(d))
		}
	}
	switch m.State {
	case overview.Leaving:
		a.addNext("The machine controller drains its Node, deletes the machine, and then the Node.")
	case overview.Failed:
		a.addNext("machine-controller-manager replaces failed machines of a MachineDeployment one at a time. See its events: kubectl describe machine.")
	case overview.Booting, overview.ReserveBooting:
		patience := m.objects.BootLimit()
		if late := m.object.CreationTimestamp.Add(patience); m.State == overview.ReserveBooting && late.After(m.objects.At) && patience < math.MaxInt64 { // the largest is no limit
			a.addNext("If it is not ready %s, it counts as a failed creation: the reserve continues without it, and the controller tries again later.", formatFuture(late, m.objects.At))
		} else if m.State == overview.Booting {
			a.addNext("When it is ready, it serves.")
		}
	}
}

// inLine describes its position among the machines that are released next, and among those that are
// deleted next.
func (m machine) inLine(a *Account) error {
	if m.State != overview.ReserveReady && m.State != overview.ReserveBooting {
		if m.State == overview.Working {
			a.addNext("It serves until replicas fall, it fails, or it is replaced. It never enters the reserve while it runs a pod.")
		}
		return nil
	}
	if i := slices.Index(m.oracle.releases(), m.Name); i >= 0 && m.Dedicated == "" {
		a.addNext("When replicas are raised, it is the %s to serve: ready machines come first, then those whose Nodes accept pods, then those of the current template, then the oldest.", ordinal(i+1))
	}
	victims, err := m.oracle.victims(m.zone)
	if i := slices.Index(victims, m.Name); i >= 0 {
		a.addNext("When the excess falls, it is the %s to be deleted: machines that are not ready come first, then those whose Nodes are cordoned, then the newest.", ordinal(i+1))
	}
	return err
}

// numbers returns the numbers of a MachineDeployment in one line.
func numbers(z overview.Zone) string {
	text := "R " + strconv.Itoa(z.Replicas) + ", X " + strconv.Itoa(z.Excess) + ", A " + strconv.Itoa(z.Applied)
	if z.Bounds != nil {
		text += ", bounds " + strconv.Itoa(z.Bounds.Min) + ":" + strconv.Itoa(z.Bounds.Max)
	}
	return text
}

// priorities explain the values of the deletion priority.
func priorities(n int) string {
	switch n {
	case 1:
		return "marked for deletion, deleted first"
	case 3:
		return "the default"
	}
	return "set by a client: machines with a lower priority are deleted first"
}

func orNone(text string) string {
	if text == "" {
		return "none yet"
	}
	return text
}

func podsText(n int) string {
	switch n {
	case -1:
		return "cannot be read"
	case 0:
		return "none that a drain would evict: the machine is empty"
	}
	return plural.Of(n, "pod") + " that a drain would evict"
}
