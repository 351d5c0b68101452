// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/test/bench/internal/parallel"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// writers create pods at the same time.
const writers = 32

// occupy creates pods on the fleet's Nodes that are not in reserve, as many on each, and waits until they run.
func (l *lab) occupy(ctx context.Context, pods int) error {
	if pods == 0 {
		return nil
	}
	nodes, err := l.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: corev1.LabelTopologyRegion + "=" + fleet.region})
	if err != nil {
		return err
	}
	serving := slices.DeleteFunc(nodes.Items, func(n corev1.Node) bool { return tainted(&n) })
	err = parallel.Each(pods, writers, func(i int) error {
		_, err := l.kube.CoreV1().Pods(namespace).Create(ctx, podOn(serving[i%len(serving)].Name, i), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return l.allRun(ctx)
}

func podOn(node string, i int) *corev1.Pod {
	return fixture.Pod(fmt.Sprintf("pod-%d", i), func(p *corev1.Pod) {
		p.Namespace, p.Spec.NodeName, p.Spec.TerminationGracePeriodSeconds = namespace, node, ptr.To[int64](1) // a machine is drained soon
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("100m")
	})
}

// allRun waits until all pods run.
func (l *lab) allRun(ctx context.Context) error {
	others := fields.OneTermNotEqualSelector("status.phase", string(corev1.PodRunning)).String()
	return wait.PollUntilContextTimeout(ctx, time.Second, limit, true, func(ctx context.Context) (bool, error) {
		list, err := l.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: others, Limit: 1})
		return err == nil && len(list.Items) == 0, err
	})
}
