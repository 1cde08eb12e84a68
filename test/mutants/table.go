package main

// never and neverSo replace a case of a switch, and a condition.
const (
	never   = "case false:"
	neverSo = "if false {"
)

// loss is the file with the rules about primaries that are down, or without their data, cluster the one with the decision as a whole, and
// hollow the one about transactions that change no row.
const (
	loss    = "loss.go"
	cluster = "cluster.go"
	hollow  = "hollow.go"
)

// mutants are the rules that are broken, each in one place.
func mutants() []mutant {
	var all []mutant
	for _, some := range [][]mutant{
		promises(), takeovers(), leases(), orders(), members(), reopenings(), donors(), dataOfFormerPrimaries(), adoption(), volumes(), flow(),
		clientsOfFormerPrimaries(),
	} {
		all = append(all, some...)
	}
	return all
}

// promises are how many copies the record promises, and who counts.
func promises() []mutant {
	const file = "nextrecord.go"
	return []mutant{
		{"a member leaves under an old assignment", file, "if !status.speaksOurProtocol() || status.ObservedUnder != c.Record.Version() {\n\t\treturn c.Record\n\t}\n\tfor", "if !status.speaksOurProtocol() {\n\t\treturn c.Record\n\t}\n\tfor"},
		{"a member leaves before the primary locks it out", file, "if soon || !slices.Contains(status.Silent, name) {", "if soon {"},
		{"a member leaves, and the promise stays", file, "return next.promising(min(next.RequiredAcks, holders))", "return next"},
		{"commits in progress do not count when a member leaves", file, "holders := c.holders(next, status.Executed.Union(status.Pending))\n\t\tisWeaker", "holders := c.holders(next, status.Executed)\n\t\tisWeaker"},
		{"a short lease stays when a member leaves", file, "next.LeaseLasts = LongLease // it may", "next.LeaseLasts += 0 // it may"},
		{"a member that may acknowledge leaves for a copy", file, "return status.speaksOurProtocol() && !status.Acknowledging && (status", "return status.speaksOurProtocol() && (status"},
		{"a lost replica leaves although others are needed", file, "return others >= c.Record.RequiredAcks", "return true"},
		{"the promise rises under an old assignment", file, "status.State != StateWriting || status.ObservedUnder != c.Record.Version() {\n\t\treturn c.Record\n\t}\n\tnext := c.Record\n\t// A number", "status.State != StateWriting {\n\t\treturn c.Record\n\t}\n\tnext := c.Record\n\t// A number"},
		{"the promise rises before the replicas have everything", file, "if enforced > c.Record.RequiredAcks && c.holders(c.Record, status.Executed.Union(status.Pending)) >= enforced {", "if enforced > c.Record.RequiredAcks {"},
		{"commits in progress do not count when the promise rises", file, "c.holders(c.Record, status.Executed.Union(status.Pending)) >= enforced", "c.holders(c.Record, status.Executed) >= enforced"},
		{"the promise rises to what is about to be lowered", file, "return min(s.AcksEnforced, s.Assignment.Acks)", "return s.AcksEnforced"},
		{"a member is admitted that may acknowledge", file, "&& member.Status.IsSilent(c.Record) {\n\t\t\treturn c.Record.joining", "&& member.Status != nil {\n\t\t\treturn c.Record.joining"},
		{"a member that is not observed to be silent counts as silent", file, "s.ObservedUnder == under.Version() && !s.Acknowledging &&", "s.ObservedUnder == under.Version() &&"},
		{"a member counts as silent under an old assignment", file, "return s.speaksOurProtocol() && s.ObservedUnder == under.Version() &&", "return s.speaksOurProtocol() &&"},
		{"a member joins before it replicates", file, "&& slices.Contains(c.Record.Joining, member.Name) && follows(member, c.Record) {", "&& slices.Contains(c.Record.Joining, member.Name) {"},
		{"the promise falls without the user's permission", file, "if !short || !c.Durability.Continue ||", "if !short ||"},
		{"the primary asks for fewer acknowledgements than promised", cluster, "return max(c.Record.RequiredAcks, min(full, c.Durability.Least), min(full, possible, connected))", "return max(min(full, c.Durability.Least), min(full, possible, connected))"},
		{"the last replicas leave while commits wait for them", cluster, "if primary.Status.AcksEnforced > FullAcks(c.Replicas) {", neverSo},
	}
}

// takeovers are how a new primary is chosen.
func takeovers() []mutant {
	const file = "handover.go"
	return []mutant{
		{"a primary is replaced at once that restarts in its container", loss, "!v.must(\"its agent reports that\", status.IsRestarting)", "!v.must(\"its agent reports that\", true)"},
		{"a replica counts whose container restarts, too", loss, "return answers(member) && !member.Status.IsRestarting", "return answers(member)"},
		{"a primary is replaced that an update restarts", loss, "v.must(\"no update of the members is in progress, or held back\", !c.IsUpdating)", "_ = c.IsUpdating"},
		{"a lease becomes long although a replica takes over", "lease.go", "return !status.IsRestarting || !c.couldReplaceRestarting()", "return !status.IsRestarting || !c.IsUpdating"},
		{"a member takes over whose container restarts", file, "if member.Status.IsRestarting {", "if false {"},
		{"a primary whose Pod starts does not get time", "lease.go", "if primary.IsRunning || c.couldReplaceRestarting() {", "if true {"},
		{"one member too few is read", "record.go", "return len(removed(r.InSync, r.lastPrimary())) - r.RequiredAcks + 1", "return len(removed(r.InSync, r.lastPrimary())) - r.RequiredAcks"},
		{"the new primary promises what only some members hold", file, "if member.Name != chosen && member.Status.Received.Contains(all) {", "if _ = all; member.Name != chosen {"},
		{"members that were not read stay in sync", file, "next.InSync = added(next.InSync, member.Name)\n\t\tif member.Name != chosen", "next.InSync = c.Record.InSync\n\t\tif member.Name != chosen"},
		{"a member is chosen while the former primary may take writes", file, "return c.waitsForClosed(isLate)\n}", "return nil\n}"},
		{"a member is chosen after some time without a request", file, "|| isLate && (c.isRequested() || c.mayForce()) {", "|| isLate {"},
		{"the former primary is closed under an old record", file, "m.Status.Closed != nil && *m.Status.Closed == record.Version()", "m.Status.Closed != nil"},
		{"the former primary continues without its data", file, "return c.Record.isWhole(former, c.formerMembers())", "return true"},
		{"the former primary continues with new data", file, "|| former.Status.Origin != OriginMember || !former.Status.IsSilent(c.Record) {", "|| !former.Status.IsSilent(c.Record) {"},
		{"the former primary continues while others may acknowledge", file, "c.isBack(former) && len(c.notFenced()) == 0:", "c.isBack(former):"},
		{"members that may acknowledge are read", file, "return member.HasReported() && member.Status.IsSilent(c.Record) })\n\tproblem", "return member.HasReported() })\n\tproblem"},
		{"a member with new data is a witness", file, "&& member.Status.Origin == OriginMember && !member.Status.IsForgetful {", "&& !member.Status.IsForgetful {"},
		{"a member that has forgotten is a witness", file, "&& member.Status.Origin == OriginMember && !member.Status.IsForgetful {", "&& member.Status.Origin == OriginMember {"},
		{"a lost primary counts as in sync", file, "decision.Record.InSync = removed(decision.Record.InSync, c.Record.Primary)", "decision.Record.InSync = removed(decision.Record.InSync, \"\")"},
		{"what one member alone has made spreads", file, "if len(members) > 1 && !own.Empty() {", neverSo},
		{"what scaling in has removed does not come back to be read", file, "scale = max(scale, member.Ordinal+1)", "continue"},
		{"what a former primary made keeps it from taking over", file, ".Subtract(member.Status.Shared)", ""},
		{"a former primary judges all that it wrote before its election", hollow, "return latestOwn(local).Subtract(local.WasShared)", "return latestOwn(local)"},
		{"what the primary had is never judged", hollow, "case local.DisconnectedFor < judgeShared:", "default:"},
		{"a replica that acknowledges for those that stay leaves", cluster, "if need <= 0 {", "if need <= 1 {"},
		{"what the primary lacks counts as shared", "errant.go", "return l.Source.Executed.OfServer(l.Server.ServerUUID).Both(", "return l.Server.Executed.OfServer(l.Server.ServerUUID).Union("},
		{"a member is chosen that lacks something", "appoint.go", "if member.Status.Received.Contains(all) {\n\t\t\tholders", "if !all.Empty() {\n\t\t\tholders"},
		{"a crashed primary is replaced by the last replica", loss, "len(c.witnesses(counts)) > c.Record.RequiredAcks\n", "len(c.witnesses(counts)) >= c.Record.RequiredAcks\n"},
		{"an empty primary continues", loss, "primary.Status.Origin.unused() && len(record.InSync) > 0", "false"},
		{"a primary that went back in time continues", loss, "if !lacks.Empty() {\n\t\t\treturn lacks, replica.Name", "if false {\n\t\t\treturn lacks, replica.Name"},
		{"a forced primary leaves no mark", "force.go", "ForcedEpoch: c.Record.Epoch}.after", "ForcedEpoch: c.Record.ForcedEpoch}.after"},
		{"the next primary removes the mark", file, "ForcedEpoch: c.Record.ForcedEpoch}.after", "ForcedEpoch: 0}.after"},
	}
}

// leases are for how long a primary may lead that does not answer.
func leases() []mutant {
	const file = "lease.go"
	return []mutant{
		{"a lease counts from the first silent member", file, "return silent[first]\n", "return silent[len(silent)-1+0*first]\n"},
		{"a lease ends at once", file, "c.Record.LeaseLasts > 0 && c.silentFor() >= c.Record.leaseLimit()", "c.Record.LeaseLasts > 0 && c.silentFor() > 0"},
		{"a replica's silence shortens a lease that the operator confirms", file, "if !restsOnReplicas(c.Record.LeaseLasts) || !member.Status.IsSilent(c.Record) {", "if !member.Status.IsSilent(c.Record) {"},
		{"the operator confirms a lease that rests on replicas", file, "func (a Assignment) Confirmed() time.Duration {\n\tif restsOnReplicas(a.LeaseLasts) {", "func (a Assignment) Confirmed() time.Duration {\n\tif false {"},
		{"a lease is recorded under an old assignment", file, "status.State != StateWriting || status.ObservedUnder != next.Version() {", "status.State != StateWriting {"},
		{"a lease is recorded for fewer replicas", file, "order.Lease < acks || lease == nil || lease.Needs < acks ||", "lease == nil ||"},
		{"a shorter lease is recorded than the primary has", file, "|| lease.Lasts > order.LeaseLasts {", "{"},
		{"a lease becomes longer without a record", file, "next.LeaseLasts = max(next.LeaseLasts, c.wantedLease())", "next.LeaseLasts = max(next.LeaseLasts, 0)"},
		{"a lease for fewer replicas keeps a stronger promise", "record.go", "if acks == 0 || acks > r.RequiredAcks {", "if acks == 0 {"},
		{"a lease is too short for a blip that replaces nothing", file, "return max(least, c.Limits.Unreachable+evidenceAge)", "return max(least, c.Limits.Unreachable+0*evidenceAge)"},
		{"a primary is silent since a replica looked, and not since its last packet", "ear.go", "now.Add(-channel.QuietFor)", "now"},
		{"a primary is silent as long as another client of it", "ear.go", "if got != e.got && heard.Before(e.looked) {", neverSo},
		{"a primary counts as a replica because it has not forgotten its source", "agent/open.go", "channel.Configured && s.HeldRole == replication.RoleReplica && (channel.IO != \"No\" || channel.SQL != \"No\")", "channel.Configured"},
		{"a pass waits for a primary that a replica heard a moment ago", "cluster/ask.go", "for !t.hearNothing(ctx, others) { //", "if !t.hearNothing(ctx, others) { //"},
		{"each pass waits as long for a primary that did not answer", "cluster/ask.go", "\t\treturn promptly\n\t}\n\treturn atLeast", "\t\treturn atLeast\n\t}\n\treturn atLeast"},
		{"a pass that takes long delays the end of a lease", "cluster/pace.go", "left-now.Sub(r.seen.answered))", "left-0*now.Sub(r.seen.answered))"},
		{"a new primary forgets its source before it takes writes", "step.go", "case server.Channel.running() || server.Channel.unapplied(server.Executed):", "case server.Channel.running() || server.Channel.Configured && server.isClosed():"},
		{"a primary that continues keeps its lease", "handover.go", "r.Primary, r.FormerPrimary, r.LeaseLasts = r.FormerPrimary, \"\", 0", "r.Primary, r.FormerPrimary = r.FormerPrimary, \"\""},
	}
}

// orders are which assignments a member accepts.
func orders() []mutant {
	const file = "order.go"
	return []mutant{
		{"a member accepts an earlier revision", file, "case offered.before(held):", never},
		{"a member accepts another primary of an epoch", file, "offered.Epoch == held.Epoch && held.Primary != \"\" && offered.Primary != held.Primary:", "false:"},
		{"a member accepts two assignments of a revision", file, "case next.contradicts(last):", never},
		{"a member accepts an assignment for an earlier start", file, "case next.Boot != boot:", never},
		{"another assignment of a revision needs no record", file, "if told && member.Status != nil && next.contradicts(member.Status.Last) {", "if told && next.Boot == \"\" && false {"},
		{"a member with a later record is ignored", file, "if c.Record.before(member.held()) {\n\t\t\treturn member.Name", "if false {\n\t\t\treturn member.Name"},
	}
}

// members are what a member does on its own mysqld.
func members() []mutant {
	const file = "step.go"
	return []mutant{
		{"a primary opens after a restart without the operator", file, "case server.isClosed() && a.Boot != local.Boot && !local.Reopens():", never},
		{"a new primary drops its relay log", file, "case server.Channel.running() || server.Channel.unapplied(server.Executed):", "case server.Channel.running():"},
		{"a new source replaces a relay log that is not applied", file, "case channel.unapplied(server.Executed) && channel.SQL == \"Yes\":\n\t\treturn Step{Verb: VerbNone", "case false:\n\t\treturn Step{Verb: VerbNone"},
		{"a replica that may not acknowledge does", file, "case !a.Acknowledge && server.mayAcknowledge():", never},
		{"a replica takes writes", file, "case !server.SuperReadOnly:\n\t\treturn catching", "case false:\n\t\treturn catching"},
		{"a primary takes writes before commits wait", file, "case a.Acks > 0 && server.SourceAcks != a.Acks:", "case a.Acks > 0 && server.SourceAcks != a.Acks && !server.isClosed():"},
		{"a member in sync is copied", file, "\tif a.InSync {\n", "\tif false {\n"},
		{"a member with rows of its own is copied", file, "case !errant.Empty():\n\t\treturn errantStep(a, local, errant)\n\tcase isCopied:", "case !errant.Empty() && !isCopied:\n\t\treturn errantStep(a, local, errant)\n\tcase isCopied:"},
		{"what is only received is never judged", file, "case !errant.Subtract(server.Executed).Empty():", never},
		{"a member follows before it has judged what it received", "follow.go", "case !errant.Empty():\n\t\treturn applyErrant(a, local, errant)", "case false:\n\t\treturn applyErrant(a, local, errant)"},
		{"a copy replaces what the primary has in progress", file, "if isCopied {\n\t\terrant = Errant(", "if false {\n\t\terrant = Errant("},
		{"a new volume serves as the primary", file, "if a.Role == RolePrimary && local.Server.isClosed() && local.Origin.unused() && len(a.Record.InSync) > 0 {", neverSo},
		{"an errant replica serves reads", "errant.go", "if !written.Empty() && step.State != StateBroken {", neverSo},
		{"what a primary has in progress is errant on its replicas", "errant.go", ".WithoutServer(source.ServerUUID)", ""},
		{"a member that has lost its own transactions follows", file, "isCopied := local.Origin == OriginFresh || hasLostOwn ||", "isCopied := local.Origin == OriginFresh || hasLostOwn && false ||"},
		{"an applier that an error has stopped is not started again", "applier.go", "if local.AppliesAgain {", "if false {"},
		{"it is started again at once each time", "applier.go", "m.next, m.pause = now.Add(m.pause), ", "m.next, m.pause = now, "},
		{"a stopped applier does not keep a relay log", "follow.go", "if server.Channel.SQL != \"Yes\" || server.Channel.ByPosition", "if server.Channel.ByPosition"},
	}
}

// reopenings are when a crashed primary opens by its replicas.
func reopenings() []mutant {
	const file = "reopen.go"
	return []mutant{
		{"a crashed primary opens before replicas acknowledge", file, "case !s.Acknowledged:", never},
		{"a crashed primary opens without a lease of its replicas", file, "case !s.IsHeard:", never},
		{"a crashed primary opens that needs no lease", file, "order.Lease >= acks && order.LeaseLasts > 0", "true"},
		{"a crashed primary opens where nothing is promised", file, "return acks > 0 && order.Acks", "return order.Acks"},
		{"a crashed primary opens under any record", file, "|| order.Record.Version() != o.Under {", "{"},
		{"a crashed primary opens that lacks what it had", file, "l.Server.Executed.Contains(l.Opened.Executed) &&", ""},
		{"a primary opens by its replicas after any start", file, "return l.IsReopening && isSame", "return isSame"},
		{"what a crashed primary commits for its replicas is a loss of data", loss, " || status.Reopens() {", " {"},
		{"another member is adopted while a primary opens", "appoint.go", " || status.Reopens()\n", "\n"},
	}
}

// donors are which replicas are copied.
func donors() []mutant {
	const file = "donor.go"
	return []mutant{
		{"what a donor has alone spreads", file, "case !alone.Empty():", never},
		{"a copy lacks what the primary has purged", file, "missing := after.Purged.Subtract(", "missing := (GTIDSet{}).Subtract("},
		{"another copy than the operator has seen is copied", file, "|| seen.ServerUUID != d.UUID:", ":"},
		{"rows are missing in a donor", file, "s.TablesWithoutRows != nil && s.TablesWithoutRows.Empty()", "true"},
		{"a copy gives GTIDs again that its member gave", "agent/donor.go", "return a.layout.dropServerUUID()", "return nil"},
		{"a copy that cannot tell what is hollow keeps the primary from matching it", hollow, ".WithoutServer(member.Status.CopiedFrom)", ""},
	}
}

// dataOfFormerPrimaries are which transactions may be dropped.
func dataOfFormerPrimaries() []mutant {
	const file, doubt = "replaced.go", "doubt.go"
	return []mutant{
		{"all that a member has alone is dropped", file, "case !local.isUnacknowledged(errant):", never},
		{"what a client may have been told had succeeded is dropped", file, " && errant.Both(l.InDoubt).Empty()", ""},
		{"the agent misses that MySQL stops waiting between two looks", doubt, "case next.promised > 0 && now.SwitchedOff > 0 && now.SwitchedOff != before.SwitchedOff:", never},
		{"the agent misses that commits do not wait", doubt, "return min(before.Enforced, now.Enforced) >= min(w.promised, next.promised)", "return true"},
		{"commits in progress are never in doubt", doubt, "now.Made.Union(now.Pending).Subtract(w.before)", "now.Made.Subtract(w.before)"},
		{"commits that return during a look are never in doubt", doubt, ".Subtract(w.before)", ".Subtract(w.last.Made)"},
		{"what a former primary drops is not set aside", file, "case !local.SetAside.Contains(errant):", never},
		{"a primary drops what it acknowledged alone", file, "last.Record.Primary != next.Record.Primary &&\n\t\tlast.Acks > 0", "last.Record.Primary != next.Record.Primary"},
		{"a record that went back in time proves what may be dropped", file, "&& last.Record.Revision < next.Record.Revision &&", "&&"},
		{"another resource proves what may be dropped", file, "last.Cluster != \"\" && last.Cluster == next.Cluster &&", "last.Cluster != \"\" &&"},
		{"what a forced primary lacks is dropped", file, "return epoch < r.ForcedEpoch", "return false"},
		{"hollow transactions are matched although another member has rows", hollow, "missing := hollow.Subtract(doubtful).", "missing := hollow.Subtract(GTIDSet{}).Subtract(doubtful.Subtract(doubtful))."},
		{"hollow transactions decide elections", "appoint.go", "return all.Subtract(hollow)", "return all.Union(hollow)"},
	}
}

// adoption is how a resource that is applied again finds its data.
func adoption() []mutant {
	const file = "appoint.go"
	return []mutant{
		{"a member is adopted before others answer", file, "if silent := c.silentWithOlderData(true); len(silent) > 0 {", "if silent := c.silentWithOlderData(true); len(silent) > 5 {"},
		{"a member is adopted while others are left behind", file, "case len(leftBehind) > 0:\n\t\treturn notRead", "case false:\n\t\treturn notRead"},
		{"one volume too few is read", file, "held.RequiredAcks > 0 && replicasRead >= held.witnessesNeeded():", "held.RequiredAcks > 0 && replicasRead > 0:"},
		{"an adopted member leads although it forgot", loss, "case c.hasForgotten(primary):", "case forgot(primary, c.Record):"},
		{"an adopted member leads although it forgot what another one has", file, "&& primary.Status.Received.Contains(worthHaving(former))", ""},
		{"an adopted member leads before it tells what it has", file, "return problem == \"\" && primary.HasReported() &&", "return problem == \"\" &&"},
		{"others forget by which record a member in doubt was chosen", cluster, "if c.Record.isInDoubt(primary) || c.mayBeInDoubt(primary) {", neverSo},
		{"others forget it when a member in doubt does not answer for a moment", cluster, "if c.Record.isInDoubt(primary) || c.mayBeInDoubt(primary) {", "if c.Record.isInDoubt(primary) {"},
		{"a member in doubt counts as the last primary", file, "|| r.isInDoubt(member) {", "{"},
		{"no user can replace an adopted member that forgot", "force.go", "return !c.hasForgotten(member)", "return !forgot(member, c.Record)"},
		{"the last primary is adopted although it is an older copy", file, "return !lacks && !member.Status.IsForgetful", "return !lacks || true"},
		{"a cluster that is adopted begins with an epoch that members know", file, "decision.Record = Record{Epoch: held.Epoch + 1, Revision: c.nextRevision(), Primary: chosen,", "decision.Record = Record{Epoch: held.Epoch, Revision: c.nextRevision(), Primary: chosen,"},
		{"an adopted cluster forgets that a primary was forced", file, "InSync: []string{chosen}, ForcedEpoch: held.ForcedEpoch}", "InSync: []string{chosen}}"},
	}
}

// volumes are when a primary is replaced because its volume fails, and by whom.
func volumes() []mutant {
	const file = "disk.go"
	return []mutant{
		{"a primary is replaced as soon as its volume is slow", file, "v.mustLast(\"a write to its volume does not return\", probe.StuckFor, limit)", "v.mustLast(\"a write to its volume does not return\", probe.StuckFor, StuckLeast)"},
		{"a primary is replaced for one error of its volume", file, "v.mustLast(\"writes to its volume fail\", probe.FailingFor, FailingAfter)", "v.mustLast(\"writes to its volume fail\", probe.FailingFor, 0)"},
		{"a volume that fails, then stands still, works", file, "case probe.FailingFor >= FailingAfter, probe.FailingFor > 0 && probe.StuckFor == 0:", "case probe.FailingFor > 0 && probe.StuckFor == 0:"},
		{"a primary is replaced before mysqld tries again", file, "if status.Disk.Free >= nearlyNone {", neverSo},
		{"a primary with a full volume is replaced at once", file, "v.mustLast(\"its volume is full, and its commits hang\", seconds(int(status.Transactions.CommitWaitSeconds)), limit)", "v.mustLast(\"its volume is full, and its commits hang\", limit, limit)"},
		{"a primary with a full volume is replaced while commits wait for replicas", file, "v.must(\"it gets enough acknowledgements\", status.AcksShortSeconds == 0)", "v.must(\"it gets enough acknowledgements\", true)"},
		{"primaries take turns while volumes stand still", file, "if c.SinceTakeover > 0 {", neverSo},
		{"primaries take turns while clients fill volumes", file, "pause = PauseWhileFull", "pause += 0"},
		{"a replica of an unknown volume takes over", file, "case !status.Probe.IsKnown || status.Disk.Size == 0:", never},
		{"a replica whose volume fails, too, takes over", file, "case !status.Probe.IsSound():\n\t\treturn \"the volume of \"", "case false:\n\t\treturn \"the volume of \""},
		{"a replica whose volume stutters takes over", file, "case status.Probe.WasUnsound:", never},
		{"a replica whose volume fills up, too, takes over", file, "case status.Disk.Level == DiskFull, isFull && status.Disk.Level != DiskRoomy:", "case status.Disk.Level == DiskFull, isFull && status.Disk.Level == DiskFull:"},
		{"a replica with a full volume takes over", file, "case status.Disk.Level == DiskFull, isFull && status.Disk.Level != DiskRoomy:", "case isFull && status.Disk.Level != DiskRoomy:"},
		{"a takeover begins that cannot end", file, "if len(failed) == 0 || len(c.witnesses(answers))-len(failed) >= c.Record.witnessesNeeded() {", "if len(failed) >= 0 {"},
		{"a replica with a poor volume is preferred", file, "return !s.Probe.IsSound() || s.Disk.Level == DiskFull }", "return s.State == StateBroken }"},
	}
}

// flow is when a primary delays commits because replicas lag.
func flow() []mutant {
	const file = "flow.go"
	return []mutant{
		{"a replica that has stopped delays commits", file, "now.Applied <= was.Applied && now.Missing > 0 {", "now.Applied < was.Applied {"},
		{"the slowest replica delays commits", file, "needs < best.CatchUp {", "needs > best.CatchUp {"},
		{"a late answer counts as slow", file, "between := now.At.Sub(was.At).Seconds()", "between := seconds + 0*now.At.Sub(was.At).Seconds()"},
		{"a lost answer ends the delay", file, "maps.Copy(all, before.Answers)", "maps.Copy(all, p.Answers)"},
		{"commits are delayed although nothing is known", file, "case !seen.IsKnown:", never},
		{"a delay ends while the backlog is still long", file, "case seen.CatchUp < MostBacklog/2:", never},
		{"a backlog that is too long shrinks only by itself", file, "share, flattest = 0.8, 2", "share, flattest = 1, 1"},
		{"a delay has no bound", file, "return min(max(longer, leastDelay), MostDelay)", "return max(longer, leastDelay)"},
		{"a delay never ends", file, "shorter >= leastDelay {", "shorter >= 0 {"},
	}
}

// clientsOfFormerPrimaries are which clients reach a former primary, and from when on readers do.
func clientsOfFormerPrimaries() []mutant {
	const agent, plan = "agent/replaced.go", "cluster/plan.go"
	return []mutant{
		{"a former primary lets clients in as soon as the next one is named", agent, "straysFor = 12 * time.Second", "straysFor = 0 * time.Second"},
		{"clients come to a former primary only before the next one is named", agent, "|| s.isUnnamed && held.Primary != \"\"\n", "\n"},
		{"a member that is replaced again lets clients in", agent, "isFirst := s.epoch != held.Epoch ||", "isFirst := s.epoch == 0 ||"},
		{"a former primary starts with clients", agent, "next.RefuseClients = true", "next.RefuseClients = false"},
		{"the former primary of a forced one starts with clients", "agent/hold.go", "held.isFormer, held.isReplaced = true, !former.IsForced", "held.isFormer, held.isReplaced = !former.IsForced, !former.IsForced"},
		{"a former primary does not report at once that it refuses clients", agent, "if was == replication.RolePrimary && a.kept.Replaced != nil {", neverSo},
		{"a former primary reports that it lets clients in too early", agent, "a.status.RefusesClients = mayArrive || observed.RefusesClients", "a.status.RefusesClients = mayArrive"},
		{"the operator hears late that a member lets clients in", "news.go", "refusesClients: s.RefusesClients,", "refusesClients: false,"},
		{"a member that refuses clients serves readers", cluster, "member.Status.State == StateReplicating && !member.Status.RefusesClients {", "member.Status.State == StateReplicating {"},
		{"a member that refuses clients is copied", "donor.go", "!m.Status.hasAllRows() || m.Status.RefusesClients {", "!m.Status.hasAllRows() {"},
		{"readers are led to a member that refuses clients", plan, "case status != nil && status.RefusesClients:", never},
		{"readers are led away from the primary before they are led to replicas", plan, "if has == children.RoleFormerPrimary && role == children.RoleReplica {", neverSo},
	}
}
