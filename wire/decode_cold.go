package wire

import "mobula/internal/ids"

// readOther decodes the store's messages, the small ones to a worker, and the cold ones.
func (d *Decoder) readOther(k Kind, b []byte) Msg {
	switch k {
	case KindHello:
		return d.hello(b)
	case KindWelcome:
		return d.welcome(b)
	case KindBye:
		m := new(Bye)
		c := cursor{b: b, d: d}
		for c.next() {
			if c.tag == 1<<3|wtBytes {
				m.Err = d.err(c.bytes())
			} else {
				c.skip()
			}
		}
		return m
	case KindCreate:
		return d.create(b)
	case KindCreated:
		return d.created(b)
	case KindAbort:
		m := new(Abort)
		d.objectAndNumber(b, &m.ID, &m.Attempt)
		return m
	case KindUnpin:
		m := new(Unpin)
		d.objectAndNumber(b, &m.ID, &m.N)
		return m
	case KindMapFile:
		m := new(MapFile)
		c := cursor{b: b, d: d}
		for c.next() {
			switch c.tag {
			case 1<<3 | wtVarint:
				m.File = c.uint32()
			case 2<<3 | wtVarint:
				m.Size = c.varint()
			case 3<<3 | wtBytes:
				m.Path = string(c.bytes())
			default:
				c.skip()
			}
		}
		return m
	case KindUnmapFile:
		m := new(UnmapFile)
		c := cursor{b: b, d: d}
		for c.next() {
			switch c.tag {
			case 1<<3 | wtVarint:
				m.File = c.uint32()
			default:
				c.skip()
			}
		}
		return m
	case KindCancelTask:
		m := new(CancelTask)
		d.taskAndFlags(b, &m.Task, &m.Abandon)
		return m
	case KindStopActor:
		m := new(StopActor)
		d.taskAndFlags(b, (*ids.TaskID)(&m.Actor), &m.Restarts, &m.Close, &m.Drain)
		return m
	case KindActorStopped:
		m := new(ActorStopped)
		c := cursor{b: b, d: d}
		for c.next() {
			switch c.tag {
			case 1<<3 | wtBytes:
				c.task((*ids.TaskID)(&m.Actor))
			case 2<<3 | wtBytes:
				m.Err = d.err(c.bytes())
			default:
				c.skip()
			}
		}
		return m
	case KindWatchActor:
		m := new(WatchActor)
		d.taskAndFlags(b, (*ids.TaskID)(&m.Actor), &m.Done)
		return m
	case KindActorNews:
		return d.actorNews(b)
	case KindResume:
		m := new(Resume)
		d.taskAndFlags(b, &m.Task)
		return m
	case KindStreamAck:
		m := new(StreamAck)
		c := cursor{b: b, d: d}
		for c.next() {
			switch c.tag {
			case 1<<3 | wtBytes:
				c.task(&m.Task)
			case 2<<3 | wtVarint:
				m.Consumed = c.uint32()
			default:
				c.skip()
			}
		}
		return m
	case KindUnneeded:
		m := new(Unneeded)
		c := cursor{b: b, d: d}
		for c.next() {
			switch c.tag {
			case 1<<3 | wtBytes:
				c.task(&m.Task)
			case 2<<3 | wtBytes:
				m.Numbers = c.numbers(m.Numbers)
			default:
				c.skip()
			}
		}
		return m
	case KindBlocked:
		m := new(Blocked)
		m.Returned, m.WaitsFor = d.taskLease(b, &m.Task, &m.Lease, true)
		return m
	case KindUnblocked:
		m := new(Unblocked)
		d.taskLease(b, &m.Task, &m.Lease, false)
		return m
	case KindStats:
		m := new(Stats)
		c := cursor{b: b, d: d}
		for c.next() {
			switch c.tag {
			case 1<<3 | wtVarint:
				m.HeapBytes = c.varint()
			case 2<<3 | wtVarint:
				m.Goroutines = c.varint()
			case 3<<3 | wtVarint:
				m.Running = c.uint32()
			case 4<<3 | wtVarint:
				m.Worn = c.bool()
			default:
				c.skip()
			}
		}
		return m
	case KindRequest:
		return d.request(b)
	case KindReply:
		return d.reply(b)
	case KindResync:
		m := new(Resync)
		c := cursor{b: b, d: d}
		for c.next() {
			switch c.tag {
			case 1<<3 | wtVarint:
				m.Component = Component(c.enum(uint8(ComponentStore)))
			case 2<<3 | wtVarint:
				m.Epoch = c.varint()
			default:
				c.skip()
			}
		}
		return m
	case KindHoldings:
		return d.holdings(b)
	case KindCredit:
		m := new(Credit)
		c := cursor{b: b, d: d}
		for c.next() {
			if c.tag == 1<<3|wtVarint {
				m.Bytes = c.sint()
			} else {
				c.skip()
			}
		}
		return m
	case KindDrain:
		d.empty(b)
		return new(Drain)
	case KindCollect:
		d.empty(b)
		return new(Collect)
	}
	d.malformed(b, "kind %d has no decoder", k)
	return nil
}

func (d *Decoder) empty(b []byte) {
	c := cursor{b: b, d: d}
	for c.next() {
		c.skip()
	}
}

func (d *Decoder) objectAndNumber(b []byte, o *ids.ObjectID, n *uint32) {
	c := cursor{b: b, d: d}
	for c.next() {
		switch c.tag {
		case 1<<3 | wtBytes:
			c.object(o)
		case 2<<3 | wtVarint:
			*n = c.uint32()
		default:
			c.skip()
		}
	}
}

// taskLease reads a task, a lease and, where the message has one, a list of tasks.
func (d *Decoder) taskLease(b []byte, t *ids.TaskID, l *ids.LeaseID, list bool) (tasks []ids.TaskID, objects []ids.ObjectID) {
	c := cursor{b: b, d: d}
	for c.next() {
		switch {
		case c.tag == 1<<3|wtBytes:
			c.task(t)
		case c.tag == 2<<3|wtVarint:
			*l = ids.LeaseID(c.varint())
		case c.tag == 3<<3|wtBytes && list:
			c.task(elem(&c, &tasks))
		case c.tag == 4<<3|wtBytes && list:
			objects = c.objects(objects)
		default:
			c.skip()
		}
	}
	return tasks, objects
}

func (d *Decoder) create(b []byte) Msg {
	m := new(Create)
	c := cursor{b: b, d: d}
	for c.next() {
		switch c.tag {
		case 1<<3 | wtVarint:
			m.Req = c.varint()
		case 2<<3 | wtBytes:
			c.object(&m.ID)
		case 3<<3 | wtVarint:
			m.Attempt = c.uint32()
		case 4<<3 | wtVarint:
			m.Size = c.varint()
		case 5<<3 | wtBytes:
			c.task(&m.Task)
		default:
			c.skip()
		}
	}
	return m
}

func (d *Decoder) created(b []byte) Msg {
	m := new(Created)
	c := cursor{b: b, d: d}
	for c.next() {
		switch c.tag {
		case 1<<3 | wtVarint:
			m.Req = c.varint()
		case 2<<3 | wtBytes:
			c.object(&m.ID)
		case 3<<3 | wtBytes:
			d.extent(c.bytes(), &m.Extent)
		case 4<<3 | wtVarint:
			m.Exists = c.bool()
		case 5<<3 | wtBytes:
			m.Err = d.err(c.bytes())
		default:
			c.skip()
		}
	}
	return m
}

func (d *Decoder) hello(b []byte) Msg {
	m := new(Hello)
	c := cursor{b: b, d: d}
	for c.next() {
		switch c.tag {
		case 1<<3 | wtVarint:
			m.Version = c.uint32()
		case 2<<3 | wtVarint:
			m.MinVersion = c.uint32()
		case 3<<3 | wtVarint:
			m.Role = Role(c.enum(uint8(RoleTool)))
		case 4<<3 | wtVarint:
			m.PID = c.sint32()
		case 5<<3 | wtVarint:
			m.Job = ids.JobID(c.varint())
		case 6<<3 | wtBytes:
			m.Token = c.kept()
		case 7<<3 | wtBytes:
			f := elem(&c, &m.Functions)
			c := cursor{b: c.bytes(), d: d}
			for c.next() {
				switch c.tag {
				case 1<<3 | wtBytes:
					f.Name = c.string()
				case 2<<3 | wtFixed64:
					f.Signature = c.fixed64()
				default:
					c.skip()
				}
			}
		case 8<<3 | wtBytes:
			m.Namespace = c.string()
		case 9<<3 | wtVarint:
			m.Client = ids.ClientID(c.varint())
		case 10<<3 | wtBytes:
			m.Program = new(Program)
			d.program(c.bytes(), m.Program)
		case 11<<3 | wtBytes:
			d.program(c.bytes(), elem(&c, &m.Others))
		case 12<<3 | wtBytes:
			m.Environ = c.kept()
		default:
			c.skip()
		}
	}
	return m
}

func (d *Decoder) program(b []byte, p *Program) {
	c := cursor{b: b, d: d}
	for c.next() {
		switch c.tag {
		case 1<<3 | wtBytes:
			p.Language = c.string()
		case 2<<3 | wtBytes:
			p.Version = c.string()
		case 3<<3 | wtBytes:
			p.Args = append(p.Args, c.string())
		case 4<<3 | wtVarint:
			p.Single = c.bool()
		case 5<<3 | wtVarint:
			p.Template = c.bool()
		default:
			c.skip()
		}
	}
}

func (d *Decoder) welcome(b []byte) Msg {
	m := new(Welcome)
	c := cursor{b: b, d: d}
	for c.next() {
		switch c.tag {
		case 1<<3 | wtVarint:
			m.Version = c.uint32()
		case 2<<3 | wtVarint:
			m.Client = ids.ClientID(c.varint())
		case 3<<3 | wtBytes:
			m.Node = c.string()
		case 4<<3 | wtVarint:
			m.Job = ids.JobID(c.varint())
		case 5<<3 | wtBytes:
			c.task(&m.Root)
		case 6<<3 | wtVarint:
			m.SegmentSize = c.varint()
		case 7<<3 | wtVarint:
			m.InlineMax = c.uint32()
		case 8<<3 | wtBytes:
			m.Token = c.kept()
		case 9<<3 | wtBytes:
			m.Namespace = c.string()
		case 10<<3 | wtVarint:
			m.Slots = c.sint32()
		case 11<<3 | wtVarint:
			m.TraceMillionths = c.sint32()
		case 12<<3 | wtBytes:
			m.JobDir = c.string()
		case 13<<3 | wtBytes:
			m.Release = c.string()
		case 14<<3 | wtFixed64:
			m.Clock = int64(c.fixed64())
		default:
			c.skip()
		}
	}
	return m
}

func (d *Decoder) request(b []byte) Msg {
	m := new(Request)
	c := cursor{b: b, d: d}
	for c.next() {
		switch c.tag {
		case 1<<3 | wtVarint:
			m.Req = c.varint()
		case 2<<3 | wtBytes:
			m.Method = c.string()
		case 3<<3 | wtBytes:
			m.Body = c.kept()
		case 4<<3 | wtBytes:
			d.trace(c.bytes(), &m.Trace)
		default:
			c.skip()
		}
	}
	return m
}

func (d *Decoder) reply(b []byte) Msg {
	m := new(Reply)
	c := cursor{b: b, d: d}
	for c.next() {
		switch c.tag {
		case 1<<3 | wtVarint:
			m.Req = c.varint()
		case 2<<3 | wtBytes:
			m.Body = c.kept()
		case 3<<3 | wtBytes:
			m.Err = d.err(c.bytes())
		default:
			c.skip()
		}
	}
	return m
}

func (d *Decoder) holdings(b []byte) Msg {
	m := new(Holdings)
	c := cursor{b: b, d: d}
	for c.next() {
		switch c.tag {
		case 1<<3 | wtVarint:
			m.Component = Component(c.enum(uint8(ComponentStore)))
		case 2<<3 | wtVarint:
			m.Epoch = c.varint()
		case 3<<3 | wtBytes:
			m.Handles = c.objects(m.Handles)
		case 4<<3 | wtBytes:
			g := elem(&c, &m.Gets)
			d.get(c.bytes(), g)
		case 5<<3 | wtBytes:
			s := elem(&c, &m.Streams)
			d.streamNext(c.bytes(), s)
		case 6<<3 | wtBytes:
			a := elem(&c, &m.Tasks)
			c := cursor{b: c.bytes(), d: d}
			for c.next() {
				switch c.tag {
				case 1<<3 | wtBytes:
					c.task(&a.Task)
				case 2<<3 | wtVarint:
					a.Attempt = c.uint32()
				case 3<<3 | wtVarint:
					a.Lease = ids.LeaseID(c.varint())
				default:
					c.skip()
				}
			}
		case 7<<3 | wtBytes:
			c.task((*ids.TaskID)(elem(&c, &m.Actors)))
		case 8<<3 | wtBytes:
			u := elem(&c, &m.Pins)
			d.objectAndNumber(c.bytes(), &u.ID, &u.N)
		default:
			c.skip()
		}
	}
	return m
}

func (d *Decoder) actorNews(b []byte) *ActorNews {
	m := new(ActorNews)
	c := cursor{b: b, d: d}
	for c.next() {
		switch c.tag {
		case 1<<3 | wtBytes:
			c.task((*ids.TaskID)(&m.Actor))
		case 2<<3 | wtVarint:
			m.State = ActorState(c.enum(uint8(ActorDead)))
		case 3<<3 | wtVarint:
			m.Restarts = c.uint32()
		case 4<<3 | wtBytes:
			m.Err = d.err(c.bytes())
		default:
			c.skip()
		}
	}
	return m
}
