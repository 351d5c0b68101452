// SPDX-License-Identifier: Apache-2.0

package machinedeployment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/controller"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/klog/v2"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// The longest names of objects that API servers generate, and how much of them is random.
const (
	maxName    = 63
	nameSuffix = 5
)

// create creates machines in batches of 1, 2, 4 and so on. A batch with a failure is the last one: with
// the others, the same would happen. It returns why MachineSets have not got their machines.
func (a *application) create(ctx context.Context, creations []plan.Creation) (map[types.UID]plan.Failure, error) {
	failures := map[types.UID]plan.Failure{}
	var errs []error
	for _, c := range creations {
		if err := errors.Join(a.confirm(ctx, c.Set), a.confirmNames(ctx, c)); err != nil {
			errs = append(errs, err)
			continue
		}
		serving := atomic.Int32{}
		serving.Store(int32(c.Count - c.Reserve))
		create := func() error {
			var mark *machine.Reserve
			if serving.Add(-1) < 0 {
				mark = &c.Mark
			}
			return a.createOne(ctx, c.Set, mark)
		}
		if err := slowly(c.Count, create); err != nil {
			errs = append(errs, err)
			if f, is := failureOf(err); is {
				failures[c.Set.UID] = f
			}
		}
	}
	return failures, errors.Join(errs...)
}

// confirmNames returns a conflict if a machine exists whose creation was not answered. It reads them if fewer are to
// be created than names may be taken: whichever of these names is used, one with another name may be there as well.
func (a *application) confirmNames(ctx context.Context, c plan.Creation) error {
	if a.memory.countUnread(c.Set.UID) <= c.Count {
		return nil
	}
	found, err := a.readNames(ctx, c.Set)
	if found {
		err = errors.Join(err, conflictError("machinesets", c.Set.Name, "an earlier request has created a machine"))
	}
	return err
}

// slowly does something n times, in batches that grow while nothing fails.
func slowly(n int, do func() error) error {
	for size := 1; n > 0; size *= 2 {
		batch := make([]struct{}, min(size, n))
		if err := inParallel(batch, func(struct{}) error { return do() }); err != nil {
			return err
		}
		n -= len(batch)
	}
	return nil
}

// creationError is the failure of a request that creates a machine.
type creationError struct {
	machine *mcm.Machine
	err     error
}

func (e creationError) Error() string {
	return fmt.Sprintf("create machine %s: %v", e.machine.Name, e.err)
}
func (e creationError) Unwrap() error { return e.err }

// failureOf returns what the status of a MachineSet says of an error: if the API server refuses the
// machine, or a webhook fails, and not if an answer was lost. It does not contain the name of the machine,
// which is another one each time.
func failureOf(err error) (plan.Failure, bool) {
	var e creationError
	if !errors.As(err, &e) || !isRefused(e.err) {
		return plan.Failure{}, false
	}
	return plan.Failure{Reason: plan.FailedCreate, Message: strings.ReplaceAll(e.err.Error(), e.machine.Name, e.machine.GenerateName+"*")}, true
}

// isRefused reports whether the API server has refused a request, or a webhook has failed. A lost answer
// is no refusal.
func isRefused(err error) bool {
	return written.Outcome(err) == written.Refused || apierrors.IsInternalError(err)
}

// createOne creates a machine, in reserve if there is a mark. If that fails, the next one gets the same name: an earlier attempt of the
// same request may have taken effect, and there is only one machine in the end.
func (a *application) createOne(ctx context.Context, set *mcm.MachineSet, mark *machine.Reserve) error {
	m, err := newMachine(set, a.memory.takeName(set.UID))
	if err != nil {
		return err
	}
	if mark != nil {
		m = pool.Mark(m, *mark)
	}
	answer, err := a.client.Machines(set.Namespace).Create(ctx, m, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return a.recognize(ctx, set, m)
	}
	if err != nil {
		a.memory.noteName(set.UID, m.Name)
		a.recorder.Eventf(referenceTo(setKind, set), corev1.EventTypeWarning, "FailedCreate", "Creating a machine failed: %v", err)
		return creationError{m, err}
	}
	a.noteCreated(ctx, set, answer)
	return nil
}

// recognize looks whether a machine of this name was created for the MachineSet by an earlier request.
func (a *application) recognize(ctx context.Context, set *mcm.MachineSet, m *mcm.Machine) error {
	live, err := a.client.Machines(set.Namespace).Get(ctx, m.Name, metav1.GetOptions{})
	switch {
	case err != nil:
		a.memory.noteName(set.UID, m.Name)
		return fmt.Errorf("read machine %s: %w", m.Name, err)
	case !metav1.IsControlledBy(live, set):
		return conflictError("machines", m.Name, "another one has this name")
	}
	a.noteCreated(ctx, set, live)
	return nil
}

func (c *Controller) noteCreated(ctx context.Context, set *mcm.MachineSet, m *mcm.Machine) {
	c.writtenMachines.Record(m)
	klog.FromContext(ctx).V(2).Info("Created machine", "machineSet", set.Name, "machine", m.Name)
	c.recorder.Eventf(referenceTo(setKind, set), corev1.EventTypeNormal, "SuccessfulCreate", "Created machine %s", m.Name)
}

// newMachine returns a machine of a MachineSet. Its name is chosen here, and not by the API server, so
// that the request can be repeated.
func newMachine(set *mcm.MachineSet, name string) (*mcm.Machine, error) {
	m, err := controller.GetMachineFromTemplate(&set.Spec.Template, set, metav1.NewControllerRef(set, mcm.SchemeGroupVersion.WithKind(string(setKind))))
	if err != nil {
		return nil, fmt.Errorf("build machine of %s: %w", set.Name, err)
	}
	m.Namespace, m.Name = set.Namespace, name
	if name == "" {
		m.Name = m.GenerateName[:min(len(m.GenerateName), maxName-nameSuffix)] + rand.String(nameSuffix)
	}
	return m, nil
}
