/**
 * One dialog of a call, from its INVITE to its BYE (RFC 3261 §12-15). A leg that is closed before its dialog
 * allows it is `cancelling` (we sent the INVITE) or `closing` (a BYE has to wait: §15).
 */
import type { Table } from './table.ts'

export type LegState =
  /** INVITE received, no final response yet. */
  | 'incoming'
  /** A 200 is on its way. */
  | 'accepting'
  /** 200 sent; its ACK is awaited. */
  | 'unacknowledged'
  /** INVITE handed over to the SIP server. */
  | 'calling'
  /** INVITE sent: it can be cancelled. */
  | 'proceeding'
  /** Given up: its final response is awaited. */
  | 'cancelling'
  /** 2xx with an offer received: our ACK is owed. */
  | 'offered'
  /** ACK sent. */
  | 'acknowledging'
  | 'confirmed'
  | 'closing'
  | 'terminated'

export type LegEvent =
  // Received.
  | 'sent'
  | 'provisional'
  | 'answered'
  | 'offered'
  | 'unusable'
  | 'rejected'
  | 'failed'
  | 'accepted'
  | 'gone'
  | 'acknowledged'
  | 'acknowledgeFailed'
  | 'ack'
  | 'bye'
  | 'cancelled'
  /** The SIP server is away, and with it the dialog. */
  | 'lost'
  // Wanted by the call.
  | 'accept'
  | 'reject'
  | 'acknowledge'
  | 'close'

export type LegAction =
  /** Reported to the call. */
  | 'report'
  | 'noteDialog'
  | 'keepHeaders'
  | 'cancel'
  | 'bye'
  | 'accept'
  | 'respond'
  | 'acknowledge'
  | 'abandonOffer'
  | 'release'

const report = ['report'] as const
const noteDialog = ['noteDialog', 'report'] as const
const lost = { to: 'terminated', do: [] } as const

export const legTable: Table<LegState, LegEvent, LegAction> = {
  incoming: {
    accept: { to: 'accepting', do: ['accept'] },
    reject: { to: 'terminated', do: ['respond'] },
    // The SIP server has answered 487 already.
    cancelled: { to: 'terminated', do: report },
  },
  accepting: {
    lost: { to: 'terminated', do: report },
    accepted: { to: 'unacknowledged', do: noteDialog },
    gone: { to: 'terminated', do: report },
    cancelled: { to: 'accepting', do: report },
    close: { to: 'closing', do: ['keepHeaders'] },
  },
  unacknowledged: {
    lost,
    ack: { to: 'confirmed', do: report },
    bye: { to: 'terminated', do: report },
    close: { to: 'closing', do: ['keepHeaders'] },
  },
  calling: {
    sent: { to: 'proceeding', do: report },
    provisional: { to: 'calling', do: report },
    answered: { to: 'confirmed', do: noteDialog },
    offered: { to: 'offered', do: noteDialog },
    unusable: { to: 'terminated', do: ['release', 'report'] },
    rejected: { to: 'terminated', do: report },
    failed: { to: 'terminated', do: report },
    close: { to: 'cancelling', do: ['keepHeaders'] },
  },
  proceeding: {
    sent: { to: 'proceeding', do: report },
    provisional: { to: 'proceeding', do: report },
    answered: { to: 'confirmed', do: noteDialog },
    offered: { to: 'offered', do: noteDialog },
    unusable: { to: 'terminated', do: ['release', 'report'] },
    rejected: { to: 'terminated', do: report },
    failed: { to: 'terminated', do: report },
    close: { to: 'cancelling', do: ['keepHeaders', 'cancel'] },
  },
  cancelling: {
    lost,
    sent: { to: 'cancelling', do: ['report', 'cancel'] },
    answered: { to: 'terminated', do: ['bye'] },
    offered: { to: 'terminated', do: ['abandonOffer'] },
    unusable: { to: 'terminated', do: ['release'] },
    rejected: { to: 'terminated', do: [] },
    failed: { to: 'terminated', do: [] },
  },
  offered: {
    lost,
    acknowledge: { to: 'acknowledging', do: ['acknowledge'] },
    close: { to: 'terminated', do: ['abandonOffer'] },
  },
  acknowledging: {
    lost,
    acknowledged: { to: 'confirmed', do: noteDialog },
    acknowledgeFailed: { to: 'terminated', do: ['release', 'report'] },
    close: { to: 'closing', do: ['keepHeaders'] },
  },
  confirmed: {
    lost,
    bye: { to: 'terminated', do: report },
    // Of a re-INVITE without offer.
    ack: { to: 'confirmed', do: report },
    close: { to: 'terminated', do: ['keepHeaders', 'bye'] },
  },
  closing: {
    lost,
    accepted: { to: 'closing', do: ['noteDialog'] },
    gone: { to: 'terminated', do: [] },
    ack: { to: 'terminated', do: ['bye'] },
    acknowledged: { to: 'terminated', do: ['bye'] },
    acknowledgeFailed: { to: 'terminated', do: ['release'] },
    bye: { to: 'terminated', do: [] },
  },
  terminated: {},
}
