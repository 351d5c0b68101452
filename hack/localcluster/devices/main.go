// SPDX-License-Identifier: Apache-2.0

// Devices answers what the scheduler's plugin for devices says. It reads problems from standard
// input, one JSON object a line.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// problem is a cluster with pods that wait. They come one after the other, each to the first of the
// nodes that it fits.
type problem struct {
	Nodes   []*corev1.Node
	Slices  []*resourceapi.ResourceSlice
	Classes []*resourceapi.DeviceClass
	Claims  []*resourceapi.ResourceClaim
	Pods    []*corev1.Pod
}

// answer is what becomes of one pod.
type answer struct {
	// Refused is why a node does not fit, by node; the others do.
	Refused map[string]string
	// Node is where the pod goes, if anywhere, and Devices are those that it gets there.
	Node    string
	Devices []string
}

func main() {
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	if err := answerAll(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func answerAll(ctx context.Context, in io.Reader, out io.Writer) error {
	decoder, buffered := json.NewDecoder(bufio.NewReader(in)), bufio.NewWriter(out)
	encoder := json.NewEncoder(buffered)
	for {
		var p problem
		if err := decoder.Decode(&p); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("read a problem: %w", err)
		}
		answers, err := p.solve(ctx)
		if err != nil {
			return err
		}
		if err := encoder.Encode(answers); err != nil {
			return fmt.Errorf("write an answer: %w", err)
		}
		if err := buffered.Flush(); err != nil {
			return fmt.Errorf("write an answer: %w", err)
		}
	}
}

func (p *problem) solve(ctx context.Context) ([]answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	manager, err := p.manager(ctx)
	if err != nil {
		return nil, err
	}
	handle, err := runtime.NewFramework(ctx, nil, nil, runtime.WithClientSet(fake.NewClientset()), runtime.WithSharedDRAManager(manager))
	if err != nil {
		return nil, fmt.Errorf("create the framework: %w", err)
	}
	made, err := dynamicresources.New(ctx, &config.DynamicResourcesArgs{}, handle, feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate))
	if err != nil {
		return nil, fmt.Errorf("create the plugin: %w", err)
	}
	var answers []answer
	for _, pod := range p.Pods {
		a, err := p.place(ctx, made.(*dynamicresources.DynamicResources), manager, pod)
		if err != nil {
			return nil, err
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// manager returns the scheduler's view of devices. Its informers are filled, and never run.
func (p *problem) manager(ctx context.Context) (*dynamicresources.DefaultDRAManager, error) {
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	slices := factory.Resource().V1().ResourceSlices()
	for _, s := range p.Slices {
		if err := slices.Informer().GetStore().Add(s); err != nil {
			return nil, err
		}
	}
	for _, c := range p.Classes {
		if err := factory.Resource().V1().DeviceClasses().Informer().GetStore().Add(c); err != nil {
			return nil, err
		}
	}
	tracked, err := tracker.StartTracker(ctx, tracker.Options{SliceInformer: slices})
	if err != nil {
		return nil, fmt.Errorf("track slices: %w", err)
	}
	claims := assumecache.NewAssumeCache(klog.FromContext(ctx), nil, "claim", "", nil)
	manager := dynamicresources.NewDRAManager(ctx, claims, tracked, factory)
	for _, c := range p.Claims {
		assumecache.AddTestObject(claims, c)
	}
	for _, c := range p.Classes {
		manager.DeviceClassResolver().(*extendedresourcecache.ExtendedResourceCache).OnAdd(c, true)
	}
	return manager, nil
}

// place asks about a pod on every node, and reserves devices where it goes.
func (p *problem) place(ctx context.Context, plugin *dynamicresources.DynamicResources, manager fwk.SharedDRAManager, pod *corev1.Pod) (answer, error) {
	a, state := answer{Refused: map[string]string{}}, framework.NewCycleState()
	_, status := plugin.PreFilter(ctx, state, pod, nil)
	for _, n := range p.Nodes {
		info := framework.NewNodeInfo()
		info.SetNode(n)
		if !status.IsSuccess() && !status.IsSkip() {
			a.Refused[n.Name] = status.Message()
			continue
		}
		if s := plugin.Filter(ctx, state, pod, info); !s.IsSuccess() {
			a.Refused[n.Name] = s.Message()
		} else if a.Node == "" {
			a.Node = n.Name
		}
	}
	if a.Node == "" || status.IsSkip() {
		return a, nil
	}
	if s := plugin.Reserve(ctx, state, pod, a.Node); !s.IsSuccess() {
		return a, fmt.Errorf("reserve devices for %s on %s: %s", pod.Name, a.Node, s.Message())
	}
	a.Devices = p.reserved(manager, pod)
	return a, nil
}

// reserved returns the devices that were chosen for a pod.
func (p *problem) reserved(manager fwk.SharedDRAManager, pod *corev1.Pod) (devices []string) {
	names := map[string]bool{}
	for _, c := range pod.Spec.ResourceClaims {
		if c.ResourceClaimName != nil {
			names[*c.ResourceClaimName] = true
		}
	}
	for _, c := range pod.Status.ResourceClaimStatuses {
		if c.ResourceClaimName != nil {
			names[*c.ResourceClaimName] = true
		}
	}
	for _, c := range p.Claims {
		if !names[c.Name] || c.Namespace != pod.Namespace {
			continue
		}
		if a := manager.ResourceClaims().GetPendingAllocation(c.UID); a != nil {
			for _, r := range a.Devices.Results {
				devices = append(devices, r.Driver+"/"+r.Pool+"/"+r.Device)
			}
		}
	}
	return devices
}
