//go:build !without_vcenter

package vcsim

import (
	"io"
	"net"
)

// listen takes calls at an address.
func (v *VCenter) listen(address string) {
	v.t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(v.t.Context(), "tcp", address)
	if err != nil {
		v.t.Fatal(err)
	}
	v.mu.Lock()
	v.listener, v.Host = listener, listener.Addr().String()
	v.mu.Unlock()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go v.carry(conn)
		}
	}()
}

// carry carries bytes between a caller and the simulator.
func (v *VCenter) carry(conn net.Conn) {
	defer conn.Close()
	var dialer net.Dialer
	behind, err := dialer.DialContext(v.t.Context(), "tcp", v.target)
	if err != nil {
		return
	}
	defer behind.Close()
	v.mu.Lock()
	if v.listener == nil {
		v.mu.Unlock()
		return
	}
	v.lines[conn], v.lines[behind] = true, true
	v.mu.Unlock()
	go func() {
		_, _ = io.Copy(behind, conn)
		behind.Close()
	}()
	_, _ = io.Copy(conn, behind)
	v.mu.Lock()
	delete(v.lines, conn)
	delete(v.lines, behind)
	v.mu.Unlock()
}

// Down makes the vCenter unreachable: connections break, and new ones are refused. The vCenter continues the tasks that it runs.
func (v *VCenter) Down() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.listener != nil {
		v.listener.Close()
		v.listener = nil
	}
	for line := range v.lines {
		line.Close()
	}
}

// Up makes it reachable again.
func (v *VCenter) Up() {
	v.t.Helper()
	v.listen(v.Host)
}
