package wire

// The Kind methods tell the messages apart.

// Kind is KindHello.
func (*Hello) Kind() Kind { return KindHello }

// Kind is KindWelcome.
func (*Welcome) Kind() Kind { return KindWelcome }

// Kind is KindBye.
func (*Bye) Kind() Kind { return KindBye }

// Kind is KindSubmit.
func (*Submit) Kind() Kind { return KindSubmit }

// Kind is KindPutValue.
func (*PutValue) Kind() Kind { return KindPutValue }

// Kind is KindSeal.
func (*Seal) Kind() Kind { return KindSeal }

// Kind is KindGet.
func (*Get) Kind() Kind { return KindGet }

// Kind is KindUnget.
func (*Unget) Kind() Kind { return KindUnget }

// Kind is KindAddRef.
func (*AddRef) Kind() Kind { return KindAddRef }

// Kind is KindRelease.
func (*Release) Kind() Kind { return KindRelease }

// Kind is KindCancel.
func (*Cancel) Kind() Kind { return KindCancel }

// Kind is KindKillActor.
func (*KillActor) Kind() Kind { return KindKillActor }

// Kind is KindActorStopped.
func (*ActorStopped) Kind() Kind { return KindActorStopped }

// Kind is KindWatchActor.
func (*WatchActor) Kind() Kind { return KindWatchActor }

// Kind is KindActorNews.
func (*ActorNews) Kind() Kind { return KindActorNews }

// Kind is KindResolved.
func (*Resolved) Kind() Kind { return KindResolved }

// Kind is KindCreate.
func (*Create) Kind() Kind { return KindCreate }

// Kind is KindCreated.
func (*Created) Kind() Kind { return KindCreated }

// Kind is KindAbort.
func (*Abort) Kind() Kind { return KindAbort }

// Kind is KindUnpin.
func (*Unpin) Kind() Kind { return KindUnpin }

// Kind is KindMapFile.
func (*MapFile) Kind() Kind { return KindMapFile }

// Kind is KindUnmapFile.
func (*UnmapFile) Kind() Kind { return KindUnmapFile }

// Kind is KindExec.
func (*Exec) Kind() Kind { return KindExec }

// Kind is KindCancelTask.
func (*CancelTask) Kind() Kind { return KindCancelTask }

// Kind is KindStopActor.
func (*StopActor) Kind() Kind { return KindStopActor }

// Kind is KindDrain.
func (*Drain) Kind() Kind { return KindDrain }

// Kind is KindDone.
func (*Done) Kind() Kind { return KindDone }

// Kind is KindStreamItem.
func (*StreamItem) Kind() Kind { return KindStreamItem }

// Kind is KindStreamAck.
func (*StreamAck) Kind() Kind { return KindStreamAck }

// Kind is KindBlocked.
func (*Blocked) Kind() Kind { return KindBlocked }

// Kind is KindUnblocked.
func (*Unblocked) Kind() Kind { return KindUnblocked }

// Kind is KindResume.
func (*Resume) Kind() Kind { return KindResume }

// Kind is KindStats.
func (*Stats) Kind() Kind { return KindStats }

// Kind is KindRequest.
func (*Request) Kind() Kind { return KindRequest }

// Kind is KindReply.
func (*Reply) Kind() Kind { return KindReply }

// Kind is KindResync.
func (*Resync) Kind() Kind { return KindResync }

// Kind is KindHoldings.
func (*Holdings) Kind() Kind { return KindHoldings }

// Kind is KindCredit.
func (*Credit) Kind() Kind { return KindCredit }

// Kind is KindCollect.
func (*Collect) Kind() Kind { return KindCollect }

// Kind is KindStreamNext.
func (*StreamNext) Kind() Kind { return KindStreamNext }

// Kind is KindUnneeded.
func (*Unneeded) Kind() Kind { return KindUnneeded }
