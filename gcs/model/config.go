package model

import (
	"time"

	"mobula/gcs"
)

// Config is what is simulated.
type Config struct {
	Nodes   int // numbered from 0
	Servers int // the first of them; the very first leads the tables
	Seed    uint64
	Row     gcs.NodeRecord // what each node says of itself, but for its home
	Costs   Costs
}

// Costs are what machines and the network between them take.
type Costs struct {
	Latency    time.Duration // of a message, and up to as much again by chance
	Sync       time.Duration // of a write, or several together, on a disk
	Handle     time.Duration // of a request on a server's processors
	Send       time.Duration // of a message to one more node, likewise
	Processors int           // how many a server has for its tables
	Bandwidth  float64       // of a server, bytes a second
}

// LAN are costs of machines of one data centre: 10 Gbit/s, a disk that syncs in half a millisecond, eight processors.
func LAN() Costs {
	return Costs{Latency: 100 * time.Microsecond, Sync: 500 * time.Microsecond, Handle: 150 * time.Microsecond, Send: 15 * time.Microsecond, Processors: 8, Bandwidth: 1.25e9}
}

// Row is about what a node says of itself.
func Row() gcs.NodeRecord {
	const at = "10.77.0.12:7710"
	return gcs.NodeRecord{
		Name: "node-12", Address: "/tmp/mobula-0/node-12/mobula.sock", PID: 12345, Started: 1_700_000_000_000_000_000, Version: "0.5.0-dev", Role: "data",
		Resources: map[string]float64{"CPU": 4, "memory": 8 << 30, "object_store_memory": 2 << 30}, Identity: "abcdefghijklmnopqrstuvwxyz",
		Labels:    map[string]string{"mobula.io/node-id": "12", "mobula.io/hostname": "node-12"},
		Addresses: map[string]string{"gossip": at, "nodes": at, "gcs": at, "routes": at},
	}
}

// What messages have besides rows, in bytes: NATS' line with the subjects, what encryption adds, and the JSON around the row.
const (
	askHead    = 215 // of a call
	answerHead = 145 // of its answer
	feedHead   = 140 // of a message of a feed
	rowHead    = 60  // of a row in it
	beatHead   = 56  // of a heartbeat that a node tells
	rowSpace   = 130 // of a row of the table of homes, with its head
)

// copies is how many servers keep each row.
func (c Config) copies() int {
	if c.Servers >= 3 {
		return 3
	}
	return 1
}
