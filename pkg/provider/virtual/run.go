// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/handlers"
)

// How long to wait after an operation has failed.
const retryPeriod = time.Second

// Run boots machines and applies faults until ctx ends. It returns after all its goroutines have
// ended.
func (d *Driver) Run(ctx context.Context) error {
	if !d.fleet.isLoaded() {
		return errors.New("run virtual machines: they are not loaded")
	}
	ctx, cancel := context.WithCancel(ctx)
	watches := d.watches()
	defer watches.waitStopped()
	defer cancel()
	nodes, err := watches.startInformers(ctx, d)
	if err != nil || ctx.Err() != nil {
		return err
	}
	for ctx.Err() == nil {
		plan := NewPlan(d.buildView(nodes))
		err := d.applyPlan(ctx, plan)
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Info("Cannot update all virtual machines yet; trying again", "err", err, "after", retryPeriod)
		}
		d.waitForChange(ctx, plan.Again, err != nil)
	}
	return nil
}

// waitForChange waits until the plan may have changed.
func (d *Driver) waitForChange(ctx context.Context, again time.Time, failed bool) {
	var alarm <-chan time.Time
	now := d.Clock.Now()
	if failed && (again.IsZero() || again.After(now.Add(retryPeriod))) {
		again = now.Add(retryPeriod)
	}
	if !again.IsZero() {
		timer := d.Clock.NewTimer(again.Sub(now))
		defer timer.Stop()
		alarm = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-d.wake:
	case <-alarm:
	}
}

// buildView also records which machines registered before this process started.
func (d *Driver) buildView(nodes corelisters.NodeLister) View {
	view := View{Now: d.Clock.Now(), Faults: *d.faults.Load(), VMs: d.fleet.allVMs(), Nodeless: nodes == nil}
	if nodes == nil {
		return view
	}
	view.Nodes = map[string]*corev1.Node{}
	list, _ := nodes.List(labels.Everything()) // from memory, so it cannot fail
	for _, node := range list {
		view.Nodes[node.Name] = node
	}
	for i, v := range view.VMs {
		if node := view.Nodes[v.Name]; node != nil && v.ownsNode(node) && !v.Registered {
			view.VMs[i].Registered = true
			d.fleet.registered(v)
		}
	}
	return view
}

// watches contains the informers of one Run.
type watches struct {
	faults, nodes informers.SharedInformerFactory
}

func (d *Driver) watches() watches {
	only := func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", FaultsConfigMap).String()
	}
	w := watches{faults: informers.NewSharedInformerFactoryWithOptions(d.Control, 0,
		informers.WithNamespace(d.Namespace), informers.WithTweakListOptions(only))}
	if d.Target != nil {
		w.nodes = informers.NewSharedInformerFactory(d.Target, 0)
	}
	return w
}

// startInformers returns when the caches are complete or ctx has ended.
func (w watches) startInformers(ctx context.Context, d *Driver) (corelisters.NodeLister, error) {
	faults := w.faults.Core().V1().ConfigMaps().Informer()
	full, err := d.follow(ctx, faults)
	if err != nil {
		return nil, err
	}
	checkers := []cache.DoneChecker{full}
	w.faults.StartWithContext(ctx)
	if w.nodes == nil {
		cache.WaitFor(ctx, "", checkers...)
		return nil, nil
	}
	nodes := w.nodes.Core().V1().Nodes()
	if _, err := nodes.Informer().AddEventHandler(handlers.OnEvent(d.wakeLoop)); err != nil {
		return nil, err
	}
	w.nodes.StartWithContext(ctx)
	cache.WaitFor(ctx, "", append(checkers, nodes.Informer().HasSyncedChecker())...)
	return nodes.Lister(), nil
}

// waitStopped waits for the goroutines of the informers, after their context has ended.
func (w watches) waitStopped() {
	w.faults.Shutdown()
	if w.nodes != nil {
		w.nodes.Shutdown()
	}
}
