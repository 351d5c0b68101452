// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/plugin/explain"
	"github.com/evenkeel/evenkeel/internal/plugin/screen"
)

// subject is a kind that can be explained.
type subject struct {
	// names of the kind; help shows the first one.
	names   []string
	account func(overview.Objects, string) (explain.Account, error)
	list    func(overview.Objects) []string
	// everywhere reports whether its objects are read in all namespaces, whatever -n says.
	everywhere bool
}

var subjects = []subject{
	{[]string{"machine", "machines", "mc"}, explain.Machine, func(o overview.Objects) []string { return namesOf(o.Machines) }, false},
	{[]string{"machinedeployment", "machinedeployments", "mcd"}, explain.Deployment, func(o overview.Objects) []string { return namesOf(o.Deployments) }, false},
	{[]string{"balancer", "balancers"}, explain.Balancer, func(o overview.Objects) []string { return namesOf(o.Balancers) }, false},
	{[]string{"fhpa", "federatedhorizontalpodautoscaler", "federatedhorizontalpodautoscalers"}, explain.Federated,
		func(o overview.Objects) []string { return namesOf(o.Federated) }, false},
	{[]string{"reserve", "reserves", "rsv"}, explain.Reserve, func(o overview.Objects) []string { return namesOf(o.Reserves) }, false},
	{[]string{"capacitybuffer", "capacitybuffers", "cb"}, explain.Buffer, func(o overview.Objects) []string { return namesOf(o.Buffers) }, true},
	{[]string{"provisioningrequest", "provisioningrequests", "provreq", "provreqs"}, explain.Request, func(o overview.Objects) []string { return namesOf(o.Requests) }, true},
}

func newExplain(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "explain machine|machinedeployment|balancer|fhpa|reserve|capacitybuffer|provisioningrequest NAME",
		Short: "Explain the state of an object, and what happens next",
		Long: `Explain the state of a machine, a MachineDeployment, a Balancer, a FederatedHorizontalPodAutoscaler, a Reserve,
a CapacityBuffer or a ProvisioningRequest: its numbers, their reasons, and what happens next and when.

The command applies the controllers' own rules to the current objects. It knows the controllers' flags for pools and
--drain-reserve, and assumes the defaults of the others.`,
		Example: `  # why is this machine in reserve, and when does it serve?
  kubectl evenkeel explain machine pool-z1-6586f-lhqn2

  # why is the reserve not complete?
  kubectl evenkeel explain mcd/pool-z1

  # what does this Reserve request, and what counts in its place?
  kubectl evenkeel explain reserve/office-hours`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: o.completeSubjects,
		RunE: func(c *cobra.Command, args []string) error {
			kind, name, err := parseSubject(args)
			if err != nil {
				return err
			}
			return o.explain(c.Context(), kind, name)
		},
	}
}

// parseSubject parses a kind and a name, as two words or with a slash.
func parseSubject(args []string) (subject, string, error) {
	if len(args) == 1 {
		args = strings.SplitN(args[0], "/", 2)
	}
	kind, err := subjectOf(args[0])
	switch {
	case err != nil:
		return subject{}, "", err
	case len(args) != 2 || args[1] == "":
		return subject{}, "", fmt.Errorf("the name of the %s is missing", kind.names[0])
	}
	return kind, args[1], nil
}

func subjectOf(name string) (subject, error) {
	name, _, _ = strings.Cut(strings.ToLower(name), ".")
	i := slices.IndexFunc(subjects, func(s subject) bool { return slices.Contains(s.names, name) })
	if i < 0 {
		return subject{}, fmt.Errorf("unknown kind %q: use machine, machinedeployment, balancer, fhpa, reserve, capacitybuffer or provisioningrequest", name)
	}
	return subjects[i], nil
}

func (o *options) explain(ctx context.Context, kind subject, name string) error {
	objects, err := o.readObjects(ctx)
	if err != nil {
		return err
	}
	account, err := kind.account(objects, name)
	switch {
	case errors.Is(err, explain.ErrAmbiguous) && !kind.everywhere:
		return fmt.Errorf("%w with -n", err)
	case errors.Is(err, explain.ErrNotFound) && !o.everywhere && !kind.everywhere:
		return fmt.Errorf("%w; this is the namespace of the kubeconfig; use -n for another one, or -A for all", err)
	case err != nil:
		return err
	}
	_, err = fmt.Fprintln(o.Out, strings.Join(screen.Account(account, o.screenStyle()), "\n"))
	return err
}
