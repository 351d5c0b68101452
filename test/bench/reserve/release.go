// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
)

// The pool whose machines are released. Its reserve is refilled behind each release.
const serving, spare = 3, 60

// bareNode is the Node that the floor is measured with.
const bareNode = bare + "-0"

// benchRelease prints how long releases take, and the floor, each as often and in turns.
func benchRelease(ctx context.Context, rounds int) error {
	var floor, releases []time.Duration
	err := runInLab(ctx, ours, size{}, func(l *lab) error {
		p := pool{Name: "release", Replicas: serving, Excess: spare}
		if err := l.apply(ctx, "pools.yaml", []pool{p}); err != nil {
			return err
		}
		if err := l.apply(ctx, "bare.yaml", []string{bareNode}); err != nil {
			return err
		}
		for range rounds {
			if err := l.complete(ctx, p); err != nil {
				return fmt.Errorf("wait for the reserve: %w", err)
			}
			took, err := l.byHand(ctx)
			if err != nil {
				return fmt.Errorf("release by hand: %w", err)
			}
			floor = append(floor, took)
			p.Replicas++
			if took, err = l.release(ctx, p); err != nil {
				return fmt.Errorf("release: %w", err)
			}
			releases = append(releases, took)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return compareReleases(floor, releases)
}

// heldNodes are the tainted Nodes of a region, and a watch that shows all that happens to its Nodes
// afterwards.
func (l *lab) heldNodes(ctx context.Context, region string) (map[string]bool, watch.Interface, error) {
	nodes, of := l.kube.CoreV1().Nodes(), metav1.ListOptions{LabelSelector: corev1.LabelTopologyRegion + "=" + region}
	list, err := nodes.List(ctx, of)
	if err != nil {
		return nil, nil, err
	}
	held := map[string]bool{}
	for _, n := range list.Items {
		if tainted(&n) {
			held[n.Name] = true
		}
	}
	of.ResourceVersion = list.ResourceVersion
	w, err := nodes.Watch(ctx, of)
	return held, w, err
}

// freed waits until a Node that was held has no reserve taint, and says when that was seen.
func freed(ctx context.Context, held map[string]bool, nodes watch.Interface) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, err := watchtools.UntilWithoutRetry(ctx, nodes, func(e watch.Event) (bool, error) {
		n, ok := e.Object.(*corev1.Node)
		return ok && e.Type == watch.Modified && held[n.Name] && !tainted(n), nil
	})
	return time.Now(), err
}

// release measures one that our controllers do.
func (l *lab) release(ctx context.Context, p pool) (time.Duration, error) {
	held, nodes, err := l.heldNodes(ctx, "pools")
	if err != nil {
		return 0, err
	}
	defer nodes.Stop()
	if len(held) != p.Excess {
		return 0, fmt.Errorf("%d nodes are held, want %d", len(held), p.Excess)
	}
	if err := l.patch(ctx, p.Name, "replicas", p.Replicas); err != nil {
		return 0, err
	}
	begin := time.Now()
	end, err := freed(ctx, held, nodes)
	return end.Sub(begin), err
}

// byHand measures the floor: a write of a MachineDeployment, seen by a watch, answered by a write
// of a Node, seen by a watch.
func (l *lab) byHand(ctx context.Context) (time.Duration, error) {
	if err := l.bare.write(ctx, bareNode, hold); err != nil {
		return 0, err
	}
	held, nodes, err := l.heldNodes(ctx, bare)
	if err != nil {
		return 0, err
	}
	defer nodes.Stop()
	deployments := l.bare.machines.MachineV1alpha1().MachineDeployments(bare)
	list, err := deployments.List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	changes, err := deployments.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		if err := l.answer(ctx, changes); err != nil {
			cancel(err)
		}
	}()
	defer func() { <-answered }()
	defer cancel(nil)
	wish := fmt.Appendf(nil, `{"metadata":{"annotations":{"wish":"%d"}}}`, time.Now().UnixNano())
	if _, err := deployments.Patch(ctx, bare, types.MergePatchType, wish, metav1.PatchOptions{}); err != nil {
		return 0, err
	}
	begin := time.Now()
	end, err := freed(ctx, held, nodes)
	if err != nil {
		return 0, errors.Join(err, context.Cause(ctx))
	}
	<-answered // the Node may be seen before its writer has its answer
	return end.Sub(begin), nil
}

// answer is the bare client: it frees a Node when it sees a wish.
func (l *lab) answer(ctx context.Context, changes watch.Interface) error {
	_, err := watchtools.UntilWithoutRetry(ctx, changes, func(e watch.Event) (bool, error) { return e.Type == watch.Modified, nil })
	if err != nil {
		return err
	}
	return l.bare.write(ctx, bareNode, free)
}

func compareReleases(floor, releases []time.Duration) error {
	slices.Sort(floor)
	slices.Sort(releases)
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "%d releases, from the answer to a Node without taint\tours, ms\tfloor, ms\tratio\taim\t\n", len(releases))
	for _, row := range []struct {
		name, aim string
		percent   int
	}{{"median", "3 x floor, 100 ms", 50}, {"p90", "", 90}, {"most", "", 100}} {
		a, b := at(releases, row.percent), at(floor, row.percent)
		fmt.Fprintf(table, "%s\t%.1f\t%.1f\t%.2f\t%s\t\n", row.name, a.Seconds()*1000, b.Seconds()*1000, a.Seconds()/b.Seconds(), row.aim)
	}
	return table.Flush()
}

// at is what so many in a hundred of sorted times do not pass.
func at(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}
