// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Backup copies the data of etcd to a new folder. The API server is down in the meantime.
func (c *Cluster) Backup(ctx context.Context, folder string) error {
	if err := c.without([]string{APIServer, Etcd}, func() error { return copyFolder(folder, c.etcdDir()) }); err != nil {
		return fmt.Errorf("back up cluster %s: %w", c.options.Name, err)
	}
	return c.restart(ctx)
}

// Restore replaces the data of etcd by a Backup. As after a restore of a real cluster, all
// components are restarted. Processes of Run continue, with caches and watches of objects that no
// longer exist.
func (c *Cluster) Restore(ctx context.Context, folder string) error {
	components := slices.Clone(AllComponents)
	slices.Reverse(components)
	err := c.without(components, func() error {
		if err := os.RemoveAll(c.etcdDir()); err != nil {
			return err
		}
		return copyFolder(c.etcdDir(), folder)
	})
	if err != nil {
		return fmt.Errorf("restore cluster %s: %w", c.options.Name, err)
	}
	return c.restart(ctx)
}

func (c *Cluster) etcdDir() string { return filepath.Join(c.Dir(), "etcd") }

// without stops components, the first one first, and calls f.
func (c *Cluster) without(components []string, f func() error) error {
	for _, name := range components {
		if p := c.Process(name); p != nil {
			if err := p.Stop(); err != nil {
				return err
			}
		}
	}
	return f()
}

// restart starts the components that do not run.
func (c *Cluster) restart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	_, err := c.startComponents(ctx)
	return err
}

// copyFolder keeps the permissions, as etcd requires.
func copyFolder(to, from string) error {
	return errors.Join(os.CopyFS(to, os.DirFS(from)), os.Chmod(to, 0o700))
}
