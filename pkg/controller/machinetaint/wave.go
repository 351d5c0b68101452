// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"context"
	"errors"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
)

// wave is all that one sync writes to machines. While machines are being freed, others may be needed already, because pods
// come one after the other and replicas with them: what is raised meanwhile is freed in the same wave, and waits for no
// write that is under way.
type wave struct {
	c *Controller
	// key is that of the MachineDeployment.
	key string
	// written are the machines of the wave by name, as they will be, and frees says that some of them are freed.
	written map[string]*mcm.Machine
	frees   bool
	results chan result
	slots   chan struct{}
	pending int
}

// result is the end of one write; change is that of a Machine, zero where a Node alone was written.
type result struct {
	change MachineChange
	err    error
}

// writeMachines writes all machines, some at the same time, and with them such as are to be freed before that has ended.
func (c *Controller) writeMachines(ctx context.Context, v View, p Plan) error {
	w := &wave{
		c: c, key: v.Deployment.Namespace + "/" + v.Deployment.Name,
		written: map[string]*mcm.Machine{}, results: make(chan result), slots: make(chan struct{}, side),
	}
	raised, done := c.listen(w.key)
	defer done()
	w.begin(ctx, v, p)
	var errs []error
	var moved []MachineChange
	for w.pending > 0 {
		select {
		case r := <-w.results:
			w.pending--
			if errs = append(errs, r.err); r.err == nil {
				moved = append(moved, r.change)
			}
		case <-raised:
			w.rise(ctx)
		}
	}
	c.announceMoves(v.Deployment, moved)
	return errors.Join(errs...)
}

// begin writes what a plan says of machines.
func (w *wave) begin(ctx context.Context, v View, p Plan) {
	nodes := nodesOf(p)
	for _, change := range p.Machines {
		n, both := nodes[change.Name]
		delete(nodes, change.Name)
		w.machine(ctx, v, change, n, both)
	}
	for _, n := range p.Nodes {
		if _, left := nodes[n.Machine.Object.Name]; left {
			w.write(MachineChange{}, func() error { return w.c.writeNode(ctx, n) })
		}
	}
}

// rise looks again while the wave frees machines, and frees what is needed by now.
func (w *wave) rise(ctx context.Context) {
	if !w.frees {
		return
	}
	v, ok := w.c.observe(w.key)
	if !ok {
		return
	}
	for i := range v.Machines {
		if m, ours := w.written[v.Machines[i].Object.Name]; ours {
			v.Machines[i].Object = m
		}
	}
	p := NewPlan(v)
	nodes := nodesOf(p)
	for _, change := range p.Machines {
		if _, ours := w.written[change.Name]; change.Mark == Free && !ours {
			n, both := nodes[change.Name]
			w.machine(ctx, v, change, n, both)
		}
	}
}

// machine writes one, and its Node if that differs.
func (w *wave) machine(ctx context.Context, v View, change MachineChange, n NodeChange, withNode bool) {
	w.written[change.Name] = changed(v.machine(change.Name), change, v)
	w.frees = w.frees || change.Mark == Free
	w.write(change, func() error { return w.c.writeMachine(ctx, v, change, n, withNode) })
}

// write does something beside the rest, at most side at the same time.
func (w *wave) write(change MachineChange, do func() error) {
	w.pending++
	go func() {
		w.slots <- struct{}{}
		err := do()
		<-w.slots
		w.results <- result{change, err}
	}()
}

// nodesOf are the changes of Nodes by the name of their machine.
func nodesOf(p Plan) map[string]NodeChange {
	nodes := map[string]NodeChange{}
	for _, n := range p.Nodes {
		nodes[n.Machine.Object.Name] = n
	}
	return nodes
}

// listen tells of changes of a MachineDeployment until done is called. The loop cannot, since it has the key in work.
func (c *Controller) listen(key string) (changed <-chan struct{}, done func()) {
	news := make(chan struct{}, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listening[key] = news
	return news, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.listening, key)
	}
}

// wake whoever listens; one who has not heard of the last change will see this one with it.
func (c *Controller) wake(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case c.listening[key] <- struct{}{}: // blocks for ever, and is not chosen, where nobody listens
	default:
	}
}
