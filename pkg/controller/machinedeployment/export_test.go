// SPDX-License-Identifier: Apache-2.0

package machinedeployment

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/loop"
)

// Held returns how much the controller remembers.
func (c *Controller) Held() int {
	return c.memory.len() + c.Remembered() + c.writtenDeployments.Len() + c.writtenSets.Len() + c.writtenMachines.Len() + c.writtenNodes.Len()
}

// MessageOf returns what the status of a MachineSet says of an error in the creation of a machine; empty if
// it says nothing.
func MessageOf(m *mcm.Machine, err error) string {
	f, _ := failureOf(creationError{m, err})
	return f.Message
}

// Sync syncs a key of a preview at rest, which has no client.
func (p *Preview) Sync(ctx context.Context, key string) (time.Duration, error) {
	return p.c.sync(ctx, key)
}

// WokenBy returns the keys that are synced because an object came (was is nil), changed, or went (is is nil).
func (p *Preview) WokenBy(was, is any) []string {
	woken := map[string]bool{}
	p.c.loop = loop.New("test", func(_ context.Context, key string) (time.Duration, error) {
		woken[key] = true
		return 0, nil
	}, loop.Options{})
	switch cmp.Or(is, was).(type) {
	case *machine.MachineDeployment:
		p.c.deploymentChanged(was, is)
	case *mcm.MachineSet:
		p.c.setChanged(was, is)
	case *mcm.Machine:
		p.c.machineChanged(was, is)
	case *mcm.MachineClass:
		p.c.classChanged(was, is)
	case *corev1.Node:
		p.c.nodeChanged(was, is)
	case *corev1.Pod:
		p.c.podChanged(was, is)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	p.c.loop.Run(ctx)
	return slices.Sorted(maps.Keys(woken))
}

// Stale returns how many machines were deleted because they had failed a health check.
func (c *Controller) Stale() float64 {
	var counter dto.Metric
	if err := c.metrics.stale.Write(&counter); err != nil {
		panic(err)
	}
	return counter.GetCounter().GetValue()
}

// Remembered returns of how many MachineDeployments something of their reserve is remembered.
func (c *Controller) Remembered() int {
	c.reserves.mu.Lock()
	defer c.reserves.mu.Unlock()
	return len(c.reserves.memories)
}

// HeldAfterReports returns of how many keys is remembered that their statuses were written, after one more in each
// second.
func HeldAfterReports() int {
	m, now := newMemory(), time.Now()
	for i, key := range []string{"a", "b", "c"} {
		m.noteReported(key, now.Add(time.Duration(i)*numbersDelay))
	}
	return len(m.reported)
}

// PanicEvents returns the events about a key whose sync has panicked.
func (p *Preview) PanicEvents(key string) (events []string) {
	recorder := &record.FakeRecorder{Events: make(chan string, 10), IncludeObject: true}
	p.c.recorder = recorder
	p.c.panicked(key, "oh")
	close(recorder.Events)
	for e := range recorder.Events {
		events = append(events, e)
	}
	return events
}

// HeldAfterRelease returns how much is remembered of two MachineSets that a key has ended to decide about, of
// which one is gone.
func HeldAfterRelease() int {
	m, sets := newMemory(), []types.UID{"gone", "there"}
	m.hold(sets)
	for _, set := range sets {
		m.noteName(set, "machine")
	}
	m.release(sets, sets[:1])
	return m.len()
}
