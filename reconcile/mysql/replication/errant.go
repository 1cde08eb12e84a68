package replication

import "fmt"

// suspect looks, while replication runs, whether the member has something that its primary has not, and that is not hollow: somebody lifted
// super_read_only on it. It serves nobody then, and goes on replicating: what comes from the primary is as good as before. When the primary cannot be looked
// at, what was found last still holds.
func suspect(step Step, local Local) Step {
	written := step.Errant.Subtract(step.Hollow)
	if !written.Empty() && step.State != StateBroken {
		step.State, step.Message = StateErrant, errantMessage(written, local.Assignment.Record.Primary)
	}
	return step
}

// errantBeside is what a member has, and its primary neither has nor is about to have. Transactions that are loaded with
// GTIDs of elsewhere may be here before the primary, which waits for acknowledgements, counts them as executed.
func errantBeside(server Server, source Source) GTIDSet {
	return Errant(server.Executed.Union(server.Channel.Retrieved), source).Subtract(source.Pending)
}

// Errant is what a member has, applied or only received, and its primary has not. Transactions that began on the primary itself
// do not count: under AFTER_SYNC a replica may have applied one that the primary, waiting for acknowledgements, has not finished
// (manual, "Semisynchronous Replication").
func Errant(has GTIDSet, source Source) GTIDSet {
	return has.Subtract(source.Executed).WithoutServer(source.ServerUUID)
}

func errantMessage(errant GTIDSet, primary string) string {
	return fmt.Sprintf("has %d transactions that the primary %s does not have: %s; it serves nobody until that is resolved", errant.Count(), primary, errant)
}
