// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

const (
	// writers create pods that have no owner.
	writers = 16
	// tooLong is what a pod counts for that is not bound by then.
	tooLong = time.Minute
)

// burst has pods made at once and returns how long each took from when it was first seen until it
// was bound. At the first that is found unschedulable something may be done about it.
func (b *bench) burst(ctx context.Context, pods int, s start, w way) ([]time.Duration, error) {
	b.bursts++
	label := fmt.Sprintf("burst=%d", b.bursts)
	o := &observer{created: map[string]time.Time{}, bound: map[string]time.Time{}, pods: pods, react: s.react, ended: make(chan error, 2)}
	stop, err := b.watch(ctx, label, o)
	if err != nil {
		return nil, err
	}
	defer stop()
	create := b.createSet
	switch w.creator {
	case aJob:
		create = b.createJob
	case noOwner:
		create = b.createBare
	case aGroup:
		create = b.createGroup
	}
	if err := create(ctx, pods, s); err != nil {
		return nil, err
	}
	select {
	case err = <-o.ended:
	case <-time.After(tooLong):
		fmt.Fprintf(os.Stderr, "only %d of %d pods were bound after %v\n", len(o.took()), pods, tooLong)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	took := o.took()
	for range pods - len(took) {
		took = append(took, tooLong)
	}
	if w.keep {
		return took, nil
	}
	return took, b.clear(ctx, label, w.creator)
}

// watch has an observer see pods until it is stopped.
func (b *bench) watch(ctx context.Context, label string, o *observer) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	factory := informers.NewSharedInformerFactoryWithOptions(b.kube, 0, informers.WithTweakListOptions(func(l *metav1.ListOptions) { l.LabelSelector = label }))
	informer := factory.Core().V1().Pods().Informer()
	see := func(item any) {
		if pod, ok := item.(*corev1.Pod); ok {
			o.see(ctx, pod)
		}
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, is any) { see(is) }})
	factory.StartWithContext(ctx)
	cache.WaitFor(ctx, "", informer.HasSyncedChecker())
	return func() { cancel(); factory.Shutdown() }, err
}

// createBare makes pods that have no owner, several at the same time.
func (b *bench) createBare(ctx context.Context, pods int, s start) error {
	names := make(chan string, pods)
	for i := range pods {
		names <- fmt.Sprintf("burst-%d-%d", b.bursts, i)
	}
	close(names)
	failures := make(chan error, pods)
	var running sync.WaitGroup
	for range min(writers, pods) {
		running.Go(func() {
			for name := range names {
				_, err := b.kube.CoreV1().Pods(namespace).Create(ctx, workload(name, s.zone, s.priority, fmt.Sprint(b.bursts)), metav1.CreateOptions{})
				failures <- err
			}
		})
	}
	running.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			return err
		}
	}
	return nil
}

// createGroup makes a PodGroup whose pods start together, and a Job of it.
func (b *bench) createGroup(ctx context.Context, pods int, s start) error {
	group := &schedulingv1alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("burst-%d", b.bursts)}}
	group.Spec.SchedulingPolicy.Gang = &schedulingv1alpha2.GangSchedulingPolicy{MinCount: int32(pods)}
	if _, err := b.kube.SchedulingV1alpha2().PodGroups(namespace).Create(ctx, group, metav1.CreateOptions{}); err != nil {
		return err
	}
	return b.createJobOf(ctx, pods, s, &corev1.PodSchedulingGroup{PodGroupName: &group.Name})
}

// createSet makes a ReplicaSet, as whoever needs many pods does, and has kube-controller-manager
// make them.
func (b *bench) createSet(ctx context.Context, pods int, s start) error {
	name := fmt.Sprintf("burst-%d", b.bursts)
	pod := workload(name, s.zone, s.priority, fmt.Sprint(b.bursts))
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To(int32(pods)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"burst": pod.Labels["burst"]}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec},
		},
	}
	_, err := b.kube.AppsV1().ReplicaSets(namespace).Create(ctx, set, metav1.CreateOptions{})
	return err
}

// createJob makes a Job whose pods may all run at once.
func (b *bench) createJob(ctx context.Context, pods int, s start) error {
	return b.createJobOf(ctx, pods, s, nil)
}

func (b *bench) createJobOf(ctx context.Context, pods int, s start, group *corev1.PodSchedulingGroup) error {
	name := fmt.Sprintf("burst-%d", b.bursts)
	pod := workload(name, s.zone, s.priority, fmt.Sprint(b.bursts))
	pod.Spec.RestartPolicy, pod.Spec.SchedulingGroup = corev1.RestartPolicyNever, group
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			Parallelism: ptr.To(int32(pods)), Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec},
		},
	}
	_, err := b.kube.BatchV1().Jobs(namespace).Create(ctx, job, metav1.CreateOptions{})
	return err
}

// workload is a pod of one CPU.
func workload(name, zone, priority, burst string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"burst": burst, "zone": zone}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelTopologyZone: zone}, PriorityClassName: priority,
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
			}}},
		},
	}
}

// clear removes the pods of a burst, and first who would make them again, and waits until they are
// gone.
func (b *bench) clear(ctx context.Context, label string, c creator) error {
	pods, name := b.kube.CoreV1().Pods(namespace), fmt.Sprintf("burst-%d", b.bursts)
	var err error
	switch c {
	case aReplicaSet:
		err = b.kube.AppsV1().ReplicaSets(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	case aJob, aGroup:
		err = b.kube.BatchV1().Jobs(namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})
	}
	if err != nil {
		return err
	}
	if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}, metav1.ListOptions{LabelSelector: label}); err != nil {
		return err
	}
	return poll(ctx, func() (bool, error) {
		list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: label})
		return err == nil && len(list.Items) == 0, err
	})
}

// observer sees what becomes of pods.
type observer struct {
	pods  int
	react func(context.Context) error
	ended chan error

	mu             sync.Mutex
	created, bound map[string]time.Time
}

// see a pod as it is. Called for one at a time.
func (o *observer) see(ctx context.Context, pod *corev1.Pod) {
	if react := o.react; react != nil && unschedulable(pod) {
		o.react = nil
		go func() {
			if err := react(ctx); err != nil {
				o.ended <- err
			}
		}()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.created[pod.Name]; !known {
		o.created[pod.Name] = time.Now()
	}
	if _, known := o.bound[pod.Name]; known || pod.Spec.NodeName == "" {
		return
	}
	o.bound[pod.Name] = time.Now()
	if len(o.bound) == o.pods {
		o.ended <- nil
	}
}

func (o *observer) took() []time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []time.Duration
	for name, at := range o.bound {
		all = append(all, at.Sub(o.created[name]))
	}
	return all
}

func unschedulable(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return true
		}
	}
	return false
}

// poll looks again and again until it is true.
func poll(ctx context.Context, look func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if done, err := look(); err != nil || done {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
