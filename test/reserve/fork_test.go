// SPDX-License-Identifier: Apache-2.0

//go:build !race

package reserve_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	stock "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/controller/release"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/manager"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// fork is a double of Gardener's fork of cluster-autoscaler, beside one MachineDeployment in which each pod takes a machine. It decides
// as simply as can be, removes nothing in a rollout, and reads and writes as the fork's machine-controller-manager provider does: it counts all Machines, writes whole
// MachineDeployments by types that know no field of ours, and computes replicas once, from what it has read some time ago.
type fork struct {
	machines stock.Interface
	nodes    kubernetes.Interface
	// least and most are the limits that it was started with.
	least, most int32
	// aside is until when it does not scale up, since a machine could not be created.
	aside time.Time
	// idle is since when no pod runs on a Node, and bare since when a Machine has none.
	idle, bare map[string]time.Time
	// short is since when there are fewer Machines than replicas.
	short time.Time
}

const (
	forkInterval = 10 * time.Second
	forkRetry    = 5 * time.Second
	// forkPatience is after how long it removes what is idle, forkGiveUp what has no Node, and forkAside how long it then waits.
	forkPatience = 10 * time.Minute
	forkGiveUp   = 20 * time.Minute
	forkAside    = 5 * time.Minute
	forkUser     = "fork"
)

// sight is what the fork sees in one loop.
type sight struct {
	d        mcmapi.MachineDeployment
	machines []mcmapi.Machine
	nodes    map[string]corev1.Node
	busy     map[string]bool
	waiting  int
}

func (f *fork) run(ctx context.Context, config *rest.Config) error {
	config.QPS = -1
	f.machines, f.nodes = stock.NewForConfigOrDie(storm.Control(config)), kubernetes.NewForConfigOrDie(storm.Target(config))
	f.idle, f.bare = map[string]time.Time{}, map[string]time.Time{}
	for ctx.Err() == nil {
		if s, err := f.look(ctx); err == nil {
			f.loop(ctx, s)
		}
		sleep(ctx, forkInterval)
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (f *fork) look(ctx context.Context) (s sight, err error) {
	d, err := f.machines.MachineV1alpha1().MachineDeployments(ns).Get(ctx, "pool", metav1.GetOptions{})
	if err != nil {
		return s, err
	}
	machines, err := f.machines.MachineV1alpha1().Machines(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, err
	}
	nodes, err := f.nodes.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, err
	}
	pods, err := f.nodes.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, err
	}
	s = sight{d: *d, machines: machines.Items, nodes: map[string]corev1.Node{}, busy: map[string]bool{}}
	for _, n := range nodes.Items {
		s.nodes[n.Name] = n
	}
	for _, p := range pods.Items {
		if s.busy[p.Spec.NodeName] = true; p.Spec.NodeName == "" && len(p.Status.Conditions) > 0 {
			s.waiting++
		}
	}
	return s, nil
}

func (f *fork) loop(ctx context.Context, s sight) {
	failed, rolled := f.failed(s), slices.ContainsFunc(s.d.Status.Conditions, func(c mcmapi.MachineDeploymentCondition) bool {
		return c.Type == mcmapi.MachineDeploymentProgressing && c.Status == mcmapi.ConditionTrue && c.Reason == "NewMachineSetAvailable"
	})
	if len(failed) > 0 {
		f.aside = time.Now().Add(forkAside)
	}
	switch {
	case len(failed) > 0 && rolled:
		f.remove(ctx, s, failed)
	case f.shrinks(s):
		f.write(ctx, func(d *mcmapi.MachineDeployment) { d.Spec.Replicas = int32(len(s.machines)) })
	default:
		if n := f.wanted(s); n > s.d.Spec.Replicas {
			f.write(ctx, func(d *mcmapi.MachineDeployment) { d.Spec.Replicas = n })
			return
		}
		if rolled {
			f.remove(ctx, s, f.unneeded(s))
		}
	}
}

// failed are Machines that could not be created, or that have had no Node for too long.
func (f *fork) failed(s sight) (names []string) {
	for _, m := range s.machines {
		if _, has := s.nodes[m.Name]; has || m.DeletionTimestamp != nil {
			delete(f.bare, m.Name)
			continue
		}
		since, known := f.bare[m.Name]
		if !known {
			f.bare[m.Name] = time.Now()
			continue
		}
		if m.Status.LastOperation.ErrorCode == "ResourceExhausted" || time.Since(since) > forkGiveUp {
			names = append(names, m.Name)
		}
	}
	return names
}

// shrinks reports whether there have been fewer Machines than replicas for so long that the fork does not expect them any more.
func (f *fork) shrinks(s sight) bool {
	if len(s.machines) >= int(s.d.Spec.Replicas) {
		f.short = time.Time{}
		return false
	}
	if f.short.IsZero() {
		f.short = time.Now()
	}
	return time.Since(f.short) > forkGiveUp
}

// wanted are the replicas with which the pods that wait have machines, beside those that come.
func (f *fork) wanted(s sight) int32 {
	if time.Now().Before(f.aside) {
		return 0
	}
	coming := s.d.Spec.Replicas
	for _, m := range s.machines {
		if _, has := s.nodes[m.Name]; has {
			coming--
		}
	}
	return max(f.least, min(f.most, s.d.Spec.Replicas+max(0, int32(s.waiting)-max(0, coming))))
}

// unneeded are the Machines whose Nodes no pod has run on for long. While pods wait, there are none.
func (f *fork) unneeded(s sight) (names []string) {
	for _, m := range s.machines {
		node, has := s.nodes[m.Name]
		if s.waiting > 0 || !has || s.busy[m.Name] || m.DeletionTimestamp != nil || node.Annotations["cluster-autoscaler.kubernetes.io/scale-down-disabled"] == "true" {
			delete(f.idle, m.Name)
			continue
		}
		if _, known := f.idle[m.Name]; !known {
			f.idle[m.Name] = time.Now()
		}
		if time.Since(f.idle[m.Name]) > forkPatience && s.d.Spec.Replicas-int32(len(names)) > f.least {
			names = append(names, m.Name)
		}
	}
	return names
}

// remove names Machines beside those that are named already, and lowers replicas by those that are new. It skips those that
// machine-controller-manager removes by itself. At its min it refuses, but from above it may pass that.
func (f *fork) remove(ctx context.Context, s sight, names []string) {
	for _, m := range s.machines {
		if machineutils.IsMachineFailedOrTerminating(&m) {
			names = slices.DeleteFunc(names, func(name string) bool { return name == m.Name })
		}
	}
	if len(names) == 0 || s.d.Spec.Replicas <= f.least {
		return
	}
	written := f.write(ctx, func(d *mcmapi.MachineDeployment) {
		var named []string
		if d.Annotations[machineutils.TriggerDeletionByMCM] != "" {
			named = strings.Split(d.Annotations[machineutils.TriggerDeletionByMCM], ",")
		}
		now := time.Now().UTC().Format(time.RFC3339)
		for _, name := range names {
			if !slices.ContainsFunc(named, func(n string) bool { return strings.HasPrefix(n, name+"~") }) {
				named = append(named, name+"~"+now)
				d.Spec.Replicas--
			}
		}
		d.Annotations[machineutils.TriggerDeletionByMCM] = strings.Join(named, ",")
		d.Annotations["machine.sapcloud.io/last-deployment-replica-change-by-scaler-time"] = now
	})
	for _, name := range names {
		if node, has := s.nodes[name]; has && written {
			node.Spec.Unschedulable = true
			_, _ = f.nodes.CoreV1().Nodes().Update(ctx, &node, metav1.UpdateOptions{}) // the machine goes all the same
		}
	}
}

// write makes one change until it succeeds, for a minute, each time on the object as it is then.
func (f *fork) write(ctx context.Context, change func(*mcmapi.MachineDeployment)) bool {
	for range 12 {
		d, err := f.machines.MachineV1alpha1().MachineDeployments(ns).Get(ctx, "pool", metav1.GetOptions{})
		if err == nil {
			change(d)
			_, err = f.machines.MachineV1alpha1().MachineDeployments(ns).Update(ctx, d, metav1.UpdateOptions{})
		}
		if err == nil {
			return true
		}
		sleep(ctx, forkRetry)
	}
	return false
}

// limits are the bounds annotation.
func (f *fork) limits(excess int) string {
	return strings.Join([]string{strconv.Itoa(int(f.least)), strconv.Itoa(int(f.most)), strconv.Itoa(excess)}, ":")
}

// servedToRelease are the kinds that the release controller reads, too.
var servedToRelease = slices.Concat(served, sim.Workloads, []sim.Resource{
	{Group: "storage.k8s.io", Version: "v1", Name: "storageclasses", Kind: "StorageClass", Type: &storagev1.StorageClass{}},
	{Group: "storage.k8s.io", Version: "v1", Name: "csidrivers", Kind: "CSIDriver", Type: &storagev1.CSIDriver{}},
})

// releases runs the release controller.
func releases(p *manager.Process, machines *stores.Informers, nodes *target.Informers) error {
	c, err := release.New(p.Client.MachineV1alpha1(), release.Informers{Machines: machines, Target: nodes}, &record.FakeRecorder{},
		release.Options{Raised: p.Controller.ObserveUpdate, Pods: p.Core.CoreV1(), Target: p.Target})
	if err != nil {
		return err
	}
	p.Go(c.Run)
	return nil
}

// besideFork is a cluster in which release and Gardener's autoscaler raise replicas that include the reserve.
func besideFork(w *storm.World) (*cluster, *fork) {
	c, f := inhabit(w), &fork{least: 1, most: most}
	c.reports = true
	c.process = w.Start(evenkeel, manager.ProgramWith(machinetaint.Settings{SurplusPatience: surplusPatience, Accounting: func(*api.MachineDeployment) api.Accounting {
		return api.AccountingInclusive
	}}, releases))
	c.start()
	return c, f
}

// fill makes pods that each take a machine, and that the release controller knows to.
func (c *cluster) fill(pods int) {
	GinkgoHelper()
	for i := range pods {
		_, err := c.core.CoreV1().Pods(ns).Create(context.Background(), wholeMachine(fmt.Sprintf("work-%d-%d", time.Now().UnixNano(), i)), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
}

func wholeMachine(name string) *corev1.Pod {
	return fixture.Pod(name, replicated, func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("3")
	})
}

// finish ends some pods.
func (c *cluster) finish(pods int) {
	GinkgoHelper()
	for _, o := range c.Objects(podsGVR) {
		if pods--; pods < 0 {
			return
		}
		_ = c.core.CoreV1().Pods(ns).Delete(context.Background(), o.GetName(), metav1.DeleteOptions{}) // the scheduler may have been faster
	}
}

// waiting returns how many pods have no Node.
func (c *cluster) waiting() (n int) {
	for _, o := range c.Objects(podsGVR) {
		if node, _, _ := unstructured.NestedString(o.Object, "spec", "nodeName"); node == "" {
			n++
		}
	}
	return n
}

// raises follows by how many machines replicas are raised beyond the pods that there are.
type raises struct {
	g    *guard
	pods map[string]bool
	// beyond counts the raises of each client, by the number of machines.
	beyond map[string]int
	before int
	// written are the writes of the MachineDeployment.
	written []string
}

func (e *raises) follow(w sim.Write) error {
	switch {
	case w.Resource == "pods" && w.Effect == sim.Deleted:
		delete(e.pods, w.Name)
	case w.Resource == "pods":
		e.pods[w.Name] = true
	case w.Resource == "machinedeployments" && !w.NoOp() && w.Object != nil:
		e.judge(w)
	}
	return nil
}

func (e *raises) judge(w sim.Write) {
	d := world.Decoded[api.MachineDeployment](w.Object)
	if names := d.Annotations[machineutils.TriggerDeletionByMCM]; w.User == forkUser && names != "" {
		for name := range strings.SplitSeq(names, ",") {
			name, _, _ = strings.Cut(name, "~")
			e.g.forgive(name)
		}
	}
	e.written = append(e.written, fmt.Sprintf("%s %s: replicas %d, excess %d", w.Time.Format(time.TimeOnly), w.User, d.Spec.Replicas, ptr.Deref(d.Spec.ExcessReplicas, -1)))
	workload := world.Workload(d)
	if pods := max(1, len(e.pods)); workload > e.before && workload > pods {
		e.beyond[fmt.Sprintf("%s %d", w.User, workload-pods)]++
	}
	e.before = workload
}

var _ = Describe("Storms beside Gardener's autoscaler", func() {
	It("end with a machine for each pod and the reserve, and keep all invariants for hours", func() {
		looked, beyond := map[string]int{}, map[string]int{}
		storm.Seeds(suite, 2, func(seed uint64) {
			c, f := besideFork(storm.NewApart(sim.Options{Seed: seed, Resources: servedToRelease}))
			defer c.End()
			random := rand.New(rand.NewPCG(seed, 11))
			g := newGuard(c)
			g.inclusive = true
			e := &raises{g: g, pods: map[string]bool{}, beyond: beyond}
			c.AfterWrite(g.follow)
			c.AfterWrite(e.follow)
			c.pool(1, excess(2), bounds(f.limits(2)))
			c.Start(forkUser, f.run)
			c.Storm(random, c.process)
			for range 40 {
				time.Sleep(time.Duration(random.IntN(600)) * time.Second)
				c.bother(random, g)
			}
			c.calm()
			time.Sleep(2 * time.Hour)
			pods := len(c.Objects(podsGVR))
			c.settle()
			Expect(g.verdict()).To(BeEmpty(), "%s", strings.Join(g.story, "\n"))
			reserve := int(*c.deployment().Spec.ExcessReplicas)
			serving := min(most, max(pods, int(f.least)-reserve))
			Expect(c.numbers()).To(HavePrefix(fmt.Sprintf("%d+%d status", serving, min(reserve, most-serving))), "%d pods, %d of them wait; the last writes:\n%s", pods, c.waiting(),
				strings.Join(e.written[max(0, len(e.written)-20):], "\n"))
			for law, n := range g.looked {
				looked[law] += n
			}
		})
		AddReportEntry("invariants that were at stake", ReportEntryVisibilityAlways, fmt.Sprint(looked))
		AddReportEntry("raises by so many machines beyond the pods", ReportEntryVisibilityAlways, fmt.Sprint(beyond))
		if !storm.Repeating() {
			Expect(looked).To(And(HaveKey("I1"), HaveKey("I3"), HaveKey("no machine can be created"), HaveKey("another class"), HaveKey("all pods go"),
				HaveKey("pods come while the reserve leaves"), HaveKey("wanted back")))
		}
	})
})

// bother does one thing that happens to a Shoot.
func (c *cluster) bother(random *rand.Rand, g *guard) {
	serving, _ := c.split()
	switch kind := random.IntN(16); kind {
	case 0, 1, 2:
		g.count("pods come")
		c.fill(1 + random.IntN(4))
	case 3, 4, 5:
		g.count("pods go")
		c.finish(1 + random.IntN(4))
	case 6:
		c.process.CrashFor(time.Duration(random.IntN(40)) * time.Second)
	case 7:
		g.count("no machine can be created")
		c.cloud.set(func() { c.cloud.out = !c.cloud.out })
	case 8:
		if len(serving) > 0 {
			victim := serving[random.IntN(len(serving))]
			g.forgive(victim)
			c.cloud.set(func() { c.cloud.sick = map[string]bool{victim: true} })
		}
	case 9:
		g.count("another class")
		c.patch(`{"spec":{"template":{"spec":{"class":{"name":"class-%d"}}}}}`, random.IntN(100))
	case 10:
		g.count("another excess")
		c.wantInBounds(random.IntN(4))
	case 11:
		g.count("all pods go")
		c.finish(100)
	case 12, 13:
		c.growWhileReserveLeaves(random, g)
	case 14, 15:
		c.wantBack(random, g)
	}
}

// growWhileReserveLeaves gives up a reserve that takes all that max allows, and has pods come while its machines are being deleted, which
// takes long.
func (c *cluster) growWhileReserveLeaves(random *rand.Rand, g *guard) {
	GinkgoHelper()
	c.empty()
	c.cloud.set(func() { c.cloud.Drain = time.Duration(1+random.IntN(5)) * time.Minute })
	c.wantInBounds(most)
	c.await(func(staying, _ int) bool { return staying > 1 })
	time.Sleep(time.Minute)
	c.wantInBounds(0)
	if c.await(func(_, leaving int) bool { return leaving > 0 }) {
		g.count("pods come while the reserve leaves")
	}
	c.fill(most)
	time.Sleep(5 * time.Minute)
	c.cloud.set(func() { c.cloud.Drain = drainTime })
	c.wantInBounds(2)
}

// wantBack gives up a reserve and wants it back while its machines are being deleted, which the API server takes long to answer, and pods take
// some of them.
func (c *cluster) wantBack(random *rand.Rand, g *guard) {
	GinkgoHelper()
	c.empty()
	c.fill(2)
	c.wantInBounds(3)
	time.Sleep(5 * time.Minute)
	if _, reserve := c.split(); len(reserve) > 1 && len(c.busy()) > 1 {
		g.count("wanted back")
	}
	c.slowly("delete", "machines", time.Duration(5+random.IntN(20))*time.Second)
	c.wantInBounds(0)
	time.Sleep(time.Duration(random.IntN(5000)) * time.Millisecond)
	c.fill(2)
	c.wantInBounds(3)
}

// empty ends all pods, and waits for the autoscaler to remove their machines.
func (c *cluster) empty() {
	c.cloud.set(func() { c.cloud.sick, c.cloud.out = nil, false })
	c.finish(100)
	time.Sleep(3 * forkPatience)
}

// wantInBounds asks for an excess as Gardener does: in the bounds, whatever the field says.
func (c *cluster) wantInBounds(excess int) {
	GinkgoHelper()
	c.patch(`{"metadata":{"annotations":{%q:"1:%d:%d"}}}`, api.BoundsAnnotation, most, excess)
}
