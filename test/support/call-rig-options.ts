/** The options that a rig of call control is started with. */
import type { OpenCall } from '../../schema/contracts/call-record.ts'
import type { OwnedNumbers } from '../../schema/contracts/owned-numbers.ts'
import type { StirPort } from '../../schema/contracts/stir.ts'
import type { Schedule } from '../../schema/clock.ts'
import type { TransferInstances } from '../../engine/call/transfer/other-instances.ts'
import type { ActiveCalls } from '../../engine/call/active-calls.ts'
import type { DialogWayDeps } from '../../engine/call/dialog-way.ts'
import type { CallDeadlines } from '../../engine/call/deadlines.ts'
import type { CallerIdentities } from '../../engine/call/identity/caller-identities.ts'
import type { HookSources } from '../../engine/call/hooks/call-hooks.ts'
import type { Media } from '../../engine/media/create-media.ts'
import type { Registrar } from '../../engine/registrar/registrar.ts'
import type { CarrierAuth } from '../../engine/routing/routing-records.ts'
import type { SipServer, SipServerOptions } from '../../engine/sip-server/index.ts'
import type { ServerAddress } from '../../engine/call/user-agent/drachtio/connection.ts'
import { international } from '../../schema/rules/numbers.ts'
import type { World } from './call-world.ts'
import type { ManualTime } from './manual-time.ts'

/** The exit code of its installation is 00. */
export const dialled = (number: string): string => international(number, ['00'])

interface Around {
  readonly calls: ActiveCalls
  readonly deadlines: CallDeadlines
  readonly now: () => number
  readonly schedule: Schedule
}

/** A rig whose process was killed. */
interface LastRun {
  readonly time: ManualTime
  readonly world: World
  readonly saved: ReadonlyMap<string, string>
  /** When its calls were alive for the last time. Default: now. */
  readonly aliveAt?: number
  readonly opened: readonly OpenCall[]
  readonly server: Pick<SipServer, 'listeners'>
}

export interface CallRigOptions {
  /**
   * `in bursts`: payloads come several at once, as from one read of a busy connection.
   * `late`: payloads come one by one, but a moment after the server has moved on.
   * `without Trying`: as from a drachtio-server, which keeps 100 back.
   */
  readonly app?: 'in process' | 'in bursts' | 'late' | 'without Trying' | 'tcp'
  /**
   * `idle` lets time pass until every transaction of SIP has ended, and then nothing is left in the
   * server either. What comes to a peer again meanwhile gets the same answer again.
   */
  readonly withSipTimers?: boolean
  /** Default: 1800. */
  readonly sessionSeconds?: number
  /** A TCP listener beside the one for UDP, which needs sockets. */
  readonly withTcp?: boolean
  /** `address:port`. Default: those of this machine. */
  readonly dnsServers?: readonly string[]
  /** Instead of the server that is started here: drachtio servers elsewhere. */
  readonly servers?: readonly ServerAddress[]
  /**
   * The process that was killed before: this one has its network, its clock, its port and what was
   * saved.
   */
  readonly after?: LastRun
  /** Another process on the same network, with the same clock. */
  readonly beside?: Pick<LastRun, 'time' | 'world'>
  /** Reads a flow token of a request. Default: no Route shows one. */
  readonly readToken?: SipServerOptions['readToken']
  /** The rules by which Contact and Record-Route are followed. Default: all are. */
  readonly ways?: Omit<DialogWayDeps, 'calls'>
  /** The other instances of the installation. Default: there are none. */
  readonly otherInstances?: TransferInstances
  /** Whether calls of the last run can still be charged. Default: they can. */
  readonly canResume?: boolean
  /** The credentials by which each carrier is told who we are. Default: there is no carrier. */
  readonly carrierAuth?: CarrierAuth
  /** Lower-case names of the `X-…` headers that pass. Default: none. */
  readonly passX?: readonly string[]
  /** A gate before the legs. */
  readonly media?: (around: Around) => Media
  /** Instead of the answers of `answers`. */
  readonly registrar?: Registrar
  /** The operator's own code. Default: there is none. */
  readonly hooks?: HookSources
  /** Which number a call shows. Default: no rules say anything. */
  readonly identities?: Pick<CallerIdentities, 'decide'>
  /** Signs and verifies. Default: nothing does. */
  readonly stir?: StirPort
  /** Whose each number is. Default: nobody owns one. */
  readonly ownedNumbers?: OwnedNumbers
  /** No call goes past an application that should be there. */
  readonly applicationMustAnswer?: boolean
}
