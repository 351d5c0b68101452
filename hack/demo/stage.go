// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

const (
	namespace = "default"
	interval  = 100 * time.Millisecond
	// limit bounds one wait. The longest, a rolling update, takes a minute.
	limit = 5 * time.Minute
)

// stage is the cluster that a story is told on, and what was measured so far.
type stage struct {
	cluster  *localcluster.Cluster
	bin      string
	kube     kubernetes.Interface
	machines versioned.Interface
	objects  dynamic.Interface
	live     bool // the output is a terminal, so a line may be overwritten
	measured table
}

func newStage(cluster *localcluster.Cluster) (*stage, error) {
	s := &stage{cluster: cluster, bin: filepath.Dir(cluster.Kubectl()), live: term.IsTerminal(int(os.Stdout.Fd()))}
	config := cluster.Config()
	config.QPS, config.Burst = 100, 200
	var err error
	if s.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if s.objects, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	s.machines, err = versioned.NewForConfig(config)
	return s, err
}

// apply applies a manifest as kubectl would, and prints the command.
func (s *stage) apply(ctx context.Context, manifest string) error {
	fmt.Println("$ kubectl apply -f", manifest)
	return s.cluster.Apply(ctx, manifest)
}

// patch changes a MachineDeployment, and prints the command.
func (s *stage) patch(ctx context.Context, name, merge string) error {
	fmt.Printf("$ kubectl patch machinedeployment %s --type merge -p '%s'\n", name, merge)
	_, err := s.machines.MachineV1alpha1().MachineDeployments(namespace).Patch(ctx, name, types.MergePatchType, []byte(merge), metav1.PatchOptions{})
	return err
}

// scale changes the replicas of a Deployment, and prints the command.
func (s *stage) scale(ctx context.Context, deployment string, replicas int) error {
	fmt.Printf("$ kubectl scale deployment %s --replicas=%d\n", deployment, replicas)
	_, err := s.kube.AppsV1().Deployments(namespace).Patch(ctx, deployment, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{})
	return err
}

// show runs kubectl as a person would.
func (s *stage) show(ctx context.Context, args ...string) error {
	fmt.Printf("\n$ kubectl %s\n", strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, s.cluster.Kubectl(), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.cluster.Kubeconfig(), "PATH="+s.bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// pollUntil polls until the condition holds, and shows the progress.
func (s *stage) pollUntil(ctx context.Context, look func(context.Context) (progress string, done bool, err error)) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	begin, last := time.Now(), ""
	for {
		text, done, err := look(ctx)
		switch {
		case ctx.Err() != nil:
			return 0, fmt.Errorf("wait, %s: %w", last, context.Cause(ctx))
		case err != nil:
			return 0, err
		}
		s.showProgress(time.Since(begin), text, text != last, done)
		if last = text; done {
			return time.Since(begin), nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(interval):
		}
	}
}

// showProgress overwrites its line on a terminal; otherwise, it prints a line for each change.
func (s *stage) showProgress(since time.Duration, text string, changed, done bool) {
	line := fmt.Sprintf("%6.1fs  %s", since.Seconds(), text)
	switch {
	case s.live && done:
		fmt.Printf("\r\033[K%s\n", line)
	case s.live:
		fmt.Printf("\r\033[K%s", line)
	case changed || done:
		fmt.Println(line)
	}
}
