// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/test/bench/internal/sleep"
)

// breath is the time between two measurements: for the status and the events that follow a change,
// which the next one must not wait for.
const breath = 50 * time.Millisecond

// compare changes the replicas of one Balancer after the other, so that each of its targets gets
// one more or one less, and in between has the bare client do the same writes. It returns how long
// each took, until a watch showed it.
func compare(ctx context.Context, f *fleet, w *watcher, changes int) (ours, floor []time.Duration, err error) {
	for i := range changes {
		each := int32(f.each() + 1 - i/f.balancers%2)
		took, err := changeBalancer(ctx, f, w, balancerName(i%f.balancers), each)
		if err != nil {
			return nil, nil, err
		}
		ours = append(ours, took)
		if err := sleep.WithContext(ctx, breath); err != nil {
			return nil, nil, err
		}
		if took, err = changeByHand(ctx, f, w, int32(f.each()+1-i%2)); err != nil {
			return nil, nil, err
		}
		floor = append(floor, took)
		if err := sleep.WithContext(ctx, breath); err != nil {
			return nil, nil, err
		}
	}
	return ours, floor, nil
}

func changeBalancer(ctx context.Context, f *fleet, w *watcher, name string, each int32) (time.Duration, error) {
	begin := time.Now()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, each*int32(f.targets))
	if _, err := f.ours.BalancerV1alpha1().Balancers(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return 0, err
	}
	end, err := w.asked(ctx, f.targetsOf(name), each)
	return end.Sub(begin), err
}

// changeByHand is the floor: the same number of writes, of the same kinds, by a client that knows
// what to write.
func changeByHand(ctx context.Context, f *fleet, w *watcher, each int32) (time.Duration, error) {
	begin := time.Now()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, each)
	if _, err := f.kube.AppsV1().Deployments(namespace).Patch(ctx, bare, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return 0, err
	}
	for _, name := range f.targetsOf(bare) {
		scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, ResourceVersion: w.deployment(name).ResourceVersion}}
		scale.Spec.Replicas = each
		if _, err := f.kube.AppsV1().Deployments(namespace).UpdateScale(ctx, name, scale, metav1.UpdateOptions{}); err != nil {
			return 0, err
		}
	}
	end, err := w.asked(ctx, f.targetsOf(bare), each)
	return end.Sub(begin), err
}

// atRest counts the writes in a time without changes: what the controller
// says it wrote, and what is seen to change.
func atRest(ctx context.Context, w *watcher, c *controller, d time.Duration) (int, error) {
	before, err := c.writes(ctx)
	if err != nil {
		return 0, err
	}
	seen := w.changes()
	if err := sleep.WithContext(ctx, d); err != nil {
		return 0, err
	}
	after, err := c.writes(ctx)
	return max(after-before, w.changes()-seen), err
}

func report(ours, floor []time.Duration) {
	slices.Sort(ours)
	slices.Sort(floor)
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "%d changes, from the change to all scales written\tBalancer\tbare client\tratio\t\n", len(ours))
	for _, row := range []struct {
		name string
		part float64
	}{{"median", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"most", 1}} {
		a, b := quantile(ours, row.part), quantile(floor, row.part)
		fmt.Fprintf(table, "%s, ms\t%.1f\t%.1f\t%.2f\t\n", row.name, ms(a), ms(b), a.Seconds()/b.Seconds())
	}
	_ = table.Flush()
}

func quantile(sorted []time.Duration, part float64) time.Duration {
	return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)]
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }
