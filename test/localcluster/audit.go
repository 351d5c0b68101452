// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"
	"os"
	"path/filepath"
)

// AuditLog is the path of the audit log, if Options.Audit is set. When it gets long, its older
// parts are beside it.
func (c *Cluster) AuditLog() string { return filepath.Join(c.Dir(), "audit.log") }

// KeepAudit stops the cluster and moves all parts of its audit log to a folder that Reset does not
// remove.
func (c *Cluster) KeepAudit(folder string) error {
	if err := c.Stop(); err != nil {
		return err
	}
	logs, err := filepath.Glob(filepath.Join(c.Dir(), "audit*.log"))
	if err != nil {
		return err
	}
	for _, log := range logs {
		if err := os.Rename(log, filepath.Join(folder, c.options.Name+"-"+filepath.Base(log))); err != nil {
			return fmt.Errorf("keep audit log: %w", err)
		}
	}
	return nil
}
