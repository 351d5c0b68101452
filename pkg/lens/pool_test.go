// SPDX-License-Identifier: Apache-2.0

//go:build !race

package lens_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	machineinformers "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/lens"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
	machinepool "github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/mcm"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var (
	deploymentsResource = machinev1alpha1.SchemeGroupVersion.WithResource("machinedeployments")
	setsResource        = machinev1alpha1.SchemeGroupVersion.WithResource("machinesets")
	nodesResource       = corev1.SchemeGroupVersion.WithResource("nodes")

	reserveTaint = corev1.Taint{Key: "status-taint.cluster-autoscaler.kubernetes.io/excess-reserve", Effect: corev1.TaintEffectNoSchedule}
	reserveKeeps = map[string]string{"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}
)

// sighted is the whole lens as our binary will build it: views below, reading one's own writes above.
type sighted struct {
	*lens.Consistent
	bound machineinformers.Interface
}

func (s *sighted) Bind(in machineinformers.Interface) (machineinformers.Interface, error) {
	bound, err := s.Consistent.Bind(in)
	s.bound = bound
	return bound, err
}

// reservePool is a pool whose controllers look through views, and whose machines are born by a rule that knows all.
type reservePool struct {
	*pool
	born []bool // of each birth: in reserve?
	// toServe are the names of machines whose birth was decided in service.
	toServe []string
}

func newReservePool(o sim.Options) *reservePool {
	p := &reservePool{}
	p.pool = onWorld(storm.NewApart(o), func(ctx context.Context, inner versioned.Interface) mcm.Lens { return p.look(ctx, inner) })
	return p
}

func (p *reservePool) look(ctx context.Context, inner versioned.Interface) mcm.Lens {
	return throughViews(ctx, inner, p.bear)
}

func throughViews(ctx context.Context, inner versioned.Interface, born func(view.Creation) *api.Reserve) mcm.Lens {
	s := &sighted{}
	shown := view.New(ctx, inner, view.Options{CreationOptions: view.CreationOptions{
		ReserveMark: born,
		DeploymentOf: func(namespace string, m *machinev1alpha1.Machine) (types.NamespacedName, bool) {
			return view.OwnedThrough(s.bound.MachineSets().Lister())(namespace, m)
		},
		Seen: func(string) bool { return true },
	}})
	s.Consistent = lens.New(ctx, shown, lens.Options{})
	return s
}

// bear holds in reserve what is more than replicas.
func (p *reservePool) bear(b view.Creation) *api.Reserve {
	serving := 0
	known := map[string]bool{}
	for _, m := range p.machines() {
		known[m.Name] = true
		if serves(m) {
			serving++
		}
	}
	for _, other := range b.InProgress {
		if !known[other.Name] && !other.Reserve {
			serving++
		}
	}
	reserve := serving >= p.replicas()
	p.born = append(p.born, reserve)
	if !reserve {
		p.toServe = append(p.toServe, b.Machine.Name)
		return nil
	}
	return &api.Reserve{Since: time.Now(), Taints: []corev1.Taint{reserveTaint}, Annotations: reserveKeeps}
}

func serves(m *machinev1alpha1.Machine) bool {
	return m.DeletionTimestamp == nil && !world.InReserve(m)
}

// unmade counts the machines that were to be born in service and do not exist.
func (p *reservePool) unmade() int {
	missing := map[string]bool{}
	for _, name := range p.toServe {
		missing[name] = true
	}
	for _, m := range p.machines() {
		delete(missing, m.Name)
	}
	return len(missing)
}

func (p *reservePool) machines() []*machinev1alpha1.Machine {
	return world.List[machinev1alpha1.Machine](p, machinesResource)
}

func (p *reservePool) replicas() int {
	d := p.Get(deploymentsResource, fixture.Namespace, "pool")
	if d == nil {
		return 0
	}
	replicas, _ := d.Object["spec"].(map[string]any)["replicas"].(int64)
	return int(replicas)
}

// names of those that serve and of those in reserve; what holds the latter is whole, and what the former have is none of ours.
func (p *reservePool) names() (serving, reserve []string) {
	GinkgoHelper()
	for _, m := range p.machines() {
		holds := slices.Contains(m.Spec.NodeTemplateSpec.Spec.Taints, reserveTaint)
		Expect(holds).To(Equal(world.InReserve(m)), m.Name)
		if world.InReserve(m) {
			Expect(m.Spec.NodeTemplateSpec.Annotations).To(HaveKeyWithValue("cluster-autoscaler.kubernetes.io/scale-down-disabled", "true"))
			reserve = append(reserve, m.Name)
		} else {
			Expect(m.Spec.NodeTemplateSpec.Annotations).NotTo(HaveKey("cluster-autoscaler.kubernetes.io/scale-down-disabled"))
			serving = append(serving, m.Name)
		}
	}
	return serving, reserve
}

// withExcess returns a pool with so much excess applied.
func withExcess(excess string, replicas int32, change ...func(*machinev1alpha1.MachineDeployment)) *machinev1alpha1.MachineDeployment {
	d := fixture.MachineDeployment("pool", replicas, change...)
	d.Annotations = map[string]string{api.AppliedExcessAnnotation: excess}
	return d
}

// create makes the pool, with so much excess applied.
func (p *reservePool) create(replicas int32, excess string, change ...func(*machinev1alpha1.MachineDeployment)) {
	GinkgoHelper()
	world.Create(p.deployments(), withExcess(excess, replicas, change...))
	p.settle()
}

func (p *reservePool) change(name string, change func(*machinev1alpha1.Machine)) {
	GinkgoHelper()
	world.Change(p.user.MachineV1alpha1().Machines(fixture.Namespace), name, change)
}

// guard gives the reserve the priority by which it stays, and release takes one out of it, as our controller will.
func (p *reservePool) guard() {
	GinkgoHelper()
	_, reserve := p.names()
	for _, name := range reserve {
		p.change(name, func(m *machinev1alpha1.Machine) { m.Annotations["machinepriority.machine.sapcloud.io"] = "5" })
	}
}

func (p *reservePool) release(name string) {
	GinkgoHelper()
	p.change(name, func(m *machinev1alpha1.Machine) {
		*m = *machinepool.Unmark(m)
		m.Annotations["machinepriority.machine.sapcloud.io"] = "3"
	})
}

// atRest waits for three hours in which nothing is written.
func (p *reservePool) atRest() {
	GinkgoHelper()
	p.settle()
	since := len(p.Writes())
	time.Sleep(3 * time.Hour)
	for _, w := range p.Writes()[since:] {
		Expect(w.User).NotTo(Equal("controllers"), fmt.Sprint(w))
	}
}
