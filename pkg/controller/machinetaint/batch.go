// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/keep"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// batch contains all writes of one sync to machines. While machines are being released, more may be
// needed, because pods and replicas arrive one after the other: the batch also releases machines
// for replicas that are raised meanwhile, and does not wait for writes in progress.
type batch struct {
	c *Controller
	// key is the key of the MachineDeployment.
	key string
	// written are the machines of the batch by name, as they will be. frees reports whether some of
	// them are released.
	written map[string]*mcm.Machine
	frees   bool
	results chan result
	slots   chan struct{}
	pending int
	// retirements start after all other writes of a plan that also releases machines, and only if
	// these succeed, no machine is gone, and replicas stay: workload gets its machine before it
	// gives one up.
	retirements []func()
}

// result is the end of one write. change is that of a Machine, and zero if only a Node was written.
type result struct {
	change keep.MachineChange
	err    error
}

// writeMachines writes all machines, some of them concurrently, including those that must be
// released before that has ended.
func (c *Controller) writeMachines(ctx context.Context, v keep.View, p keep.Plan) error {
	w := &batch{
		c: c, key: keyOf(v.Deployment),
		written: map[string]*mcm.Machine{}, results: make(chan result), slots: make(chan struct{}, maxParallel),
	}
	raised, done := c.states.listen(w.key)
	defer done()
	w.writeAll(ctx, v, p)
	var errs []error
	var moved []keep.MachineChange
	for w.pending > 0 {
		select {
		case r := <-w.results:
			w.pending--
			if r.err != nil {
				errs, w.retirements = append(errs, written.IgnoreNotFound(r.err)), nil
			} else {
				moved = append(moved, r.change)
			}
		case <-raised:
			w.raise(ctx)
		}
		if w.pending == 0 {
			w.retire(ctx, raised)
		}
	}
	c.announceMoves(v.Deployment, moved)
	return repeatPanic(ctx, errors.Join(errs...))
}

// writeAll starts the writes of a plan to machines.
func (w *batch) writeAll(ctx context.Context, v keep.View, p keep.Plan) {
	nodes := nodesOf(p)
	last := releasesMachines(p)
	for _, change := range p.Machines {
		n, both := nodes[change.Name]
		delete(nodes, change.Name)
		start := func() { w.startMachine(ctx, v, change, n, both) }
		if change.Mark == keep.Hold && last {
			w.retirements = append(w.retirements, start)
			continue
		}
		start()
	}
	for _, n := range p.Nodes {
		if _, left := nodes[n.Machine.Object.Name]; left {
			w.start(keep.MachineChange{}, func() error { return w.c.writeNode(ctx, w.key, n) })
		}
	}
}

// raise gives up the retirements, and releases the machines that are needed after a change of the
// MachineDeployment.
func (w *batch) raise(ctx context.Context) {
	w.retirements = nil
	w.releaseMore(ctx)
}

// releaseMore observes again while the batch releases machines, and releases the machines that are
// needed by now.
func (w *batch) releaseMore(ctx context.Context) {
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
	p := keep.New(v)
	nodes := nodesOf(p)
	for _, change := range p.Machines {
		if _, ours := w.written[change.Name]; change.Mark == keep.Free && !ours {
			n, both := nodes[change.Name]
			w.startMachine(ctx, v, change, n, both)
		}
	}
}

// startMachine starts the write of one machine, and of its Node if that changes.
func (w *batch) startMachine(ctx context.Context, v keep.View, change keep.MachineChange, n keep.NodeChange, withNode bool) {
	w.written[change.Name] = v.Changed(change)
	w.frees = w.frees || change.Mark == keep.Free
	w.start(change, func() error { return w.c.writeMachine(ctx, v, change, n, withNode) })
}

// retire starts the retirements that wait for other writes, unless replicas were raised as the last
// of these ended: if both are to be received, a select receives either first.
func (w *batch) retire(ctx context.Context, raised <-chan struct{}) {
	select {
	case <-raised:
		w.raise(ctx)
	default:
	}
	for _, start := range w.retirements {
		start()
	}
	w.retirements = nil
}

// start runs a write concurrently with others, at most maxParallel at the same time.
func (w *batch) start(change keep.MachineChange, do func() error) {
	w.pending++
	go func() {
		w.slots <- struct{}{}
		err := catchPanic(do)
		<-w.slots
		w.results <- result{change, err}
	}()
}

// nodesOf returns the changes of Nodes by the name of their machine.
func nodesOf(p keep.Plan) map[string]keep.NodeChange {
	nodes := map[string]keep.NodeChange{}
	for _, n := range p.Nodes {
		nodes[n.Machine.Object.Name] = n
	}
	return nodes
}

// panicError is a panic of a write, on whose own goroutine it would end the process.
type panicError struct {
	value any
	stack string
}

// Error implements error.
func (p panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// catchPanic returns a panic as an error.
func catchPanic(do func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = panicError{value, string(debug.Stack())}
		}
	}()
	return do()
}

// repeatPanic panics if a write did, so that the panic affects the key of this sync and no other.
func repeatPanic(ctx context.Context, err error) error {
	var p panicError
	if errors.As(err, &p) {
		klog.FromContext(ctx).Error(p, "A write panicked", "stack", p.stack)
		panic(p.value)
	}
	return err
}
