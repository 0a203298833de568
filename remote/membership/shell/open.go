package shell

import (
	"log"

	"github.com/hashicorp/memberlist"

	"mobula/internal/errs"
	"mobula/remote/membership"
)

// open starts memberlist.
func (m *Membership) open() (err error) {
	if m.keys, err = newKeys(m.cfg.Keys); err != nil {
		return errs.New(errs.CodeInvalid, "membership: %v", err)
	}
	if m.meta, err = m.cfg.Core.Self.Meta(); err != nil {
		return err
	}
	logger := newLogs(m.cfg.Logger, func() { m.refused.Add(1) }, m.noticeRefutation).logger()
	conf := memberlist.DefaultLANConfig()
	conf.AdvertisePort, conf.BindPort = 0, 0
	if err := m.connect(conf, logger); err != nil {
		return err
	}
	conf.Name, conf.Label, conf.Logger = membership.Name(m.self), m.cfg.Cluster, logger
	if m.keys != nil {
		conf.Keyring = m.keys.ring
	}
	conf.EnableCompression = false // packets are small, and what they hold is counted before compression
	conf.ProbeInterval, conf.ProbeTimeout = m.cfg.Timing.Probe, m.cfg.Timing.ProbeTimeout
	conf.GossipInterval, conf.PushPullInterval = m.cfg.Timing.Gossip, m.cfg.Timing.PushPull
	conf.DelegateProtocolVersion, conf.DelegateProtocolMin, conf.DelegateProtocolMax = protocol, protocol, protocol
	d := delegate{m}
	conf.Delegate, conf.Events, conf.Conflict, conf.Alive = d, d, d, d
	list, err := memberlist.Create(conf)
	if err != nil {
		_ = m.net.Shutdown()
		return errs.New(errs.CodeComponentFailed, "membership: %v", err)
	}
	m.list = list
	m.cfg.Core.Self.Addresses.Gossip = list.LocalNode().Address()
	return nil
}

// connect gives memberlist what it gossips over.
func (m *Membership) connect(conf *memberlist.Config, logger *log.Logger) error {
	m.net = &transport{NodeAwareTransport: m.cfg.Transport, dialer: m.cfg.Dialer, life: m.life}
	conf.Transport = m.net
	if m.cfg.Transport != nil {
		return nil
	}
	ip, port, err := split(m.cfg.Bind)
	if err != nil {
		return err
	}
	if m.cfg.Advertise != "" {
		ip, port, err := split(m.cfg.Advertise)
		if err != nil {
			return err
		}
		conf.AdvertiseAddr, conf.AdvertisePort = ip.String(), port
	}
	t, err := listen(ip.String(), port, logger)
	if err != nil {
		return errs.New(errs.CodeComponentFailed, "membership: gossip on %s, UDP and TCP: %v", m.cfg.Bind, err)
	}
	m.net.NodeAwareTransport, conf.BindPort = t, t.GetAutoBindPort()
	if conf.AdvertisePort == 0 {
		conf.AdvertisePort = conf.BindPort
	}
	return nil
}
