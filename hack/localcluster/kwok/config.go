// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"

	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
)

//go:embed node-ready.yaml
var nodeReady string

const (
	// identity holds the node leases. It is constant: the next process takes its predecessor's
	// leases over.
	identity = "evenkeel-kwok"
	// workers of each kind; kwok's own default.
	workers = 4
	nodeIP  = "127.0.0.1"
)

func newConfig(o options) (controllers.Config, error) {
	conf := controllers.Config{
		Clock:                     clock.RealClock{},
		ID:                        identity,
		ManageAllNodes:            true, // of those that the client shows
		CIDR:                      o.cidr,
		NodeIP:                    nodeIP,
		NodeLeaseDurationSeconds:  o.leaseSeconds,
		NodeLeaseParallelism:      workers,
		NodePlayStageParallelism:  workers,
		PodPlayStageParallelism:   workers,
		PodsOnNodeSyncParallelism: workers,
	}
	if err := setClients(&conf, o.kubeconfig); err != nil {
		return conf, err
	}
	// kwok would also complete the pods of Jobs as soon as they run, so that none ever uses a machine.
	stages, err := parseStages(nodeReady, podfast.DefaultPodReady, podfast.DefaultPodDelete)
	conf.LocalStages = stages
	return conf, err
}

func setClients(conf *controllers.Config, kubeconfig string) error {
	rest, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	rest.QPS = -1 // one process stands for any number of kubelets, each of which would have its own limit
	typed, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	conf.TypedClient = onlyFakeNodes{typed}
	conf.RESTClient = typed.RESTClient()
	return nil
}

func parseStages(documents ...string) (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	stages := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, document := range documents {
		stage, err := config.UnmarshalWithType[*internalversion.Stage](document)
		if err != nil {
			return nil, fmt.Errorf("parse stage: %w", err)
		}
		stages[stage.Spec.ResourceRef] = append(stages[stage.Spec.ResourceRef], stage)
	}
	return stages, nil
}
