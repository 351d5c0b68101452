// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/provider/virtual"
)

const (
	threeZones = "examples/three-zones.yaml"
	ofPool     = "worker.gardener.cloud/pool=pool"
	perZone    = 2
)

var (
	zones     = []string{"pool-z1", "pool-z2", "pool-z3"}
	balancers = schema.GroupVersionResource{Group: "balancer.x-k8s.io", Version: "v1alpha1", Resource: "balancers"}
)

// removeLeftovers takes away what an earlier demo may have left.
func (s *stage) removeLeftovers(ctx context.Context) error {
	present := metav1.DeleteOptions{}
	errs := []error{
		s.objects.Resource(balancers).Namespace(namespace).Delete(ctx, "shop", present),
		s.kube.CoreV1().ConfigMaps(namespace).Delete(ctx, virtual.FaultsConfigMap, present),
	}
	for _, name := range []string{"steady", "burst", "burst-plain", "shop-a", "shop-b", "shop-c"} {
		errs = append(errs, s.kube.AppsV1().Deployments(namespace).Delete(ctx, name, present))
	}
	for i, err := range errs {
		if apierrors.IsNotFound(err) {
			errs[i] = nil
		}
	}
	return errors.Join(errs...)
}

func (s *stage) pool(ctx context.Context) error {
	if err := s.apply(ctx, threeZones); err != nil {
		return err
	}
	took, err := s.pollUntil(ctx, s.complete)
	if err != nil {
		return err
	}
	s.measured.took("nine machines in three zones, until they are ready", took)
	return nil
}

func (s *stage) reserve(ctx context.Context) error {
	for _, name := range zones {
		// At least 3 machines, at most 9, and 2 of them to spare.
		if err := s.patch(ctx, name, fmt.Sprintf(`{"metadata":{"annotations":{%q:"3:9:%d"}}}`, v1alpha1.BoundsAnnotation, perZone)); err != nil {
			return err
		}
	}
	took, err := s.pollUntil(ctx, s.complete)
	if err != nil {
		return err
	}
	s.measured.took("six machines in reserve, until they are ready", took)
	if err := s.apply(ctx, "examples/demo/steady.yaml"); err != nil {
		return err
	}
	if _, err := s.pollUntil(ctx, func(ctx context.Context) (string, bool, error) { return s.running(ctx, "app=steady", 9) }); err != nil {
		return err
	}
	fmt.Println("\nEach serving machine now runs a pod, and the reserve machines are empty.")
	return s.show(ctx, "evenkeel", "status")
}

// machineCount is how many of the pool's machines serve and are in reserve, ready, and how many
// should.
type machineCount struct {
	wanted, ready, spare, readySpare int32
	// settled reports whether machine-controller-manager has nothing left to do.
	settled bool
}

func (c machineCount) String() string {
	return fmt.Sprintf("ready: %d of %d machines for workload, %d of %d in reserve", c.ready, c.wanted, c.readySpare, c.spare)
}

func (s *stage) countMachines(ctx context.Context) (machineCount, error) {
	all, err := s.machines.MachineV1alpha1().MachineDeployments(namespace).List(ctx, metav1.ListOptions{LabelSelector: ofPool})
	if err != nil {
		return machineCount{}, err
	}
	c := machineCount{settled: len(all.Items) == len(zones)}
	for _, d := range all.Items {
		x := int32(0)
		if _, bounded := d.Annotations[v1alpha1.BoundsAnnotation]; bounded {
			x = perZone
		}
		c.wanted, c.spare = c.wanted+d.Spec.Replicas, c.spare+x
		c.ready += d.Status.AvailableReplicas - d.Status.ReadyExcessReplicas
		c.readySpare += d.Status.ReadyExcessReplicas
		c.settled = c.settled && d.Status.ObservedGeneration == d.Generation && d.Status.Replicas == d.Spec.Replicas+x && d.Status.UpdatedReplicas == d.Status.Replicas
	}
	return c, nil
}

// complete reports whether all machines serve or are in reserve, as they should.
func (s *stage) complete(ctx context.Context) (string, bool, error) {
	c, err := s.countMachines(ctx)
	return c.String(), c.settled && c.ready == c.wanted && c.readySpare == c.spare, err
}

// returned reports whether as many machines serve as should. The reserve can take longer: a machine
// of it that had to serve for one that did not respond may serve beside it now, and one that could
// not be made is tried again after some minutes.
func (s *stage) returned(ctx context.Context) (string, bool, error) {
	c, err := s.countMachines(ctx)
	return c.String(), c.wanted > 0 && c.ready >= c.wanted, err
}
