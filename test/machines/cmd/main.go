// SPDX-License-Identifier: Apache-2.0

// Command machines runs the real machines of a local cluster, and runs in each of them, too.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	machineclient "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/test/localcluster"
	"github.com/evenkeel/evenkeel/test/machines"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "machines:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if filepath.Base(os.Args[0]) == machines.PlainRunc {
		return machines.RunPlainRunc(os.Args)
	}
	if len(args) == 2 {
		switch args[0] {
		case machines.Init:
			return machines.RunInit(args[1])
		case machines.Serve:
			return machines.RunServices(ctx, args[1])
		case machines.Janitor:
			return machines.RunJanitor(args[1])
		}
	}
	flags := flag.NewFlagSet("machines", flag.ContinueOnError)
	root := flags.String("root", "", "the repository; if empty, it is found")
	name := flags.String("cluster", localcluster.DefaultName, "the cluster whose machines run")
	port := flags.Int("port", 0, "answer /healthz on this port of loopback")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unknown arguments: %q", flags.Args())
	}
	if err := machines.Check(); err != nil {
		return err
	}
	return serve(ctx, *root, *name, *port)
}

// serve runs the machines of a cluster until ctx ends.
func serve(ctx context.Context, root, name string, port int) error {
	cluster, err := localcluster.Load(localcluster.Options{Root: root, Name: name})
	if err != nil {
		return err
	}
	o, err := optionsFor(cluster)
	if err != nil {
		return err
	}
	fleet := machines.New(o)
	if err := fleet.ServeConnect(ctx, filepath.Join(cluster.Dir(), localcluster.ConnectSocket)); err != nil {
		return err
	}
	health := &http.Server{Addr: fmt.Sprintf("127.0.0.1:%d", port), ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })}
	defer health.Close()
	go func() { _ = health.ListenAndServe() }()
	return fleet.Run(ctx)
}

func optionsFor(cluster *localcluster.Cluster) (machines.Options, error) {
	config := cluster.Config()
	server, err := url.Parse(config.Host)
	if err != nil {
		return machines.Options{}, err
	}
	apiServer, err := strconv.Atoi(server.Port())
	if err != nil {
		return machines.Options{}, fmt.Errorf("find the API server's port in %s: %w", config.Host, err)
	}
	image, err := os.ReadFile(filepath.Join(cluster.NodePrograms(), localcluster.IdleProgram))
	if err != nil {
		return machines.Options{}, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return machines.Options{}, err
	}
	mcm, err := machineclient.NewForConfig(config)
	if err != nil {
		return machines.Options{}, err
	}
	return machines.Options{
		Dir: filepath.Join(cluster.Dir(), "machines"), Programs: cluster.NodePrograms(), Cgroup: cluster.Cgroup(),
		Namespace: "default", Client: client, Machines: mcm.MachineV1alpha1(), APIServer: apiServer, CA: string(config.CAData), Image: image,
		Kubeconfig: func(user string, groups ...string) ([]byte, error) {
			path, err := cluster.KubeconfigFor(user, groups...)
			if err != nil {
				return nil, err
			}
			return os.ReadFile(path)
		},
	}, nil
}
