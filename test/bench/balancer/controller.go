// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/evenkeel/evenkeel/test/bench/internal/sleep"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

// controller is the process under test: the Balancer's controller and nothing else.
type controller struct {
	process *localcluster.Process
	metrics string
}

func startController(ctx context.Context, cluster *localcluster.Cluster) (*controller, error) {
	const name = "balancer"
	process, err := cluster.RunProgram(ctx, localcluster.Program{
		Name: name, Package: "./cmd/" + localcluster.Workloads,
		Flags: []string{"--controllers=balancer", "--kube-api-qps=1000", "--kube-api-burst=1000"},
	})
	if err != nil {
		return nil, err
	}
	port, err := cluster.Port(name)
	return &controller{process, fmt.Sprintf("http://127.0.0.1:%d/metrics", port)}, err
}

// writes is how often it has written, whatever came of it.
func (c *controller) writes(ctx context.Context) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.metrics, nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	all := 0
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if series, value, _ := strings.Cut(lines.Text(), "} "); strings.HasPrefix(series, "evenkeel_balancer_writes_total{") {
			n, err := strconv.Atoi(value)
			if err != nil {
				return 0, fmt.Errorf("read metrics: %w", err)
			}
			all += n
		}
	}
	return all, nil
}

// quiet waits until it has not written for five seconds.
func (c *controller) quiet(ctx context.Context) error {
	for last := -1; ; {
		n, err := c.writes(ctx)
		if err != nil || n == last {
			return err
		}
		last = n
		if err := sleep.WithContext(ctx, 5*time.Second); err != nil {
			return err
		}
	}
}

// memory is what the process holds now, and held at most, in MiB.
func (c *controller) memory() (resident, peak float64, err error) {
	usage, err := localcluster.ReadUsage(c.process.PID())
	return usage.Resident, usage.Peak, err
}
