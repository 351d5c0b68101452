// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const cgroups = "/sys/fs/cgroup"

// hierarchies returns the folders in which a cgroup has a folder: one with cgroup v2, else one for each
// controller.
func hierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(cgroups, "cgroup.controllers")); err == nil {
		return []string{cgroups}, nil
	}
	found, err := filepath.Glob(filepath.Join(cgroups, "*", "cgroup.procs"))
	if err != nil || len(found) == 0 {
		return nil, errors.New("no cgroups in " + cgroups)
	}
	for i := range found {
		found[i] = filepath.Dir(found[i])
	}
	return found, nil
}

// makeEverywhere creates a cgroup in all hierarchies, if there is none.
func makeEverywhere(path string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range all {
		if err := makeCgroup(root, path); err != nil {
			return fmt.Errorf("make cgroup: %w", err)
		}
	}
	return nil
}

// joinCgroup moves a process into a cgroup, which it creates if there is none.
func joinCgroup(path string, pid int) error {
	if err := makeEverywhere(path); err != nil {
		return err
	}
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range all {
		if root == cgroups {
			path = filepath.Join(path, "init") // a cgroup with controllers for others has no processes
			if err := os.MkdirAll(filepath.Join(root, path), 0o755); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(root, path, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
			return fmt.Errorf("join cgroup: %w", err)
		}
	}
	return nil
}

// makeCgroup makes each folder of a path. With cgroup v2, it has all controllers of its parent; with v1, a cpuset
// has those of it.
func makeCgroup(root, path string) error {
	at := root
	for _, name := range strings.Split(strings.Trim(path, "/"), "/") {
		if root == cgroups {
			if err := passControllers(at); err != nil {
				return err
			}
		}
		parent := at
		at = filepath.Join(at, name)
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		for _, set := range []string{"cpuset.mems", "cpuset.cpus"} {
			if value, err := os.ReadFile(filepath.Join(parent, set)); err == nil && root != cgroups {
				if err := os.WriteFile(filepath.Join(at, set), value, 0o644); err != nil {
					return err
				}
			}
		}
	}
	if root == cgroups {
		return passControllers(at)
	}
	return nil
}

func passControllers(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(string(raw)) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+name), 0o644); err != nil {
			return fmt.Errorf("pass controller %s: %w", name, err)
		}
	}
	return nil
}

// removeCgroup removes a cgroup with those in it, once their processes have ended.
func removeCgroup(path string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	var errs []error
	for _, root := range all {
		errs = append(errs, removeTree(filepath.Join(root, path)))
	}
	return errors.Join(errs...)
}

// lastProcess is how long the processes of a machine may take to be gone after it has been killed.
const lastProcess = 10 * time.Second

func removeTree(dir string) error {
	deadline := time.Now().Add(lastProcess)
	for {
		err := removeOnce(dir)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// removeOnce removes the folders of a tree: the files in them are no files, and go with them.
func removeOnce(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeOnce(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
