// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"sync"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workerhealth "github.com/gardener/gardener/extensions/pkg/controller/healthcheck/worker"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/gardenlet/controller/shoot/care"
)

// watch asks Gardener's checks again and again, and remembers.
type watch struct {
	shoot *shoot
	stop  context.CancelFunc
	done  chan struct{}

	mu sync.Mutex
	// longest unhealthy spells of the condition EveryNodeReady and of the Worker's health check; last are the last ones.
	longest, last [2]spells
	// living is how many machines there were at the last look, and beyond is what was wrong when they became more than there may be.
	living int
	beyond []string
	// mostMachines is how many there were at most, those that are being deleted left out.
	mostMachines int
}

// The checks, as they are indexed in a watch.
const (
	everyNodeReady = iota
	workerHealthy
)

// watchHealth looks until the end of the spec.
func (s *shoot) watchHealth(ctx context.Context) *watch {
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	w := &watch{shoot: s, stop: stop, done: make(chan struct{})}
	go w.run(life)
	DeferCleanup(w.end)
	return w
}

func (w *watch) end() {
	w.stop()
	<-w.done
}

func (w *watch) run(ctx context.Context) {
	defer GinkgoRecover()
	defer close(w.done)
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			w.look(ctx)
		}
	}
}

func (w *watch) look(ctx context.Context) {
	reason, message, err := w.shoot.everyNodeReady(ctx)
	detail, errWorker := w.shoot.workerHealth(ctx)
	var machines machinev1alpha1.MachineList
	errMachines := seed.List(ctx, &machines, client.InNamespace(w.shoot.namespace))
	if ctx.Err() != nil {
		return
	}
	Expect(err).NotTo(HaveOccurred())
	Expect(errWorker).NotTo(HaveOccurred())
	Expect(errMachines).NotTo(HaveOccurred())
	limit, errLimit := w.shoot.mostMachines(ctx, machines.Items)
	if ctx.Err() != nil {
		return
	}
	Expect(errLimit).NotTo(HaveOccurred())
	living := 0
	for _, m := range machines.Items {
		if m.DeletionTimestamp == nil {
			living++
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if living > limit && living > w.living {
		w.beyond = append(w.beyond, fmt.Sprintf("%d machines, after %d; at most %d may be", living, w.living, limit))
	}
	w.living, w.mostMachines = living, max(w.mostMachines, living)
	w.note(everyNodeReady, reason, message)
	w.note(workerHealthy, kindOf(detail), detail)
}

// mostMachines is how many a Shoot may have now: the maximum of its pools, and the surge while one is rolled. There can be more only
// because a maximum was lowered.
func (s *shoot) mostMachines(ctx context.Context, machines []machinev1alpha1.Machine) (int, error) {
	var worker extensionsv1alpha1.Worker
	if err := seed.Get(ctx, client.ObjectKeyFromObject(s.worker), &worker); err != nil {
		return 0, err
	}
	sets := map[string]map[string]bool{}
	for _, m := range machines {
		if owner := metav1.GetControllerOf(&m); owner != nil {
			name := m.Labels["name"]
			if sets[name] == nil {
				sets[name] = map[string]bool{}
			}
			sets[name][owner.Name] = true
		}
	}
	limit := 0
	for _, pool := range worker.Spec.Pools {
		limit += int(pool.Maximum)
	}
	for _, owners := range sets {
		if len(owners) > 1 {
			limit += worker.Spec.Pools[0].MaxSurge.IntValue()
		}
	}
	return limit, nil
}

// beyondMaximum is an error where machines were created though there were too many.
func (w *watch) beyondMaximum() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return joined(w.beyond)
}

// note extends the last spell of this reason, or begins another one. No reason means that all is well.
func (w *watch) note(check int, reason, message string) {
	if reason == "" {
		return
	}
	s := w.last[check].extended(reason, message, time.Now())
	if w.last[check] == nil {
		w.last[check] = spells{}
	}
	w.last[check][reason] = s
	w.longest[check] = w.longest[check].with(s)
}

// seen are the longest spells so far of each check, and how many machines there were at most.
func (w *watch) seen() (nodes, worker spells, machines int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.longest[everyNodeReady], w.longest[workerHealthy], w.mostMachines
}

// everyNodeReady is the reason and the message for which gardenlet sets the condition to False; none where all is well.
func (s *shoot) everyNodeReady(ctx context.Context) (reason, message string, err error) {
	var deployments machinev1alpha1.MachineDeploymentList
	if err := seed.List(ctx, &deployments, client.InNamespace(s.namespace)); err != nil {
		return "", "", err
	}
	var nodes corev1.NodeList
	if err := target.List(ctx, &nodes); err != nil {
		return "", "", err
	}
	var managed []*corev1.Node
	for i := range nodes.Items {
		if nodes.Items[i].Annotations[workerhealth.AnnotationKeyNotManagedByMCM] != "1" {
			managed = append(managed, &nodes.Items[i])
		}
	}
	reason, wrong := care.CheckNodesScaling(ctx, seed, managed, &deployments, s.namespace)
	switch {
	case wrong == nil:
		return "", "", nil
	case reason == "":
		return "", "", wrong
	}
	return reason, wrong.Error(), nil
}

// workerHealth is what the health check of the extension complains about.
func (s *shoot) workerHealth(ctx context.Context) (string, error) {
	checker := workerhealth.NewNodesChecker()
	checker.InjectSourceClient(seed)
	checker.InjectTargetClient(target)
	result, err := checker.Check(ctx, client.ObjectKeyFromObject(s.worker))
	if err != nil || result.Status == gardencorev1beta1.ConditionTrue {
		return "", err
	}
	return result.Detail, nil
}
