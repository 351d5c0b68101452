// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// autoscaled measures with a real cluster-autoscaler in the place of instant release.
func (b *bench) autoscaled(ctx context.Context, binary string, t *table) error {
	port, err := b.cluster.Port("node-groups")
	if err != nil {
		return err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	if err := b.manage(ctx, "--instant-release=false", "--autoscaler-listen-address="+address); err != nil {
		return err
	}
	config := filepath.Join(b.cluster.Dir(), "cloud-config.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "address: %q\ngrpc_timeout: 20s\n", address), 0o600); err != nil {
		return err
	}
	if _, err := b.cluster.Run("cluster-autoscaler", binary, "--kubeconfig="+b.cluster.Kubeconfig(),
		"--cloud-provider=externalgrpc", "--cloud-config="+config, "--leader-elect=false", "--address=127.0.0.1:0",
		"--scale-down-enabled=false", "--v=2"); err != nil {
		return err
	}
	w := b.instant(autoscaledPool)
	w.name, w.rounds = "cluster-autoscaler, release off", 3
	return b.measure(ctx, t, w)
}
