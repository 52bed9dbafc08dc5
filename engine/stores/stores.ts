/**
 * The database of this process: an SQLite file, or a PostgreSQL server that several processes
 * share.
 */
import type { Cancel, Clocks, Every, Schedule, Boot } from '../../schema/clock.ts'
import type { Changes } from '../../schema/changes/changes.ts'
import type { Unserved } from '../../schema/contracts/calls.ts'
import type { Log } from '../../schema/contracts/log.ts'
import type { Fenced, InstancesPort, InstanceIdentity } from '../../schema/contracts/instances.ts'
import type { CallJournal } from '../../schema/journal/call-journal.ts'
import type { LocalStore, Store } from '../../schema/storage/store.ts'
import type { ServerNotices } from '../../schema/changes/server-notices.ts'
import type { Storage, StorageProblem } from '../../schema/storage/storage.ts'
import type { Config } from '../config.ts'

export interface StoresDeps extends Clocks {
  readonly boot?: Boot | undefined
  readonly isNewDatabase?: boolean | undefined
  readonly config: Config
  readonly version: string
  /** Host name of this machine. */
  readonly hostName: string
  readonly random: () => number
  readonly randomBytes: (size: number) => Buffer
  readonly schedule: Schedule
  readonly every: Every
  readonly log: Log
}

export interface Stores {
  readonly store: Store
  /** The file; undefined: the database is on a server. */
  readonly local: LocalStore | undefined
  /** Notices between the instances; undefined: there is one. */
  readonly notices: ServerNotices | undefined
  readonly changes: Changes
  readonly instance: OwnInstance
  /** Disk of the journal of calls; the database's own where that is a file. */
  readonly disk: Storage
  /**
   * The clocks of what crosses processes that share a database, such as tokens, sessions and
   * registrations: of the server, which both are. Those of this process, where the database is a
   * file.
   */
  readonly clocks: Clocks
  /** A random number of the database. */
  readonly databaseId: string
  /** The journal of calls that the last run left is not there, or is empty. */
  readonly isJournalLost: boolean
  /** Opens the journal with the calls that the last run has left. */
  openJournal(): CallJournal
  /**
   * Returns why a call that is taken now cannot be stored, or is not this instance's to take;
   * undefined: neither.
   */
  whyClosed(): Unserved | undefined
  /** Calls are served from now on: nothing may stop the event loop. */
  serving(): void
  /** Learns from now on whether writes are stored. */
  watch(deps: WatchDeps): Cancel
  /** Copies what would be lost. Last before `close`. */
  keepLost(): void
  close(): Promise<void>
  /** All that waits for the database fails now, and all that comes. */
  cut(): void
}

export interface WatchDeps {
  /** The log of the database was removed; other readers of it should close it. */
  readonly onLogGone: () => void
  readonly onChange: (problem: StorageProblem | undefined) => void
}

/** This process among the instances of the database. */
export interface OwnInstance extends InstancesPort {
  /**
   * True: no other instance has taken back what this run of the instance holds of wallets. Measured
   * by the steady clock.
   */
  isHoldingMoney(): boolean
  /**
   * True: no other instance takes this one for gone, and what it holds of limits is its own. True
   * for longer than `isHoldingMoney`.
   */
  isHolding(): boolean
  /**
   * The clock of the machine went on while the steady one did not: whether this run is fenced is
   * known after a heartbeat.
   */
  mayHaveSlept(): boolean
  /** Calls `handler` each time that this run finds itself fenced. */
  onFenced(handler: (fenced: Fenced) => void): void
  /** Instances that cannot come back as what they were: what they hold may be freed. */
  gone(): readonly InstanceIdentity[]
  /**
   * @param apiUrl where its API listens, unless `NODE_URL` says it.
   * @param sipUri where SIP is served for the other instances, unless `NODE_SIP_URI` says it.
   * @param sipAddresses from where its SIP requests come.
   */
  become(
    state: 'serving' | 'draining',
    apiUrl?: string,
    sipUri?: string,
    sipAddresses?: readonly string[],
  ): Promise<void>
  /** The process ends in order. */
  end(): Promise<void>
  countCalls(count: () => number): void
  /** Sets how long a grant of this process may last. */
  grantsFor(longestSeconds: () => number): void
}
