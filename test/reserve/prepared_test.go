// SPDX-License-Identifier: Apache-2.0

//go:build !race

package reserve_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	ours "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/controller/preparation"
	"github.com/evenkeel/evenkeel/pkg/controller/preparation/plan"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/manager"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// preparing is the program of a process that prepares machines, too.
func preparing(s machinetaint.Settings) storm.Program {
	return func(ctx context.Context, config *rest.Config) error {
		states := &preparation.States{}
		s := s
		s.Preparation = func(machine types.UID) machinetaint.Preparation {
			is, known := states.Of(machine)
			return machinetaint.Preparation{Missing: known && !is.Prepared()}
		}
		return manager.ProgramWith(s, func(p *manager.Process, machines *stores.Informers, nodes *target.Informers) error {
			c, err := preparation.New(p.Core, machines, nodes, preparation.Options{
				Cluster: p.Control, Target: p.Target, Image: "wait", States: states, Limits: plan.Limits{PerPool: 2, PerRegistry: 2, Bytes: 1 << 40, Patience: time.Hour},
			})
			if err != nil {
				return err
			}
			states.Subscribe(p.Controller.LookAtMachines)
			p.Go(c.Run)
			return nil
		})(ctx, config)
	}
}

// preparers are the pods that pull images, as namespace and Node, and whether they have them. Their names say which ones.
func (c *cluster) preparers() (all []*corev1.Pod) {
	for _, pod := range world.List[corev1.Pod](c, podsGVR) {
		if pod.Labels[plan.Label] != "" {
			all = append(all, pod)
		}
	}
	return all
}

// pull is what kubelets do: each image takes its time, some come only after a failure.
func (c *cluster) pull(ctx context.Context, core kubernetes.Interface, _ ours.Interface) (again time.Duration, err error) {
	var errs []error
	for _, pod := range c.preparers() {
		hash := fnv.New32a()
		hash.Write([]byte(pod.Name))
		takes, age := time.Duration(hash.Sum32()%90)*time.Second, time.Since(pod.CreationTimestamp.Time)
		state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		switch {
		case age < takes:
			again = max(again, takes-age)
			if state = (corev1.ContainerState{}); hash.Sum32()%3 == 0 {
				state.Waiting = &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}
			}
		case len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Running != nil:
			continue
		}
		if len(pod.Status.ContainerStatuses) > 0 && state.Running == nil {
			continue
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "wait", State: state}}
		_, err := core.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		errs = append(errs, err)
	}
	return again, errors.Join(errs...)
}

// expectPrepared expects each machine in reserve to have its images, and no pod that pulls elsewhere.
func (c *cluster) expectPrepared() {
	GinkgoHelper()
	_, reserve := c.names()
	var want, have []string
	for _, name := range reserve {
		want = append(want, "shop on "+name, "web on "+name)
	}
	for _, pod := range c.preparers() {
		done, _, _ := plan.Judge(pod)
		Expect(done).To(BeTrue(), pod.Name)
		have = append(have, pod.Namespace+" on "+pod.Spec.NodeName)
	}
	slices.Sort(have)
	slices.Sort(want)
	Expect(have).To(Equal(want))
}

func prepared(d *api.MachineDeployment) {
	metav1.SetMetaDataAnnotation(&d.ObjectMeta, api.PrepareAnnotation, "[{namespace: shop, images: [a, b]}, {namespace: web, images: [registry.example/c]}]")
}

var _ = Describe("A hundred machines in reserve", func() {
	It("are prepared, and two of them pull at once", func() {
		storm.Bubble(suite, func() {
			c := inhabit(storm.NewWorld(sim.Options{Seed: 1, Resources: served}))
			defer c.End()
			c.process = c.Start(evenkeel, preparing(machinetaint.Settings{}))
			c.start()
			c.Start("kubelets", c.actor(c.pull))
			most, pulling := 0, map[string]bool{}
			c.AfterWrite(func(w sim.Write) error {
				if w.Resource != "pods" {
					return nil
				}
				pod := world.Decoded[corev1.Pod](w.Object)
				if done, _, failure := plan.Judge(pod); w.Effect == sim.Deleted || done || failure != nil {
					delete(pulling, pod.Name)
				} else if pod.Labels[plan.Label] != "" {
					pulling[pod.Name] = true
				}
				most = max(most, len(pulling))
				return nil
			})
			c.pool(0, excess(100), prepared)
			c.settle()
			Expect(c.numbers()).To(Equal("0+100 status 100/100 True Complete"))
			c.expectPrepared()
			Expect(most).To(Equal(2))
		})
	})
})

var _ = Describe("Storms over machines that are prepared", func() {
	It("end as calm weather does, with one instance and with two: no pod that pulls keeps a machine busy, or stays on one that serves or is gone", func() {
		storm.Seeds(suite, 2, func(seed uint64) {
			settings := counted(seed)
			c := inhabit(storm.NewApart(sim.Options{Seed: seed, Resources: served}))
			defer c.End()
			var processes []*storm.Process
			if seed%4 < 2 {
				first, second := c.Twins(evenkeel, preparing(settings))
				processes = []*storm.Process{first, second}
			} else {
				processes = []*storm.Process{c.Start(evenkeel, preparing(settings))}
			}
			c.process = processes[0]
			c.start()
			c.Start("kubelets", c.actor(c.pull))
			random := rand.New(rand.NewPCG(seed, 9))
			g := newGuard(c)
			c.AfterWrite(g.follow)
			c.Storm(random, processes...)
			c.work(3)
			c.pool(3, excess(2), bounds(fmt.Sprintf("1:%d", most)), prepared)
			for _, kind := range random.Perm(disturbances) {
				time.Sleep(time.Duration(random.IntN(120)) * time.Second)
				c.disturb(kind, random, g)
				c.patch(`{"metadata":{"annotations":{%q:%q}}}`, api.PrepareAnnotation, []string{"[]", "[{namespace: shop, images: [other]}]", "nonsense"}[random.IntN(3)])
			}
			c.calm()
			g.endPatience()
			c.patch(`{"metadata":{"annotations":{%q:"[{namespace: shop, images: [a, b]}, {namespace: web, images: [registry.example/c]}]"}}}`, api.PrepareAnnotation)
			time.Sleep(2 * time.Hour)
			Expect(g.verdict()).To(BeEmpty(), "%s", strings.Join(g.story, "\n"))
			c.wantLastly(seed)
			c.settle()
			Expect(g.verdict()).To(BeEmpty(), "%s", strings.Join(g.story, "\n"))
			c.expectReserve(settings.Accounting)
			c.expectPrepared()
			since := len(c.Writes())
			time.Sleep(24 * time.Hour)
			Expect(c.written(since)).To(BeEmpty())
			c.patch(`{"metadata":{"annotations":{%q:null}}}`, api.PrepareAnnotation)
			time.Sleep(time.Minute)
			Expect(c.preparers()).To(BeEmpty())
		})
	})
})
