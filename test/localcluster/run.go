// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Run starts an additional program as part of the cluster: its log is in the cluster's folder, and
// it ends with the cluster. If the same program with the same arguments runs already, it is kept;
// another program of that name is replaced.
func (c *Cluster) Run(name, binary string, args ...string) (*Process, error) {
	if slices.Contains(AllComponents, name) || !validName.MatchString(name) {
		return nil, fmt.Errorf("run %q: want a DNS label that is no component's name", name)
	}
	binary, err := filepath.Abs(binary)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", name, err)
	}
	hash, err := hashFile(binary)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", name, err)
	}
	wanted := record{Name: name, Binary: binary, Args: args, Hash: hash}
	p := c.Process(name)
	if p == nil {
		p = c.addProcess(wanted)
	}
	return p, p.become(wanted)
}

func (c *Cluster) addProcess(r record) *Process {
	p := c.newProcess(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes = append(c.processes, p)
	return p
}

func (p *Process) become(wanted record) error {
	p.mu.Lock()
	same := p.record.Binary == wanted.Binary && p.record.Hash == wanted.Hash && slices.Equal(p.record.Args, wanted.Args)
	p.mu.Unlock()
	if !same {
		if err := p.Stop(); err != nil {
			return err
		}
		p.mu.Lock()
		p.record = wanted
		p.mu.Unlock()
	}
	return p.Start()
}

func hashFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
