// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
)

func TestPlan(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Balancer plan")
}

// noon is when plans are made.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// target is one of a View, by the name a, b, c.
type target = Target

func named(name string, change ...func(*target)) target {
	t := target{Known: true, Spec: builders.Target(name)}
	for _, c := range change {
		c(&t)
	}
	return t
}

// between bounds a target; a maximum below 0 is none.
func between(lo, hi int32) func(*target) {
	return func(t *target) {
		t.Spec.MinReplicas = ptr.To(intstr.FromInt32(lo))
		if hi >= 0 {
			t.Spec.MaxReplicas = ptr.To(intstr.FromInt32(hi))
		}
	}
}

// pods gives a target this many pods, some of them stuck: they have not started for too long.
func pods(all, stuck int) func(*target) {
	return func(t *target) {
		t.Current = int64(all)
		for i := range all {
			if i < stuck {
				t.Replicas = append(t.Replicas, pending(time.Hour))
			} else {
				t.Replicas = append(t.Replicas, running(time.Hour))
			}
		}
	}
}

func asked(n int64) func(*target) { return func(t *target) { t.Current = n } }

func pending(age time.Duration) Replica { return Replica{Born: noon.Add(-age)} }

// running is ready, and was born and started that long ago.
func running(age time.Duration) Replica {
	at := noon.Add(-age)
	return Replica{Born: at, Running: true, Ready: true, StartedAt: at, Since: at}
}

// crashing runs, and has not been ready for that long.
func crashing(age time.Duration) Replica {
	r := running(age)
	r.Ready = false
	return r
}

func view(replicas int32, policy v1alpha1.BalancerPolicy, targets ...target) View {
	b := &v1alpha1.Balancer{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "default", Generation: 3}}
	b.Spec = v1alpha1.BalancerSpec{Replicas: &replicas, Policy: policy, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}}
	for _, t := range targets {
		b.Spec.Targets = append(b.Spec.Targets, t.Spec)
	}
	return View{Now: noon, Balancer: b, Targets: targets}
}

// desired is what a plan means for each target, with M for a deficit and O for an overflow.
func desired(p Plan) string { return write(p, func(s Share) int64 { return s.Desired }) }

// next is what it asks for now.
func next(p Plan) string { return write(p, func(s Share) int64 { return s.Next }) }

func write(p Plan, number func(Share) int64) string {
	if p.Stop != (Hold{}) {
		return p.Stop.Reason
	}
	var words []string
	for _, s := range p.Shares {
		words = append(words, fmt.Sprint(number(s)))
	}
	text := strings.Join(words, "/")
	if p.Deficit > 0 {
		text += fmt.Sprintf(" M%d", p.Deficit)
	}
	if p.Overflow > 0 {
		text += fmt.Sprintf(" O%d", p.Overflow)
	}
	return text
}

// status is that of a plan. Panics if the table of reasons does not explain it.
func status(v View, p Plan, o Outcome) v1alpha1.BalancerStatus {
	s := NewStatus(v, p, o)
	for _, c := range s.Conditions {
		if c.Status == metav1.ConditionUnknown && p.Stop == (Hold{}) {
			panic(fmt.Sprintf("no table explains %s of condition %s", c.Reason, c.Type))
		}
	}
	for _, t := range s.Targets {
		if t.Reason != "" && reason.Targets.Find(t.Reason).Meaning == "" {
			panic("no table explains " + t.Reason)
		}
	}
	return s
}

// after has a plan carried out, and its status remembered, some time later.
func after(v View, d time.Duration, change ...func(*View)) View {
	p := New(v)
	var o Outcome
	for i := range p.Shares {
		o = append(o, p.Shares[i].Next)
		if v.Targets[i].Known {
			v.Targets[i].Current = p.Shares[i].Next
		}
	}
	v.Balancer = v.Balancer.DeepCopy()
	v.Balancer.Status = status(v, p, o)
	v.Now = v.Now.Add(d)
	for _, c := range change {
		c(&v)
	}
	return v
}
