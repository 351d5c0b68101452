// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"context"
	"errors"
	"fmt"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/bench/internal/parallel"
)

const (
	pools = 20
	// each pool gets so many machines more, all of them grown.
	each  = 5
	grown = pools * each
)

// growth is how long it took until all Machines, and all Nodes, were seen as they should be.
type growth struct{ machines, nodes time.Duration }

// place is where machines come to be: a namespace, and a region of Nodes.
type place struct{ namespace, region string }

var fleet, nowhere = place{namespace, "pools"}, place{bare, bare}

// watched has do ask for machines, and waits until it sees as many Machines and Nodes that are so.
func (l *lab) watched(ctx context.Context, in place, so func(watch.Event) bool, do func(context.Context) error) (g growth, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	machines, nodes, err := l.views(ctx, in)
	if err != nil {
		return g, err
	}
	begin := time.Now()
	err = parallel.Each(3, 3, func(i int) (err error) {
		switch i {
		case 0:
			g.machines, err = sighted(ctx, begin, machines, so)
		case 1:
			g.nodes, err = sighted(ctx, begin, nodes, so)
		default:
			if err = do(ctx); err != nil {
				cancel()
			}
		}
		return err
	})
	return g, err
}

// view is what happens to objects of one kind after a version.
type view struct {
	version string
	open    func(ctx context.Context, version string) (watch.Interface, error)
}

// views show what happens to Machines and Nodes from now on.
func (l *lab) views(ctx context.Context, in place) (machines, nodes view, err error) {
	m, n := l.machines.MachineV1alpha1().Machines(in.namespace), l.kube.CoreV1().Nodes()
	machineList, err := m.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return machines, nodes, err
	}
	nodeList, err := n.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return machines, nodes, err
	}
	machines = view{machineList.ResourceVersion, func(ctx context.Context, version string) (watch.Interface, error) {
		return m.Watch(ctx, metav1.ListOptions{ResourceVersion: version})
	}}
	nodes = view{nodeList.ResourceVersion, func(ctx context.Context, version string) (watch.Interface, error) {
		return n.Watch(ctx, metav1.ListOptions{ResourceVersion: version, LabelSelector: corev1.LabelTopologyRegion + "=" + in.region})
	}}
	return machines, nodes, nil
}

// until looks until it is done. An API server that is busy drops watches: it goes on at once where
// one ended.
func (v view) until(ctx context.Context, done func(watch.Event, metav1.Object) bool) error {
	for {
		w, err := v.open(ctx, v.version)
		if err != nil {
			return err
		}
		_, err = watchtools.UntilWithoutRetry(ctx, w, func(e watch.Event) (bool, error) {
			o, ok := e.Object.(metav1.Object)
			if !ok {
				return false, apierrors.FromObject(e.Object)
			}
			v.version = o.GetResourceVersion()
			return done(e, o), nil
		})
		if !errors.Is(err, watchtools.ErrWatchClosed) {
			return err
		}
	}
}

// sighted waits until all that is grown has been seen to be so, and says how long that took.
func sighted(ctx context.Context, begin time.Time, v view, so func(watch.Event) bool) (time.Duration, error) {
	seen := map[string]bool{}
	err := v.until(ctx, func(e watch.Event, o metav1.Object) bool {
		if so(e) {
			seen[o.GetName()] = true
		}
		return len(seen) == grown
	})
	if err != nil {
		return 0, fmt.Errorf("%d of %d seen: %w", len(seen), grown, err)
	}
	return time.Since(begin), nil
}

func isMarked(e watch.Event) bool { return marked(e.Object) }
func isNew(e watch.Event) bool    { return e.Type == watch.Added }

// raise asks for more of something in all pools at once.
func (l *lab) raise(ctx context.Context, fleet []pool, field string, value func(pool) int) error {
	return parallel.Each(len(fleet), len(fleet), func(i int) error { return l.patch(ctx, fleet[i].Name, field, value(fleet[i])) })
}

// growBare is the floor: as many Machines created and Nodes marked, by a client with the same
// limits that knows what to write.
func (l *lab) growBare(ctx context.Context) (growth, error) {
	names := bareNodes()
	return l.watched(ctx, nowhere, isMarked, func(ctx context.Context) error {
		if err := parallel.Each(grown, grown, func(i int) error {
			_, err := l.bare.machines.MachineV1alpha1().Machines(bare).Create(ctx, newMachine(names[i]), metav1.CreateOptions{})
			return err
		}); err != nil {
			return err
		}
		return parallel.Each(grown, grown, func(i int) error { return l.bare.write(ctx, names[i], hold) })
	})
}

func bareNodes() []string {
	names := make([]string, grown)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", bare, i)
	}
	return names
}

// newMachine is one as it is born in reserve.
func newMachine(name string) *mcm.Machine {
	m := &mcm.Machine{}
	m.Name, m.Labels = name, map[string]string{"name": bare, "node": name}
	m.Annotations = map[string]string{machine.ReserveAnnotation: bare}
	m.Spec.Class = mcm.ClassSpec{Kind: "MachineClass", Name: bare}
	m.Spec.NodeTemplateSpec.Annotations = map[string]string{machine.ReserveAnnotation: bare, machine.ScaleDownDisabledAnnotation: "true"}
	m.Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{{Key: machine.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}}
	return m
}
