// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"context"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/test/bench/internal/parallel"
	"github.com/evenkeel/evenkeel/test/bench/internal/sleep"
	"github.com/evenkeel/evenkeel/test/fixture"
)

const (
	// outage is how long the Nodes of every third pool are cut off: not as long as until their
	// machines are replaced.
	outage = 2 * time.Minute
	// quiet is how long the restarted fleet is watched.
	quiet = time.Minute
)

// life is what a fleet goes through: some MachineDeployments share its machines, and of ten machines, one is in
// reserve.
type life struct {
	lab   *lab
	size  size
	pools int
	meter *meter
	// waits are how long each pod of the crowd had no Node.
	waits []time.Duration
}

// crowdSize is how many pods come at once. Each needs a machine for itself.
func (s size) crowdSize() int { return s.machines / 50 }

// benchLife prints what events cost in the life of a fleet, beside one of a tenth that rests a tenth of the time.
func benchLife(ctx context.Context, n size, pools int, rest time.Duration) error {
	if pools < 1 || n.machines%(100*pools) != 0 || n.machines == 0 {
		return fmt.Errorf("-n=%d: write a multiple of %d, a hundred for each MachineDeployment", n.machines, 100*pools)
	}
	small, err := runLife(ctx, size{n.machines / 10, n.pods / 10}, pools, rest/10)
	if err != nil {
		return fmt.Errorf("%d machines: %w", n.machines/10, err)
	}
	large, err := runLife(ctx, n, pools, rest)
	if err != nil {
		return fmt.Errorf("%d machines: %w", n.machines, err)
	}
	return compareLives(small, large)
}

func runLife(ctx context.Context, n size, pools int, rest time.Duration) (l *life, err error) {
	err = runInLab(ctx, ours, n, func(inner *lab) (err error) {
		l = &life{lab: inner, size: n, pools: pools}
		if l.meter, err = inner.newMeter(); err != nil {
			return err
		}
		defer l.meter.close()
		for _, p := range l.phases(rest) {
			if err := l.meter.measure(ctx, p.name, p.do); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
		return nil
	})
	return l, err
}

// phase is one part of a life.
type phase struct {
	name string
	do   func(context.Context) error
}

func (l *life) phases(rest time.Duration) []phase {
	return []phase{
		{"all machines come up", l.createFleet},
		{fmt.Sprintf("%d pods", l.size.pods), func(ctx context.Context) error { return l.lab.occupy(ctx, l.size.pods) }},
		{fmt.Sprintf("rest for %v", rest), func(ctx context.Context) error { return sleep.WithContext(ctx, rest) }},
		{fmt.Sprintf("%d pods that wait", l.size.crowdSize()), l.createCrowd},
		{"rolling update of a pool", l.updatePool},
		{fmt.Sprintf("outage of a third for %v", outage), l.cutOff},
		{"everything restarted", l.restart},
	}
}

func (l *life) createFleet(ctx context.Context) error {
	all := l.size.machines / l.pools
	var pools []pool
	for i := range l.pools {
		pools = append(pools, pool{Name: poolName(i), Replicas: all - all/10, Excess: all / 10, Max: 2 * all, Surge: "10%"})
	}
	if err := l.lab.apply(ctx, "pools.yaml", pools); err != nil {
		return err
	}
	return l.settled(ctx)
}

func poolName(i int) string { return fmt.Sprintf("pool-%d", i) }

// settled waits until all MachineDeployments have what is asked for, up to date.
func (l *life) settled(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, time.Second, limit, true, func(ctx context.Context) (bool, error) {
		list, err := l.lab.machines.MachineV1alpha1().MachineDeployments(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, nil // the API server may just be starting
		}
		for _, d := range list.Items {
			p := pool{Replicas: int(d.Spec.Replicas), Excess: int(ptr.Deref(d.Spec.ExcessReplicas, 0))}
			if !p.isComplete(&d) || d.Status.UpdatedReplicas != d.Status.Replicas {
				return false, nil
			}
		}
		return true, nil
	})
}

// createCrowd has pods wait that each need a machine of the reserve, which is filled up behind them.
func (l *life) createCrowd(ctx context.Context) error {
	pods := l.lab.kube.CoreV1().Pods(namespace)
	list, err := pods.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	crowd := l.size.crowdSize()
	begun := make([]time.Time, crowd)
	bound := map[string]time.Time{}
	err = parallel.Each(2, 2, func(i int) error {
		if i == 0 {
			return parallel.Each(crowd, writers, func(i int) error {
				_, err := pods.Create(ctx, fixture.Pod(fmt.Sprintf("crowd-%d", i), needsAll), metav1.CreateOptions{})
				begun[i] = time.Now()
				return err
			})
		}
		v := view{list.ResourceVersion, func(ctx context.Context, version string) (watch.Interface, error) {
			return pods.Watch(ctx, metav1.ListOptions{ResourceVersion: version, LabelSelector: "crowd"})
		}}
		return v.until(ctx, func(e watch.Event, o metav1.Object) bool {
			if p := e.Object.(*corev1.Pod); p.Spec.NodeName != "" && bound[p.Name].IsZero() {
				bound[p.Name] = time.Now()
			}
			return len(bound) == crowd
		})
	})
	if err != nil {
		return fmt.Errorf("%d of %d pods have a Node: %w", len(bound), crowd, err)
	}
	for i, begin := range begun {
		l.waits = append(l.waits, bound[fmt.Sprintf("crowd-%d", i)].Sub(begin))
	}
	slices.Sort(l.waits)
	return l.settled(ctx)
}

func needsAll(p *corev1.Pod) {
	p.Namespace, p.Labels = namespace, map[string]string{"crowd": "true"}
	p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("3500m")
}

func (l *life) updatePool(ctx context.Context) error {
	if err := l.lab.patchSpec(ctx, poolName(0), `{"template":{"metadata":{"labels":{"version":"2"}}}}`); err != nil {
		return err
	}
	return l.settled(ctx)
}

// cutOff has Nodes of every third pool not answer for some time.
func (l *life) cutOff(ctx context.Context) error {
	zones := ""
	for i := 0; i < l.pools; i += 3 {
		zones += fmt.Sprintf("  %s: {ready: Unknown}\n", poolName(i))
	}
	maps := l.lab.kube.CoreV1().ConfigMaps(namespace)
	faults := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "virtual-provider"}, Data: map[string]string{"faults.yaml": "zones:\n" + zones}}
	if _, err := maps.Create(ctx, faults, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := sleep.WithContext(ctx, outage); err != nil {
		return err
	}
	if err := maps.Delete(ctx, faults.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return l.settled(ctx)
}

// restart restarts the control plane and the controllers, each as soon as the one before is ready.
func (l *life) restart(ctx context.Context) error {
	for _, p := range l.lab.cluster.Processes() {
		if err := p.Restart(); err != nil {
			return err
		}
		if err := p.WaitReady(ctx); err != nil {
			return err
		}
	}
	if err := l.settled(ctx); err != nil {
		return err
	}
	return sleep.WithContext(ctx, quiet)
}

func compareLives(small, large *life) error {
	fmt.Printf("%d machines in %d MachineDeployments, a tenth of them in reserve, and %d pods; beside a tenth of all that\n", large.size.machines, large.pools, large.size.pods)
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tmachines\ttime, s\tevents\tevents/s\twrites\tCPU, s\tCPU/event, ms\tratio\tNode to write p50, ms\tp99\tpeak memory, MiB\t")
	for i, of := range large.meter.spent {
		peer := small.meter.spent[i]
		printRow(table, peer.name, small.size.machines, peer, "")
		printRow(table, of.name, large.size.machines, of, costRatio(of, peer))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, l := range []*life{small, large} {
		fmt.Printf("%d machines: %d pods had a Node after %s ms (p50), %s (p99)\n", l.size.machines, l.size.crowdSize(), milliseconds(l.waits, 50), milliseconds(l.waits, 99))
	}
	return nil
}

func printRow(table *tabwriter.Writer, name string, machines int, s spending, ratio string) {
	fmt.Fprintf(table, "%s\t%d\t%.1f\t%d\t%.0f\t%d\t%.2f\t%s\t%s\t%s\t%s\t%.0f\t\n", name, machines, s.took.Seconds(), s.events, float64(s.events)/s.took.Seconds(), s.writes, s.cpu.Seconds(),
		eventCost(s), ratio, milliseconds(s.lags, 50), milliseconds(s.lags, 99), s.memory)
}

// eventCost is the CPU time of an event, in milliseconds; - if there are none.
func eventCost(s spending) string {
	if s.events == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", s.perEvent())
}

// costRatio compares the CPU time of events; - where there are none.
func costRatio(of, peer spending) string {
	if of.events == 0 || peer.events == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", of.perEvent()/peer.perEvent())
}

// milliseconds is what so many in a hundred of sorted times do not pass; - if there are none.
func milliseconds(sorted []time.Duration, percent int) string {
	if len(sorted) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", at(sorted, percent).Seconds()*1000)
}
