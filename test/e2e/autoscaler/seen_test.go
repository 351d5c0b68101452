// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// record is what became of the machines of a pool since it was begun.
type record struct {
	mu   sync.Mutex
	top  int
	gone map[string]time.Time
}

// record looks at the machines of a pool until the spec ends.
func (p pool) record(ctx context.Context) *record {
	GinkgoHelper()
	r := &record{gone: map[string]time.Time{}}
	ended := make(chan struct{})
	watched, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(ended)
		for watched.Err() == nil {
			p.look(watched, r)
			time.Sleep(50 * time.Millisecond)
		}
	}()
	DeferCleanup(func() { cancel(); <-ended })
	return r
}

func (p pool) look(ctx context.Context, r *record) {
	list, err := p.machines(ctx)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.top = max(r.top, len(list))
	for _, m := range list {
		if m.DeletionTimestamp != nil {
			r.gone[m.Name] = m.DeletionTimestamp.Time
		}
	}
}

// most is the largest number of machines that were there at a time, those that terminated included.
func (r *record) most() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.top
}

// removed is when machines began to be deleted, in order.
func (r *record) removed() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.gone), time.Time.Compare)
}

// status is the part of cluster-autoscaler's own status that is read here.
type status struct {
	ClusterWide struct{ Health health }
	NodeGroups  []struct {
		Name   string
		Health health
	}
}

type health struct {
	Status                                string
	CloudProviderTarget, MinSize, MaxSize int
}

// said returns the status in cluster-autoscaler's ConfigMap.
func said(ctx context.Context) (status, error) {
	written, err := kube.CoreV1().ConfigMaps("kube-system").Get(ctx, "cluster-autoscaler-status", metav1.GetOptions{})
	if err != nil {
		return status{}, err
	}
	var s status
	return s, yaml.Unmarshal([]byte(written.Data["status"]), &s)
}

// says waits until cluster-autoscaler reports this status for a group, as in "kept Healthy 3 of 1:5".
func (p pool) says(ctx context.Context, want string) {
	GinkgoHelper()
	Eventually(func() (string, error) {
		s, err := said(ctx)
		for _, g := range s.NodeGroups {
			if g.Name == p.name {
				return fmt.Sprintf("%s %s %d of %d:%d", g.Name, g.Health.Status, g.Health.CloudProviderTarget, g.Health.MinSize, g.Health.MaxSize), err
			}
		}
		return "", err
	}).WithContext(ctx).Should(Equal(want))
}

// calls are those that the server of node groups has answered with OK so far, by method.
func calls(ctx context.Context) map[string]int {
	GinkgoHelper()
	port, err := cluster.Port(manager)
	Expect(err).NotTo(HaveOccurred())
	text, err := fetch(ctx, fmt.Sprintf("http://127.0.0.1:%d/metrics", port))
	Expect(err).NotTo(HaveOccurred())
	all := map[string]int{}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "evenkeel_nodegroup_calls_total") || !strings.Contains(line, `code="OK"`) {
			continue
		}
		_, rest, _ := strings.Cut(line, `method="`)
		method, number, _ := strings.Cut(rest, `"} `)
		n := 0
		if _, err := fmt.Sscan(number, &n); err == nil {
			all[method] = n
		}
	}
	return all
}
