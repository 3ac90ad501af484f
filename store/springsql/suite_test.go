// SPDX-License-Identifier: Apache-2.0

package springsql

import "testing"

// Each of these is described where the suite has it.

func TestLockedRowHoldsUpNoBatch(t *testing.T) { t.Parallel(); suite.LockedRowHoldsUpNoBatch(t) }

func TestBusyRowsAreWaitedForAlone(t *testing.T) { t.Parallel(); suite.BusyRowsAreWaitedForAlone(t) }

func TestRowThatIsBeingMadeHoldsUpNoBatch(t *testing.T) {
	t.Parallel()
	suite.RowThatIsBeingMadeHoldsUpNoBatch(t)
}

func TestBatchSkipsLockedRows(t *testing.T) { t.Parallel(); suite.BatchSkipsLockedRows(t) }

func TestRenewalWaitsForItsRow(t *testing.T) { t.Parallel(); suite.RenewalWaitsForItsRow(t) }

func TestTryLockOfAHeldKeyLocksNoRow(t *testing.T) {
	t.Parallel()
	suite.TryLockOfAHeldKeyLocksNoRow(t)
}

func TestGuardRefusesStaleTokens(t *testing.T) { t.Parallel(); suite.GuardRefusesStaleTokens(t) }

func TestGivenUpCallEnds(t *testing.T) { t.Parallel(); suite.GivenUpCallEnds(t) }

func TestPatienceOfTheApplicationStays(t *testing.T) {
	t.Parallel()
	suite.PatienceOfTheApplicationStays(t)
}

func TestReleaseThatFailsHasReleasedNothing(t *testing.T) {
	t.Parallel()
	suite.ReleaseThatFailsHasReleasedNothing(t)
}

func TestWithoutAutocommit(t *testing.T) { t.Parallel(); suite.WithoutAutocommit(t) }

func TestSafeUpdates(t *testing.T) { t.Parallel(); suite.SafeUpdates(t) }

func TestForcePassesOverTokens(t *testing.T) { t.Parallel(); suite.ForcePassesOverTokens(t) }

func TestClientThatStopsBeforeItsCommitKeepsNoRow(t *testing.T) {
	t.Parallel()
	suite.ClientThatStopsBeforeItsCommitKeepsNoRow(t)
}

func TestTablesDoNotGrow(t *testing.T) { t.Parallel(); suite.TablesDoNotGrow(t) }

func TestUncertainReleasesDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	suite.UncertainReleasesDoNotWaitForEachOther(t)
}

func TestRightsSuffice(t *testing.T) { t.Parallel(); suite.RightsSuffice(t) }

func TestReadOnlyServerIsRefused(t *testing.T) { t.Parallel(); suite.ReadOnlyServerIsRefused(t) }

func TestMigrateAgainReplacesNothing(t *testing.T) {
	t.Parallel()
	suite.MigrateAgainReplacesNothing(t)
}

func TestScriptsAreAlike(t *testing.T) { t.Parallel(); suite.ScriptsAreAlike(t) }

func TestServersOfOtherSettings(t *testing.T) { t.Parallel(); suite.ServersOfOtherSettings(t) }

func TestLockedRowsLeaveThePool(t *testing.T) { suite.LockedRowsLeaveThePool(t) }
