/** The options of the core and its basic parts, which all other parts share. */
import { DialogTable } from '../dialog/dialog-table.ts'
import type { Flow, Listener } from '../flow.ts'
import type { SipMessage } from '../../../schema/sip/message.ts'
import type { CallLimits, ServerLog, SipServerOptions } from '../options.ts'
import type { Timers } from '../transaction/machine.ts'
import { HopFinder } from './hop-finder.ts'
import { ApplicationEvents } from './application-events.ts'
import { Applications } from './applications.ts'
import { Outbox } from './outbox.ts'
import { RegistrationFlows } from './registration-flows.ts'
import { LocalBye } from './local-bye.ts'
import { RequestWriter } from './request-writer.ts'
import { CallTimes } from './call-times.ts'
import { type CallTimesByDirection, Traffic } from './traffic.ts'
import { Identifiers } from './identifiers.ts'
import { Transactions } from './transactions.ts'

export interface CoreOptions extends Pick<
  SipServerOptions,
  | 'routeRequest'
  | 'screen'
  | 'allow'
  | 'onRefusedInvite'
  | 'admitInDialog'
  | 'mayFollow'
  | 'readToken'
  | 'outboundProxy'
  | 'defaultRefresher'
  | 'alwaysSend180'
  | 'detectsNat'
> {
  readonly listeners: () => readonly Listener[]
  readonly timers: Timers
  readonly limits: CallLimits
  /** The shortest session interval that is accepted (Min-SE, RFC 4028 §5). */
  readonly minSessionSeconds: number
  /**
   * Asked for each INVITE that is no copy of one: true refuses it, if it begins a call. Default:
   * never.
   */
  readonly refusesCall?: (invite: SipMessage, source: Flow) => boolean
  /**
   * Whether the connection of a flow is still there; asked when a phone has registered over it.
   * Default: it is.
   */
  readonly isConnected?: (flow: Flow) => boolean
  /**
   * How long the calls of an application go on after its connection was lost. Default: they end at
   * once.
   */
  readonly graceMs?: number | undefined
  /** The secret that applications must quote. Undefined: none is let in. */
  readonly secret?: string | undefined
  /** Compares in constant time. */
  readonly sameSecret: (given: string, expected: string) => boolean
  /** Makes a mark of a text that only this server can make: letters and digits. */
  readonly seal: (text: string) => string
  /** An unguessable token of letters and digits: branches and tags. */
  readonly token: () => string
  /** Reported to applications; starts with `v<major>.<minor>.<patch>`. */
  readonly version: string
  readonly log: ServerLog
}

export type CoreParts = ReturnType<typeof createParts>

export function createParts(options: CoreOptions) {
  const { listeners, minSessionSeconds, defaultRefresher = 'none', log } = options
  const traffic = new Traffic()
  const callTimes: CallTimesByDirection = { inbound: new CallTimes(), outbound: new CallTimes() }
  const outbox = new Outbox(traffic)
  const dialogs = new DialogTable()
  const ids = new Identifiers(options.token)
  const transactions = new Transactions(options.timers, outbox, ids)
  const applications = new Applications(outbox)
  const events = new ApplicationEvents(applications, outbox)
  const registrationFlows = new RegistrationFlows(transactions.deadlines, options.isConnected)
  const hops = new HopFinder(listeners, registrationFlows, outbox, ids)
  const { outboundProxy, mayFollow } = options
  const writer = new RequestWriter(hops, ids, minSessionSeconds, {
    outboundProxy,
    mayFollow:
      mayFollow && ((way, clientId) => !applications.isInProcess(clientId) || mayFollow(way)),
  })
  const localBye = new LocalBye(dialogs, writer, transactions, events)
  return {
    options,
    minSessionSeconds,
    defaultRefresher,
    log,
    traffic,
    callTimes,
    outbox,
    dialogs,
    ids,
    transactions,
    applications,
    events,
    registrationFlows,
    hops,
    writer,
    localBye,
  }
}
