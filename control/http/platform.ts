/** The dependencies of the API. It sees the engine only through `EnginePort`, as plain data. */
import type { Changes } from '../../schema/changes/changes.ts'
import type { Clocks, Schedule } from '../../schema/clock.ts'
import type { CertificateStatus } from '../../schema/contracts/certificates.ts'
import type { HookTrouble } from '../../schema/contracts/hooks.ts'
import type { LossTrouble } from '../../schema/contracts/losses.ts'
import type { EnginePort, SettingsInForce } from '../../schema/contracts/engine.ts'
import type { RequestShares } from '../../schema/contracts/limits.ts'
import type { Log } from '../../schema/contracts/log.ts'
import type { InstancesPort } from '../../schema/contracts/instances.ts'
import type { OcsPort } from '../../schema/contracts/charging.ts'
import type { Resolve } from '../../schema/net/http-target.ts'
import type { Store } from '../../schema/storage/store.ts'
import type { OwnNetwork } from '../../schema/rules/gateways.ts'
import type { Storage } from '../../schema/storage/storage.ts'

export interface Platform extends Clocks {
  readonly store: Store
  /** Disk of the journal of calls; absent: that of the database. */
  readonly disk?: Pick<Storage, 'problem'>
  /** The journal that the last run left is not there, or is empty. */
  readonly isJournalLost?: boolean
  /** Absent: no other process writes. */
  readonly changes?: Changes
  readonly engine: EnginePort
  /** The processes of the installation. */
  readonly instances: InstancesPort
  /** Charging in this process; undefined: another OCS charges, and keeps customers and rates. */
  readonly ocs: OcsPort | undefined
  /**
   * Requests that all instances admit together; absent: no other instance serves from this
   * database.
   */
  readonly requestShares?: RequestShares | undefined
  readonly schedule: Schedule
  /** Asks DNS for the addresses of a host; absent: no name is known. */
  readonly resolve?: Resolve | undefined
  /** Cryptographically secure. */
  readonly randomBytes: (size: number) => Buffer
  readonly log: Log
  /** The `version` of the health answers. */
  readonly version: string
  readonly settings: ControlSettings
  /** The settings of the process, for people. */
  readonly inForce: SettingsInForce | undefined
  readonly loopDelay: LoopDelay
  /** Certificates of this process; absent: it has none. */
  readonly certificates?: () => readonly CertificateStatus[]
  /** Keeps rules and channels of alerts in memory; absent: nobody is told. */
  readonly alerts?: AlertsPort | undefined
  /** Failures of the operator's code; absent: there is none. */
  readonly hookTroubles?: (() => readonly HookTrouble[]) | undefined
  /** Answered calls at a loss, of which loss protection warns; absent: another system charges. */
  readonly lossTroubles?: (() => readonly LossTrouble[]) | undefined
}

/** Alerts, as those see them who write rules and channels. */
export interface AlertsPort {
  /** Reads rules and channels again. Resolves when they apply. */
  reload(): Promise<void>
  /** Counts what channels are to be told, and messages that were given up. */
  backlog(): Promise<{ readonly waiting: number; readonly failed: number }>
}

interface ControlSettings {
  /** Undefined: generated once and stored in the database. */
  readonly jwtSecret: string | undefined
  /** Secret of the payment provider's webhook; undefined: payments are not set up (503). */
  readonly paymentWebhookSecret: string | undefined
  /** Where finished recordings are; undefined: calls are not recorded. */
  readonly recordingsPath: string | undefined
  /** Further host names, apart from addresses and localhost, under which `/mcp` may be reached. */
  readonly mcpAllowedHosts: readonly string[]
  /** Where people reach this API; undefined: webhooks have no links. */
  readonly publicUrl?: string | undefined
  /**
   * CIDRs of the platform's own programs (trusted sources, edge proxies), which no tenant may
   * claim.
   */
  readonly reservedNetworks: readonly string[]
  /** The addresses of this installation. */
  readonly ownPlaces: OwnNetwork
  /** Whether `RTPENGINE` names media relays: without one, some media rules are refused. */
  readonly hasMediaRelay: boolean
  /** Whether webhooks may go to private networks; absent: they may not. */
  readonly allowsPrivateTargets?: boolean
  /** Whether certificates of STIR may come from private networks; absent: no. */
  readonly allowsPrivateCertificates?: boolean
  /** CIDRs of proxies whose `X-Forwarded-For` and `Forwarded` are trusted. */
  readonly trustedProxies: readonly string[]
}

/** How long the turns of the event loop were since the last reset; node's histogram is one. */
export interface LoopDelay {
  /** How many turns. */
  readonly count: number
  /** Nanoseconds by percentile, ascending: so much of the turns was no longer than that. */
  readonly percentiles: ReadonlyMap<number, number>
  reset(): void
}

/**
 * Returns a random UUID, version 4 (RFC 9562 §5.4). `randomBytes` must be cryptographically secure.
 */
export function newUuid(randomBytes: (size: number) => Buffer): string {
  const bytes = randomBytes(16)
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x40, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
