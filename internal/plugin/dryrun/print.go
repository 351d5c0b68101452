// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"fmt"
	"io"
	"strings"

	"github.com/evenkeel/evenkeel/internal/plugin/screen"
)

// Print writes a forecast: the plans, and then the end of each object that is not at rest. Objects
// at rest are counted, unless all is set.
func (f Forecast) Print(out io.Writer, all bool) error {
	p := &printer{out: out}
	rest := 0
	for _, plan := range f.Plans {
		if plan.State == AtRest && !plan.Changed && !all {
			rest++
			continue
		}
		p.printPlan(plan)
	}
	if rest > 0 {
		p.printf("%s at rest.", counted(rest, "object is", "objects are"))
	}
	if len(f.Plans) == 0 {
		p.printf("There is nothing to predict.")
	}
	p.printEnd(f.End)
	for _, note := range f.Notes {
		p.printf("note: %s", note)
	}
	return p.err
}

type printer struct {
	out io.Writer
	err error
}

// printf prints a line. Names, annotations and messages in it come from other sources.
func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.out, screen.Sanitize(fmt.Sprintf(format, args...)))
	}
}

var stateText = map[State]string{AtRest: "at rest", Moving: "moving", Blocked: "blocked"}

func (p *printer) printPlan(plan Plan) {
	text := fmt.Sprintf("%s %s/%s: %s", plan.Kind, plan.Namespace, plan.Name, stateText[plan.State])
	if plan.Why != "" {
		text += " (" + plan.Why + ")"
	}
	p.printf("%s", text)
	for _, fact := range plan.Facts {
		p.printf("  %s", fact)
	}
	for _, s := range plan.Steps {
		p.printf("  %s", s)
	}
}

func (p *printer) printEnd(e End) {
	title := "In the end, if nothing else changes:"
	if !e.Rest {
		title = "Changes continue beyond the period of the prediction. At its end:"
	}
	before := false
	head := func() {
		if !before {
			p.printf("")
			p.printf("%s", title)
		}
		before = true
	}
	for _, b := range e.Buffers {
		if !b.Same {
			head()
			p.printf("CapacityBuffer %s/%s: %s", b.Namespace, b.Name, b.Message)
		}
	}
	for _, r := range e.Reserves {
		if !r.Same {
			head()
			p.printReserve(r)
		}
	}
	for _, pool := range e.Pools {
		if !pool.Same {
			head()
			p.printPool(pool)
		}
	}
	for _, b := range e.Balancers {
		if changes := b.Changes(); len(changes) > 0 {
			head()
			p.printf("Balancer %s/%s: %s", b.Namespace, b.Name, strings.Join(changes, ", "))
		}
	}
	for _, f := range e.Federated {
		if changes := f.Changes(); len(changes) > 0 {
			head()
			p.printf("FederatedHorizontalPodAutoscaler %s/%s: %s", f.Namespace, f.Name, strings.Join(changes, ", "))
		}
	}
	if !before {
		p.printf("Nothing changes.")
	}
}

func (p *printer) printReserve(e ReserveEnd) {
	p.printf("Reserve %s/%s: %s", e.Namespace, e.Name, e.Message)
	if changes := e.Changes(); len(changes) > 0 {
		p.printf("  %-12s%s", "requested:", strings.Join(changes, ", "))
	}
}

func (p *printer) printPool(e PoolEnd) {
	serve, reserve := len(e.Serve)+e.New.Serve, len(e.Reserve)+e.New.Reserve
	p.printf("MachineDeployment %s/%s: %d of %d machines serve, %d in reserve", e.Namespace, e.Name, serve, e.Replicas-e.Counted, reserve)
	for _, list := range []struct {
		title string
		names []string
	}{{"serve:", e.Serve}, {"in reserve:", e.Reserve}, {"leave:", e.Leave}} {
		if len(list.names) > 0 {
			p.printf("  %-12s%s", list.title, strings.Join(list.names, " "))
		}
	}
	var made []string
	if e.New.Serve > 0 {
		made = append(made, fmt.Sprintf("%d to serve", e.New.Serve))
	}
	if e.New.Reserve > 0 {
		made = append(made, fmt.Sprintf("%d in reserve", e.New.Reserve))
	}
	if len(made) > 0 {
		p.printf("  %-12s%s", "new:", strings.Join(made, ", "))
	}
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
