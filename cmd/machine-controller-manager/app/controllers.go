// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// controller is an entry of --controllers. A controller that cannot run by itself is run by another
// one.
type controller struct {
	name string
	run  func(*process, context.Context) error
}

const mcmName = "mcm"

// controllers contains all controllers in the order in which they are started.
var controllers = []controller{
	{name: mcmName, run: (*process).runMCM},
	{name: taintName}, // runMCM runs it
	{name: nodeGroupsName, run: (*process).runNodeGroups},
	{name: releaseName, run: (*process).runRelease},
	{name: balanceName, run: (*process).runBalance},
	{name: reservesName, run: (*process).runReserves},
	{name: buffersName, run: (*process).runBuffers},
}

// elsewhere are controllers of evenkeel-workloads.
var elsewhere = []string{"balancer", "federatedhpa"}

func knownNames() string {
	names := make([]string, len(controllers))
	for i, c := range controllers {
		names[i] = c.name
	}
	return strings.Join(names, ", ")
}

// pickControllers parses a list as kube-controller-manager does: the first entry with a name, with
// or without a minus, decides about it. All other controllers run if the list has a star.
func pickControllers(list []string) ([]controller, error) {
	for _, item := range list {
		if name := strings.TrimPrefix(item, "-"); item != "*" && !slices.ContainsFunc(controllers, func(c controller) bool { return c.name == name }) {
			if slices.Contains(elsewhere, name) {
				return nil, fmt.Errorf("%s runs in the binary evenkeel-workloads", name)
			}
			return nil, fmt.Errorf("unknown controller %q; known: %s", name, knownNames())
		}
	}
	var picked []controller
	for _, c := range controllers {
		named := slices.IndexFunc(list, func(item string) bool { return strings.TrimPrefix(item, "-") == c.name })
		if named >= 0 && list[named] == c.name || named < 0 && slices.Contains(list, "*") {
			picked = append(picked, c)
		}
	}
	if includes(picked, taintName) && !includes(picked, mcmName) {
		if slices.Contains(list, taintName) {
			return nil, fmt.Errorf("%s works only with %s: enable both or neither", taintName, mcmName)
		}
		picked = slices.DeleteFunc(picked, func(c controller) bool { return c.name == taintName })
	}
	if len(picked) == 0 {
		return nil, errors.New("no controller is enabled; known: " + knownNames())
	}
	return picked, nil
}

func includes(picked []controller, name string) bool {
	return slices.ContainsFunc(picked, func(c controller) bool { return c.name == name })
}

// picked reports whether a controller is to run.
func (p *process) picked(name string) bool { return includes(p.controllers, name) }

// machinesLease is the lease of a process that works beside the stock binary.
const machinesLease = "evenkeel"

// leaseName returns the stock binary's lease, so that the two take turns, unless no controller of
// the stock binary runs here.
func (o *Options) leaseName() string {
	if picked, err := pickControllers(o.Controllers); err == nil && !includes(picked, mcmName) {
		return machinesLease
	}
	return name
}

// unlessEnding returns an error of a controller that is being built, and none once the process is
// ending: informers that have stopped accept no handlers.
func unlessEnding(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
