// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	gardenerutils "github.com/gardener/gardener/pkg/utils/gardener"

	"github.com/evenkeel/evenkeel/test/localcluster"
)

// pod is a container that was started, with what became of it.
type pod struct {
	image       string
	command     []string
	annotations map[string]string
	process     *localcluster.Process
	port        int
	// groups is where it serves node groups, instead of the port that a pod has for itself.
	groups string
	mounts mounts
	grace  time.Duration
	// ended is how long it took to end after SIGTERM; killed that it did not, in its grace period.
	ended  time.Duration
	killed bool
}

// inside are the arguments of a container, where what it has of its own is replaced: its mounts and its ports.
func inside(ctx context.Context, d *appsv1.Deployment, given []string, p *pod) []string {
	spec := d.Spec.Template.Spec
	control, err := seedCluster.AccountKubeconfig(ctx, d.Namespace, spec.ServiceAccountName)
	Expect(err).NotTo(HaveOccurred())
	shoot := shootAccount(ctx, d.Namespace, accessSecret(spec))
	var arguments []string
	for _, argument := range given {
		switch name, value, _ := strings.Cut(argument, "="); {
		case value == "inClusterConfig":
			argument = name + "=" + control
		case value == gardenerutils.PathGenericKubeconfig:
			argument = name + "=" + shoot
		case name == "--port":
			argument = name + "=" + strconv.Itoa(p.port)
		case name == "--address":
			argument = name + "=127.0.0.1:" + strconv.Itoa(p.port)
		case name == "--autoscaler-listen-address":
			argument = name + "=" + p.groups
		}
		arguments = append(arguments, p.mounts.replace(argument))
	}
	return arguments
}

// accessSecret is the Secret with the token of the generic kubeconfig that is mounted.
func accessSecret(spec corev1.PodSpec) string {
	for _, volume := range spec.Volumes {
		if volume.Projected != nil && len(volume.Projected.Sources) == 2 {
			return volume.Projected.Sources[1].Secret.Name
		}
	}
	return ""
}

func (p *pod) runs(template corev1.PodTemplateSpec) bool {
	c := template.Spec.Containers[0]
	return p.image == c.Image && slices.Equal(p.command, c.Command) && maps.Equal(p.annotations, template.Annotations)
}

func (p *pod) alive(probe *corev1.Probe) func(context.Context) error {
	url := fmt.Sprintf("http://127.0.0.1:%d%s", p.port, probe.HTTPGet.Path)
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", url, response.Status)
		}
		return nil
	}
}

// end asks the process to end, and kills it after the grace period of its pod.
func (p *pod) end() {
	pid, begin := p.process.PID(), time.Now()
	if pid == 0 {
		return
	}
	_ = syscall.Kill(pid, syscall.SIGTERM)
	for p.process.Running() && time.Since(begin) < p.grace {
		<-time.After(20 * time.Millisecond)
	}
	p.killed = p.process.Running()
	p.ended = time.Since(begin)
	Expect(p.process.Kill()).To(Succeed())
}

// metrics is what the container serves on the port of its metrics.
func (p *pod) metrics(ctx context.Context) string {
	GinkgoHelper()
	request := must(http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/metrics", p.port), nil))
	response := must(http.DefaultClient.Do(request))
	defer response.Body.Close()
	return string(must(io.ReadAll(response.Body)))
}

// series are the names in it.
func (p *pod) series(ctx context.Context) []string {
	GinkgoHelper()
	var names []string
	for line := range strings.Lines(p.metrics(ctx)) {
		if end := strings.IndexAny(line, "{ "); end > 0 && line[0] != '#' {
			names = append(names, line[:end])
		}
	}
	return slices.Compact(names)
}
