// SPDX-License-Identifier: Apache-2.0

// Package nodegroup measures how long cluster-autoscaler waits for the node group server, per call
// and per loop, at 1000 Nodes in 30 groups on a real API server, beside the patch alone.
package nodegroup

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

const namespace = "default"

// New defines the flags of the benchmark and returns the benchmark.
func New(flags *flag.FlagSet) func(context.Context) error {
	nodes := flags.Int("nodes", 1000, "number of Nodes")
	groups := flags.Int("groups", 30, "number of node groups")
	return func(ctx context.Context) error { return run(ctx, *nodes, *groups) }
}

func run(ctx context.Context, nodes, groups int) (err error) {
	cluster, err := localcluster.Start(ctx, localcluster.Options{
		Name: "bench-nodegroup", Components: localcluster.APIServerOnly, UnsafeNoFsync: true,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Reset()) }()
	if err := cluster.Apply(ctx, "kubernetes/crds"); err != nil {
		return err
	}
	config := rest.CopyConfig(cluster.Config())
	config.QPS = -1
	f := fleet{ours: versioned.NewForConfigOrDie(config).MachineV1alpha1(), core: kubernetes.NewForConfigOrDie(config), nodes: nodes, groups: groups}
	if err := f.create(ctx); err != nil {
		return err
	}
	return f.measure(ctx, config)
}

// measure runs a server and calls it.
func (f fleet) measure(ctx context.Context, config *rest.Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var reads atomic.Int64
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, counted(config, &reads), listener) }()
	connection, err := grpc.NewClient("passthrough:///"+listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	c := caller{pb.NewCloudProviderClient(connection), f}
	if err := c.ready(ctx); err != nil {
		return err
	}
	before := reads.Load()
	if err := c.reading(ctx); err != nil {
		return err
	}
	if n := reads.Load() - before; n != 0 {
		return fmt.Errorf("%d reads of the API server by calls that only read", n)
	}
	fmt.Println("reads of the API server meanwhile: 0")
	if err := c.writing(ctx); err != nil {
		return err
	}
	cancel()
	return <-ended
}

// serve runs a server of node groups until ctx ends.
func serve(ctx context.Context, config *rest.Config, listener net.Listener) error {
	ours, core := versioned.NewForConfigOrDie(config), kubernetes.NewForConfigOrDie(config)
	machines, nodes := stores.New(ours, namespace), target.New(core, nil)
	server, err := nodegroup.New(nodegroup.Clients{Machines: ours.MachineV1alpha1()},
		nodegroup.Informers{Machines: machines, Target: nodes}, nodegroup.Options{Namespace: namespace})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	machines.Start(ctx)
	defer machines.Shutdown()
	nodes.Start(ctx)
	defer nodes.Shutdown()
	defer cancel()
	return server.Run(ctx, listener, nil)
}

// counted counts the reads of a client, but for watches and the server's own probe, which asks for
// one object.
func counted(config *rest.Config, reads *atomic.Int64) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			query := r.URL.Query()
			if r.Method == http.MethodGet && query.Get("watch") == "" && query.Get("limit") != "1" {
				reads.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	return config
}

type tripper func(*http.Request) (*http.Response, error)

func (t tripper) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// ready waits until everything that was created is seen.
func (c caller) ready(ctx context.Context) error {
	for {
		groups, err := c.NodeGroups(ctx, &pb.NodeGroupsRequest{})
		all := 0
		for _, g := range groups.GetNodeGroups() {
			listed, err := c.NodeGroupNodes(ctx, &pb.NodeGroupNodesRequest{Id: g.Id})
			if err != nil {
				return err
			}
			for _, i := range listed.Instances {
				if !strings.HasPrefix(i.Id, "requested://") {
					all++
				}
			}
		}
		if err == nil && all == c.nodes {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
