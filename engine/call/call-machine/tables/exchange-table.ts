/**
 * Offer and answer between two legs (RFC 3264, RFC 6337): at most one re-INVITE is under way, in either direction
 * (RFC 3261 §14). A transfer pauses the exchange first, and sends each leg its new media itself.
 */
import type { Table } from './table.ts'

export type ExchangeState =
  | 'stable'
  /** A re-INVITE of one peer waits for the other one's response. */
  | 'relaying'
  /** The 200 has brought an offer; the ACK brings the answer. */
  | 'awaiting-ack'
  /** As the two above, but no re-INVITE follows. */
  | 'relaying-last'
  | 'awaiting-last-ack'
  /** Re-INVITEs of the peers are refused. */
  | 'paused'

export type ExchangeEvent = 'reinvite' | 'concluded' | 'lateOffer' | 'ack' | 'pause' | 'resume'

export type ExchangeAction = 'relay' | 'refuse' | 'tellWaiting'

const refuse = (to: ExchangeState) => ({ to, do: ['refuse'] }) as const

export const exchangeTable: Table<ExchangeState, ExchangeEvent, ExchangeAction> = {
  stable: {
    reinvite: { to: 'relaying', do: ['relay'] },
    pause: { to: 'paused', do: ['tellWaiting'] },
  },
  relaying: {
    reinvite: refuse('relaying'),
    concluded: { to: 'stable', do: [] },
    lateOffer: { to: 'awaiting-ack', do: [] },
    pause: { to: 'relaying-last', do: [] },
  },
  'awaiting-ack': {
    reinvite: refuse('awaiting-ack'),
    ack: { to: 'stable', do: [] },
    pause: { to: 'awaiting-last-ack', do: [] },
  },
  'relaying-last': {
    reinvite: refuse('relaying-last'),
    concluded: { to: 'paused', do: ['tellWaiting'] },
    lateOffer: { to: 'awaiting-last-ack', do: [] },
    resume: { to: 'relaying', do: [] },
  },
  'awaiting-last-ack': {
    reinvite: refuse('awaiting-last-ack'),
    ack: { to: 'paused', do: ['tellWaiting'] },
    resume: { to: 'awaiting-ack', do: [] },
  },
  paused: {
    reinvite: refuse('paused'),
    pause: { to: 'paused', do: ['tellWaiting'] },
    resume: { to: 'stable', do: [] },
  },
}
