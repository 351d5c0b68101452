// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
)

const (
	poolLabel = "worker.gardener.cloud/pool=pool"
	namespace = "default"
	interval  = 200 * time.Millisecond
)

// watcher tells how far the pool is, and keeps the time of each phase.
type watcher struct {
	machines versioned.Interface
	nodes    kubernetes.Interface
	start    time.Time
	phases   []phase
	last     string
}

type phase struct {
	name string
	took time.Duration
}

// count is how many machines of the pool are wanted, and how far they are.
type count struct {
	wanted, made, registered, ready, available int
	zones                                      map[string]bool
}

func newWatcher(config *rest.Config) (*watcher, error) {
	machines, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	nodes, err := kubernetes.NewForConfig(config)
	return &watcher{machines: machines, nodes: nodes, start: time.Now()}, err
}

// untilReady tells of progress until every wanted machine has a Ready node and counts as available.
func (w *watcher) untilReady(ctx context.Context) error {
	for {
		c, err := w.look(ctx)
		if err != nil {
			return err
		}
		w.tell(c)
		if c.available >= c.wanted && c.wanted > 0 && c.ready >= c.wanted {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for machines: %d of %d nodes are ready: %w", c.ready, c.wanted, context.Cause(ctx))
		case <-time.After(interval):
		}
	}
}

func (w *watcher) look(ctx context.Context) (count, error) {
	c := count{zones: map[string]bool{}}
	ofPool := metav1.ListOptions{LabelSelector: poolLabel}
	deployments, err := w.machines.MachineV1alpha1().MachineDeployments(namespace).List(ctx, ofPool)
	if err != nil {
		return c, err
	}
	for _, md := range deployments.Items {
		c.wanted += int(md.Spec.Replicas)
		c.made += int(md.Status.Replicas)
		c.available += int(md.Status.AvailableReplicas)
	}
	nodes, err := w.nodes.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return c, err
	}
	for _, node := range nodes.Items {
		c.registered++
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				c.ready++
				c.zones[node.Labels[corev1.LabelTopologyZone]] = true
			}
		}
	}
	return c, nil
}

// tell prints a line where something has changed.
func (w *watcher) tell(c count) {
	line := fmt.Sprintf("machines made %d/%d   nodes registered %d   ready %d in %d zones   available %d",
		c.made, c.wanted, c.registered, c.ready, len(c.zones), c.available)
	if line == w.last {
		return
	}
	w.last = line
	took := time.Since(w.start)
	fmt.Printf("%5.1fs  %s\n", took.Seconds(), line)
	w.reached("machines made", c.made >= c.wanted, took)
	w.reached(fmt.Sprintf("%d nodes Ready in %d zones", c.ready, len(c.zones)), c.ready >= c.wanted, took)
	w.reached("all available", c.available >= c.wanted, took)
}

// reached notes a phase the first time that it is over.
func (w *watcher) reached(name string, over bool, took time.Duration) {
	if !over {
		return
	}
	for _, p := range w.phases {
		if p.name == name {
			return
		}
	}
	w.phases = append(w.phases, phase{name, took})
}

func (w *watcher) summary() string {
	text := ""
	for _, p := range w.phases {
		text += fmt.Sprintf("%s after %.1fs\n", p.name, p.took.Seconds())
	}
	return text
}
