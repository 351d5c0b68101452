// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// processes are the names of what runs.
var processes = []string{"machine-controller-manager", "evenkeel-balancer", "evenkeel-federatedhpa"}

// ofEach are the names of objects that each process has one of.
func ofEach(kind string) (all []string) {
	for _, name := range processes {
		all = append(all, kind+" kube-system/"+name)
	}
	return all
}

// allOn switches on all that values below are about.
const allOn = "balancer.enabled=true,federation.hub.enabled=true,nodeGroups.tlsSecret=groups,metrics.tlsSecret=metrics,metrics.serviceMonitor.enabled=true," +
	"metrics.prometheusRule.enabled=true,metrics.dashboard.enabled=true"

var (
	managerPod  = []string{"Deployment kube-system/machine-controller-manager"}
	balancerPod = []string{"Deployment kube-system/evenkeel-balancer"}
	hubPod      = []string{"Deployment kube-system/evenkeel-federatedhpa"}
	allPods     = ofEach("Deployment")
)

var _ = DescribeTable("A value is used in each object that it is about, and nowhere before it is set",
	func(ctx context.Context, value, text string, names []string) {
		before, after := objects(template(ctx, "--set", allOn)), objects(template(ctx, "--set", allOn, "--set-json", value))
		for _, name := range names {
			if o, was := before[name]; was {
				Expect(fmt.Sprint(o.Object)).NotTo(ContainSubstring(text), name)
			}
			Expect(after).To(HaveKey(name))
			Expect(fmt.Sprint(after[name].Object)).To(ContainSubstring(text), name)
		}
	},
	Entry(nil, `image.repository="registry.example/manager"`, "image:registry.example/manager:", managerPod),
	Entry(nil, `image.tag="v7"`, "machine-controller-manager:v7 ", managerPod),
	Entry(nil, `workloadsImage.repository="registry.example/workloads"`, "image:registry.example/workloads:", append(balancerPod, hubPod...)),
	Entry(nil, `workloadsImage.tag="v8"`, "evenkeel-workloads:v8 ", append(balancerPod, hubPod...)),
	Entry(nil, `image.pullPolicy="Always"`, "imagePullPolicy:Always", allPods),
	Entry(nil, `podAnnotations={"example.com/a":"b"}`, "annotations:map[example.com/a:b]", allPods),
	Entry(nil, `nodeSelector={"kind":"system"}`, "nodeSelector:map[kind:system]", allPods),
	Entry(nil, `tolerations=[{"key":"system"}]`, "tolerations:[map[key:system]]", allPods),
	Entry(nil, `affinity={"podAffinity":{}}`, "affinity:map[podAffinity:map[]]", allPods),
	Entry(nil, `priorityClassName="system-node-critical"`, "priorityClassName:system-node-critical", allPods),
	Entry(nil, `machines.namespace="shoot--a"`, "--namespace=shoot--a", managerPod),
	Entry(nil, `manager.replicas=5`, "replicas:5", managerPod),
	Entry(nil, `balancer.replicas=5`, "replicas:5", balancerPod),
	Entry(nil, `federation.hub.replicas=5`, "replicas:5", hubPod),
	Entry(nil, `manager.extraArgs=["--v=7"]`, "--v=7", managerPod),
	Entry(nil, `balancer.extraArgs=["--v=7"]`, "--v=7", balancerPod),
	Entry(nil, `federation.hub.extraArgs=["--v=7"]`, "--v=7", hubPod),
	Entry(nil, `manager.resources={"limits":{"memory":"7Gi"}}`, "limits:map[memory:7Gi]", managerPod),
	Entry(nil, `balancer.resources={"limits":{"memory":"7Gi"}}`, "limits:map[memory:7Gi]", balancerPod),
	Entry(nil, `federation.hub.resources={"limits":{"memory":"7Gi"}}`, "limits:map[memory:7Gi]", hubPod),
	Entry(nil, `manager.sidecars=[{"name":"cloud","image":"cloud:v1"}]`, "map[image:cloud:v1 name:cloud]", managerPod),
	Entry(nil, `manager.sidecarVolumes=[{"name":"cloud"}]`, "map[name:cloud]", managerPod),
	Entry(nil, `manager.target.kubeconfigSecret="target"`, "--target-kubeconfig=/etc/evenkeel/target/kubeconfig", managerPod),
	Entry(nil, `nodeGroups.port=8099`, "--autoscaler-listen-address=0.0.0.0:8099", managerPod),
	Entry(nil, `nodeGroups.port=8099`, "port:8099", []string{"Service kube-system/machine-controller-manager"}),
	Entry(nil, `nodeGroups.from=[{"podSelector":{"matchLabels":{"app":"scaler"}}}]`, "from:[map[podSelector:map[matchLabels:map[app:scaler]]]]",
		[]string{"NetworkPolicy kube-system/machine-controller-manager"}),
	Entry(nil, `federation.hub.clustersNamespace="members"`, "--federation-clusters-namespace=members", hubPod),
	Entry(nil, `federation.hub.clustersNamespace="members"`, "name:members", []string{"Namespace /members"}),
	Entry(nil, `federation.hub.registry="clusterprofiles"`, "--federation-registry=clusterprofiles", hubPod),
	Entry(nil, `metrics.port=9999`, "--secure-metrics-address=0.0.0.0:9999", allPods),
	Entry(nil, `metrics.port=9999`, "port:9999", ofEach("Service")),
	Entry(nil, `metrics.serviceMonitor.interval="7s"`, "interval:7s", ofEach("ServiceMonitor")),
	Entry(nil, `metrics.serviceMonitor.labels={"release":"prometheus"}`, "release:prometheus", ofEach("ServiceMonitor")),
	Entry(nil, `metrics.prometheusRule.labels={"release":"prometheus"}`, "release:prometheus", []string{rule}),
	Entry(nil, `metrics.dashboard.labels={"grafana":"yes"}`, "grafana:yes", []string{board}),
	Entry(nil, `networkPolicy.metricsFrom=[{"podSelector":{"matchLabels":{"app":"prometheus"}}}]`, "app:prometheus", ofEach("NetworkPolicy")),
	Entry(nil, `networkPolicy.dnsTo=[{"ipBlock":{"cidr":"10.0.0.10/32"}}]`, "cidr:10.0.0.10/32", ofEach("NetworkPolicy")),
	Entry(nil, `networkPolicy.apiServerPorts=[9443]`, "port:9443", ofEach("NetworkPolicy")),
	Entry(nil, `networkPolicy.apiServerCIDRs=["10.0.0.0/8"]`, "cidr:10.0.0.0/8", ofEach("NetworkPolicy")),
)

var _ = DescribeTable("A value leaves out what it switches off",
	func(ctx context.Context, value string, gone []string) {
		all, some := objects(template(ctx, "--set", allOn)), objects(template(ctx, "--set", allOn+","+value))
		var missing []string
		for name := range all {
			if some[name] == nil {
				missing = append(missing, name)
			}
		}
		Expect(missing).To(ConsistOf(gone))
	},
	Entry(nil, "podDisruptionBudget.enabled=false", ofEach("PodDisruptionBudget")),
	Entry(nil, "networkPolicy.enabled=false", ofEach("NetworkPolicy")),
	Entry(nil, "federation.hub.createNamespace=false", []string{"Namespace /evenkeel-clusters"}),
	Entry(nil, "metrics.serviceMonitor.enabled=false", ofEach("ServiceMonitor")),
)
