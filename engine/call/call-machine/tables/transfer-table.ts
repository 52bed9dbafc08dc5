/**
 * Transfers (RFC 5589, RFC 3725). In a `basic` transfer a new call is made for the transferee; `attended`
 * joins two calls of the transferor; in a `replacement` an INVITE with Replaces takes the place of a party, in an `early`
 * one that of the caller of a call that still rings.
 */
import type { Table } from './table.ts'

export type TransferState =
  /** The new call rings; or its caller's INVITE is looked at. */
  | 'ringing'
  /** The exchange is being paused: no re-INVITE may be under way. */
  | 'pausing'
  /** Attended: the transfer target's exchange is being paused, too. */
  | 'pausing-target'
  /** Attended: a re-INVITE gives the transfer target the transferee's media. */
  | 'offering-target'
  /** A re-INVITE gives the transferee the new media. */
  | 'moving'
  /** The transferee has the new media; the calling side of the new call does not know yet. */
  | 'moved'
  | 'transferred'
  | 'failed'

export type TransferEvent =
  | 'answered'
  | 'begin'
  | 'paused'
  /** Attended: so is the exchange of the transferee. */
  | 'transfereePaused'
  | 'targetPaused'
  | 'targetAnswered'
  | 'moved'
  | 'taken'
  | 'refused'

export type TransferAction =
  'pause' | 'pauseTarget' | 'offerTarget' | 'move' | 'tellNewCall' | 'connect' | 'fail'

const fail = { to: 'failed', do: ['fail'] } as const

export const transferTable: Table<TransferState, TransferEvent, TransferAction> = {
  ringing: {
    answered: { to: 'pausing', do: ['pause'] },
    begin: { to: 'pausing', do: ['pause'] },
    refused: fail,
  },
  pausing: {
    paused: { to: 'moving', do: ['move'] },
    transfereePaused: { to: 'pausing-target', do: ['pauseTarget'] },
    refused: fail,
  },
  'pausing-target': {
    targetPaused: { to: 'offering-target', do: ['offerTarget'] },
    refused: fail,
  },
  'offering-target': {
    targetAnswered: { to: 'moving', do: ['move'] },
    refused: fail,
  },
  moving: {
    moved: { to: 'moved', do: ['tellNewCall'] },
    refused: fail,
  },
  moved: {
    taken: { to: 'transferred', do: ['connect'] },
    refused: fail,
  },
  transferred: {},
  failed: {},
}
