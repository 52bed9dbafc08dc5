/**
 * The tests of the built program run on SQLite, and those that are named here with the reason on
 * PostgreSQL as well.
 */
/**
 * Paths, and what the database makes different. What several instances do is tried on a server of
 * their own.
 */
export const onBothDatabases: Readonly<Record<string, string>> = {
  'test/process/alerts.test.ts': 'events are told once, whatever dies when',
  'test/process/call-evidence.test.ts': 'what settles a dispute is stored, also after a crash',
  'test/process/denials.test.ts': 'each reason is stored, and read again after a restart',
  'test/process/disk-full.test.ts': 'on a server, only the journal of calls is on the disk',
  'test/process/external-ocs.test.ts': 'records wait in the database, and are charged once',
  'test/process/outlive.test.ts': 'calls are restored, and paid, after a crash',
  'test/process/recovery.test.ts': 'calls that cannot go on are recorded and charged',
  'test/process/secrets.test.ts': 'what is stored holds no secret',
  'test/process/socket-activation.test.ts': 'the next process takes over what the last one holds',
  'test/sipp/inbound.test.ts': 'calls are authorized, charged and stored',
}
