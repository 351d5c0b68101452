// SPDX-License-Identifier: Apache-2.0

package capacitybuffer_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	. "github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer"
)

var suite *testing.T

func TestCapacityBuffer(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "CapacityBuffer")
}

const ns, shop = "default", "shop"

var now = time.Date(2026, 3, 2, 11, 0, 0, 0, time.UTC)

// buffer is one of our strategy with that spec, in YAML.
func buffer(name, spec string, change ...func(*Buffer)) Buffer {
	b := Buffer{Object: &v1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{
		Namespace: shop, Name: name, Generation: 2, CreationTimestamp: metav1.NewTime(now), Annotations: map[string]string{},
	}}}
	if err := yaml.UnmarshalStrict([]byte(spec), &b.Object.Spec); err != nil {
		panic(err)
	}
	b.Object.Spec.ProvisioningStrategy = ptr.To(v1beta1.StrategyReserved)
	for _, c := range change {
		c(&b)
	}
	return b
}

// podSpec is one container with those requests, as in "cpu=1,memory=1Gi", and whatever else is changed.
func podSpec(requests string, change ...func(*corev1.PodSpec)) corev1.PodSpec {
	s := corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Resources: corev1.ResourceRequirements{Requests: amounts(requests)}}}}
	for _, c := range change {
		c(&s)
	}
	return s
}

func amounts(text string) corev1.ResourceList {
	all := corev1.ResourceList{}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		name, amount, _ := strings.Cut(part, "=")
		all[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	return all
}

// template has the buffer's PodTemplate exist.
func template(s corev1.PodSpec) func(*Buffer) {
	return func(b *Buffer) {
		b.Template = &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web", Generation: 7}, Template: corev1.PodTemplateSpec{Spec: s}}
	}
}

// workload has the buffer's workload exist.
func workload(replicas int32, s corev1.PodSpec) func(*Buffer) {
	return func(b *Buffer) {
		b.Workload = &Workload{Replicas: replicas, Template: &corev1.PodTemplateSpec{Spec: s}}
	}
}

func inPool(name string) func(*Buffer) {
	return func(b *Buffer) { b.Object.Annotations[v1beta1.PoolAnnotation] = name }
}

// chunks is a buffer with a PodTemplate and a number of chunks.
func chunks(name string, n int, requests string, change ...func(*Buffer)) Buffer {
	return buffer(name, fmt.Sprintf("{podTemplateRef: {name: web}, replicas: %d}", n), append([]func(*Buffer){template(podSpec(requests))}, change...)...)
}

// site is a MachineDeployment with three machines for workload and bounds up to that, whose machines have that capacity.
func site(name, capacity string, limit int, change ...func(*Pool)) Pool {
	d := &machine.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{}, Annotations: map[string]string{
		machine.BoundsAnnotation: fmt.Sprintf("1:%d", limit),
	}}}
	d.Spec.Replicas = 3
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{corev1.LabelHostname: "n", "pool": name}}}
	n.Status.Allocatable = amounts(capacity + ",pods=110")
	p := Pool{Deployment: d, Node: n}
	for _, c := range change {
		c(&p)
	}
	return p
}

// holds gives a MachineDeployment machines in reserve, and the condition that the machine-taint controller then reports.
func holds(ready int, why string) func(*Pool) {
	return func(p *Pool) {
		p.Ready = ready
		status := mcm.ConditionFalse
		if why == reason.Complete {
			status = mcm.ConditionTrue
		}
		p.Deployment.Status.Conditions = []mcm.MachineDeploymentCondition{{Type: machine.ReserveReady, Status: status, Reason: why}}
	}
}

func annotated(key, value string) func(*Pool) {
	return func(p *Pool) { p.Deployment.Annotations[key] = value }
}

func quota(name, hard, used string, change ...func(*corev1.ResourceQuota)) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name}, Status: corev1.ResourceQuotaStatus{Hard: amounts(hard), Used: amounts(used)}}
	for _, c := range change {
		c(q)
	}
	return q
}

// outcome is what a decision comes to, as in "3", "2 of 3 by q", or the reason why it is not known.
func outcome(d Decision) string {
	switch {
	case d.Problem != nil:
		return d.Problem.Reason
	case len(d.Quotas) > 0:
		return fmt.Sprintf("%d of %d by %s", d.Chunks, d.Asked, strings.Join(d.Quotas, ","))
	}
	return fmt.Sprint(d.Chunks)
}

// requests are the Reserves to change, as in "a=2 b=-".
func requests(p Plan) string {
	var words []string
	for _, r := range p.Requests {
		if r.Machines == 0 {
			words = append(words, strings.TrimPrefix(r.Reserve.Name, "capacity-buffers.")+"=-")
			continue
		}
		words = append(words, fmt.Sprintf("%s=%d", r.Pool, r.Machines))
	}
	return strings.Join(words, " ")
}

// spread is what the Reserves of a view ask for, as in "a=2 b=1".
func spread(v View) string {
	var words []string
	for _, r := range slices.SortedFunc(slices.Values(v.Reserves), func(a, b *autoscaling.Reserve) int { return cmp.Compare(a.Name, b.Name) }) {
		words = append(words, fmt.Sprintf("%s=%d", r.Spec.Pools.Names[0], r.Spec.Replicas))
	}
	return strings.Join(words, " ")
}

// after is a view in which a plan has been carried out, and machines are as they are requested, but for MachineDeployments that are out.
func after(v View, out ...string) View {
	p := NewPlan(v)
	next := v
	next.Buffers, next.Pools, next.Reserves = nil, nil, slices.Clone(v.Reserves)
	for _, r := range p.Requests {
		next.Reserves = slices.DeleteFunc(next.Reserves, func(o *autoscaling.Reserve) bool { return r.Reserve == o })
		if r.Machines > 0 {
			next.Reserves = append(next.Reserves, NewReserve(ns, r))
		}
	}
	for _, b := range v.Buffers {
		i := slices.IndexFunc(p.Decisions, func(d Decision) bool { return d.Buffer == b.Object })
		b.Object = b.Object.DeepCopy()
		b.Object.Status = NewStatus(p.Decisions[i], now)
		next.Buffers = append(next.Buffers, b)
	}
	for _, pool := range v.Pools {
		pool.Deployment = pool.Deployment.DeepCopy()
		n := int32(0)
		for i, r := range next.Reserves {
			if r.Spec.Pools.Names[0] == pool.Deployment.Name {
				n = r.Spec.Replicas
				next.Reserves[i] = r.DeepCopy()
				next.Reserves[i].Status.Pools = []autoscaling.ReservePoolStatus{{Name: pool.Deployment.Name, Blocked: slices.Contains(out, pool.Deployment.Name)}}
			}
		}
		keep(&pool, int(n), slices.Contains(out, pool.Deployment.Name))
		next.Pools = append(next.Pools, pool)
	}
	return next
}

// keep does what the machine-taint controller does in the end.
func keep(p *Pool, n int, fails bool) {
	if fails && n > p.Ready {
		holds(p.Ready, reason.CannotBeMade)(p)
		return
	}
	holds(n, reason.Complete)(p)
}

// standing is the status of a buffer: chunks, and the reason of each condition, in alphabetical order of their types.
func standing(b *v1beta1.CapacityBuffer) string {
	words := []string{"-"}
	if b.Status.Replicas != nil {
		words[0] = fmt.Sprint(*b.Status.Replicas)
	}
	for _, kind := range []string{v1beta1.ConditionProvisioning, v1beta1.ConditionReady} {
		if c := meta.FindStatusCondition(b.Status.Conditions, kind); c != nil {
			words = append(words, fmt.Sprintf("%s=%s", kind, c.Reason))
		}
	}
	return strings.Join(words, " ")
}
