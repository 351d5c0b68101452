// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/evenkeel/evenkeel/pkg/controller/release"
	. "github.com/evenkeel/evenkeel/test/builders/release"
)

// BenchmarkDecision is one decision over pods that wait in ten namespaces and fit no machine, beside 12,000 that run.
func BenchmarkDecision(b *testing.B) {
	for _, waiting := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			preview := crowded(b, waiting)
			b.ReportAllocs()
			for b.Loop() {
				if p := preview.Plan(); len(p.Pods)+p.Beyond != waiting {
					b.Fatalf("%d and %d pods", len(p.Pods), p.Beyond)
				}
			}
		})
	}
}

func crowded(b *testing.B, waiting int) *Preview {
	preview, err := NewPreview(UsualSettings)
	if err != nil {
		b.Fatal(err)
	}
	o := spare()
	for i := range waiting {
		o.Pods = append(o.Pods, Pod(fmt.Sprintf("x-%d", i), 5000, InNamespace(fmt.Sprint("crowd-", i%10)), func(p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(Noon.Add(-time.Duration(i*7919%3600) * time.Second))
		}))
	}
	for i := range 12_000 {
		o.Pods = append(o.Pods, Pod(fmt.Sprintf("r-%d", i), 10, func(p *corev1.Pod) {
			p.Spec.NodeName, p.Status.Phase = fmt.Sprint("n-", i%100), corev1.PodRunning
		}))
	}
	if err := preview.SetObjects(o, Noon); err != nil {
		b.Fatal(err)
	}
	return preview
}
