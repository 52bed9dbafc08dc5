/** A call from its INVITE to its record. */
import type { Table } from './table.ts'

export type CallPhase =
  /** Validated, authorized, routed. */
  | 'admitting'
  /** Click-to-call: the phones of the source ring. */
  | 'sourcing'
  | 'dialing'
  /** A phone's 3xx has sent the call outside: the call that was made for it rings. */
  | 'forwarding'
  /** The caller replaces a party of another call (RFC 3891), whose partner gets a re-INVITE. */
  | 'replacing'
  /** The callee has answered: the journal is written. */
  | 'journalling'
  /** Its caller gets the 200. */
  | 'accepting'
  | 'answered'
  | 'over'

export type CallEvent =
  | 'refused'
  | 'ring'
  | 'pickedUp'
  | 'dial'
  | 'forward'
  | 'calleeAnswered'
  | 'replace'
  | 'journalled'
  | 'notJournalled'
  | 'callerTaken'
  | 'callerGone'
  /** No destination has answered. */
  | 'exhausted'
  /** For any reason. The time of the record is now, or, where the media has stopped, that of the last packet. */
  | 'stop'

export type CallAction =
  | 'giveUpAttempts'
  | 'stopForwarded'
  | 'closeLegs'
  | 'refuseCaller'
  | 'journal'
  | 'acceptCaller'
  | 'startGrant'
  | 'endPeers'
  | 'store'

const over = (...actions: readonly CallAction[]) =>
  ({ to: 'over', do: [...actions, 'store'] }) as const
const stay = (to: CallPhase, ...actions: readonly CallAction[]) => ({ to, do: actions }) as const

export const callTable: Table<CallPhase, CallEvent, CallAction> = {
  admitting: {
    refused: over('refuseCaller'),
    ring: { to: 'sourcing', do: [] },
    dial: { to: 'dialing', do: [] },
    replace: { to: 'replacing', do: [] },
    // The OCS is still being asked: what it has reserved is released by the record.
    stop: stay('admitting'),
  },
  sourcing: {
    pickedUp: { to: 'dialing', do: [] },
    exhausted: over('refuseCaller'),
    stop: over('giveUpAttempts', 'refuseCaller'),
  },
  dialing: {
    dial: stay('dialing'),
    forward: { to: 'forwarding', do: [] },
    calleeAnswered: { to: 'journalling', do: ['journal'] },
    exhausted: over('refuseCaller'),
    stop: over('giveUpAttempts', 'refuseCaller'),
  },
  forwarding: {
    calleeAnswered: { to: 'journalling', do: ['journal'] },
    exhausted: over('refuseCaller'),
    stop: over('stopForwarded', 'refuseCaller'),
  },
  replacing: {
    calleeAnswered: { to: 'journalling', do: ['journal'] },
    exhausted: over('refuseCaller'),
    stop: over('refuseCaller'),
  },
  journalling: {
    journalled: { to: 'accepting', do: ['acceptCaller'] },
    notJournalled: over('closeLegs', 'refuseCaller'),
    stop: stay('journalling', 'stopForwarded', 'closeLegs'),
  },
  accepting: {
    callerTaken: { to: 'answered', do: ['startGrant'] },
    callerGone: over('closeLegs', 'refuseCaller'),
    stop: stay('accepting', 'stopForwarded', 'closeLegs'),
  },
  answered: { stop: over('endPeers', 'closeLegs') },
  over: {},
}
